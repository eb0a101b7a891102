"""A client of `outlast mcp` that speaks in lines, for the scripts beside it."""
import json, os, subprocess

server = subprocess.Popen([os.environ["OUTLAST"], "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
count = 0


def call(tool, **arguments):
    """What a tool answers; None if it answers with an error."""
    global count
    count += 1
    params = {"name": tool, "arguments": arguments}
    line = json.dumps({"jsonrpc": "2.0", "id": count, "method": "tools/call", "params": params})
    server.stdin.write(line.encode() + b"\n")
    server.stdin.flush()
    while True:
        answer = json.loads(server.stdout.readline())
        if answer.get("id") == count:
            result = answer["result"]
            return None if result["isError"] else result["structuredContent"]
