"""Lines that no client should send; after each the server has to answer as before."""
import json, os, random, subprocess

server = subprocess.Popen([os.environ["OUTLAST"], "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def send(line):
    server.stdin.write(line + b"\n")
    server.stdin.flush()


def ask(number, method, params=None):
    send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}).encode())
    while True:
        answer = json.loads(server.stdout.readline())
        if answer.get("id") == number:
            return answer


def call(name, arguments):
    return json.dumps({"jsonrpc": "2.0", "id": "h", "method": "tools/call",
                       "params": {"name": name, "arguments": arguments}}).encode()


tools = [tool["name"] for tool in ask("list", "tools/list")["result"]["tools"]]
chance = random.Random(7)
odd = [None, 0, -1, 1e300, True, "", " ", "\u0000", "../../etc/passwd", "x" * 70000, [], {}, [[]], {"a": {}},
       "@last", "'; rm -rf /", 2**63, "ü" * 1000]
hostile = [b"", b"{", b"\xff\xfe", b"[]", b"[1,2]", b"null", b"true", b"0", b'"x"', b"{}",
           b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":1}', b'{"jsonrpc":"2.0","method":3,"id":1}',
           b'{"jsonrpc":"2.0","method":"tools/call","id":1}', b'{"jsonrpc":"2.0","method":"tools/call","id":1,"params":7}',
           b'{"jsonrpc":"2.0","method":"tools/call","id":1,"params":{"name":["proc_start"]}}',
           b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}',
           b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":null}',
           b'{"jsonrpc":"2.0","id":1,"result":{}}', b"[" * 100000, b'{"a":' * 50000, b"x" * (5 << 20)]
while len(hostile) < 200:
    tool = chance.choice([name for name in tools if name not in ("report_done", "report_blocked", "ask_human")])
    names = ["id", "command", "key", "text", "cursor", "class", "env", "timeout_s", "no_such_argument", "dir", "file"]
    arguments = {name: chance.choice(odd) for name in chance.sample(names, 3)}
    arguments.pop("command", None)
    hostile.append(call(tool, chance.choice([arguments, arguments, chance.choice(odd)])))
for number, line in enumerate(hostile):
    send(line)
    if number % 5 == 0:
        assert ask(f"p{number}", "ping")["result"] == {}, line[:80]
assert "tools" in ask("again", "tools/list")["result"]
left = ask("left", "tools/call", {"name": "budget_left", "arguments": {}})
assert left["result"]["isError"] is False, left
listed = ask("procs", "tools/call", {"name": "proc_list", "arguments": {}})
assert listed["result"]["structuredContent"]["processes"] == [], listed
server.stdin.close()
assert server.wait() == 0
print(len(hostile), "lines were answered")
