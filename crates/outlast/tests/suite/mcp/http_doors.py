"""Requests that must not get in, as bytes, and what each is answered."""
import json, os, socket, sys
from http_server import PORT, TOKEN, server

PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
GOOD = {"Host": f"127.0.0.1:{PORT}", "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}


def send(raw, is_all=False):
    with socket.create_connection(("127.0.0.1", PORT), timeout=30) as connection:
        try:
            connection.sendall(raw)
            if is_all:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # It may be answered, and hung up, before all of it was sent.
        answer = b""
        try:
            while part := connection.recv(65536):
                answer += part
        except ConnectionResetError:
            pass
    return answer


def asked(method="POST", target="/mcp", body=PING, length=None, **changed):
    headers = GOOD | {name.replace("_", "-"): value for name, value in changed.items()}
    lines = [f"{method} {target} HTTP/1.1", "Connection: close", f"Content-Length: {len(body) if length is None else length}"]
    lines += [f"{name}: {value}" for name, value in headers.items() if value is not None]
    answer = send(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
    return int(answer.split()[1]), answer


LARGE = 4 * 1024 * 1024 + 1
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}})
NEW = {"body": LIST, "MCP_Protocol_Version": "2026-07-28"}
TABLE = [
    ("as it should be", {}, 200),
    ("by the other name", {"Host": f"localhost:{PORT}"}, 200),
    ("no token", {"Authorization": None}, 401),
    ("a wrong token", {"Authorization": f"Bearer {TOKEN[:-1]}x"}, 401),
    ("a part of the token", {"Authorization": f"Bearer {TOKEN[:-1]}"}, 401),
    ("another scheme", {"Authorization": f"Basic {TOKEN}"}, 401),
    ("a page", {"Origin": "http://evil.example"}, 403),
    ("a page on this machine", {"Origin": f"http://127.0.0.1:{PORT + 1}"}, 403),
    ("a page without an origin", {"Origin": "null"}, 403),
    ("our own origin", {"Origin": f"http://127.0.0.1:{PORT}"}, 200),
    ("a name that was rebound", {"Host": f"evil.example:{PORT}"}, 421),
    ("no port", {"Host": "127.0.0.1"}, 421),
    ("no host", {"Host": None}, 421),
    ("a stream", {"method": "GET"}, 405),
    ("the end of a session", {"method": "DELETE"}, 405),
    ("a stream without the token", {"method": "GET", "Authorization": None}, 401),
    ("another path", {"target": "/"}, 404),
    ("a form", {"Content_Type": "text/plain"}, 415),
    ("too large a body", {"body": "x" * LARGE}, 413),
    ("a length that is too large", {"length": LARGE}, 413),
    ("not JSON", {"body": "{"}, 400),
    ("a batch", {"body": f"[{PING}]"}, 400),
    ("a version of ours", {"MCP_Protocol_Version": "2025-06-18"}, 200),
    ("a version that is none", {"MCP_Protocol_Version": "banana"}, 400),
    ("a notification", {"body": '{"jsonrpc":"2.0","method":"notifications/initialized"}'}, 202),
    ("the new version", NEW | {"Mcp_Method": "tools/list"}, 200),
    ("a method that is another", NEW | {"Mcp_Method": "tools/call"}, 400),
    ("a method that is not named", NEW, 400),
    ("a version that is another", NEW | {"Mcp_Method": "tools/list", "MCP_Protocol_Version": "2025-11-25"}, 400),
]
for what, changed, status in TABLE:
    # A body that is announced and does not come is not waited for.
    got, answer = asked(**changed)
    assert got == status, (what, status, got, answer[:400])
    assert TOKEN.encode() not in answer, what
for junk in [b"\r\n\r\n", b"\x00" * 4096, b"GET\r\n\r\n", b"POST /mcp HTTP/1.1\r\n" + b"a: b\r\n" * 5000]:
    answer = send(junk + b"\r\n", is_all=True)
    assert b" 200 " not in answer.split(b"\r\n")[0], answer[:200]
assert asked()[0] == 200, "it answers as before"
if os.getuid() == 0:
    # A process of another user reaches the port, and neither the token nor what is behind it.
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        try:
            open(f"/proc/{server.pid}/environ", "rb").read()
            os._exit(2)
        except PermissionError:
            os._exit(0 if asked(Authorization=None)[0] == 401 else 3)
    assert os.waitpid(pid, 0)[1] == 0, "another user gets nothing"
    print("another user gets nothing")
server.terminate()
server.wait()
print(len(TABLE), "requests were judged")
