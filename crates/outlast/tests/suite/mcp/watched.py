"""Starts a server whose output is watched, and goes on until it is told to end."""
import json, os, subprocess, time

scratch = os.environ["SCRATCH"]
server = subprocess.Popen([os.environ["OUTLAST"], "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def call(id, tool, **arguments):
    params = {"name": tool, "arguments": arguments}
    line = json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    server.stdin.write(line.encode() + b"\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline())["result"]


refused = call(1, "proc_start", command="true", watch=["("])
assert refused["isError"], refused
command = f"echo warming up; echo listening on 80; until test -e {scratch}/end; do sleep 0.05; done"
started = call(2, "proc_start", command=command, name="watched", watch=["listening on"])
assert not started["isError"], started
while not os.path.exists(f"{scratch}/over"):
    time.sleep(0.05)
