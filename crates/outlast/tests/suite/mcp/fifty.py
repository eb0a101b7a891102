"""Starts 25 background processes, waits for all of them, and looks at no other run's."""
import os, sys, time
from client import call

name, scratch = sys.argv[1], os.environ["SCRATCH"]


def insist(tool, **arguments):
    """A daemon that is just being replaced is asked again."""
    for _ in range(200):
        answer = call(tool, **arguments)
        if answer is not None:
            return answer
        time.sleep(0.1)
    raise SystemExit(f"{tool} {arguments} was not answered")


ids = {}
for number in range(25):
    command = f"echo {name} {number}; while [ ! -e {scratch}/go ]; do sleep 0.1; done; exit {number}"
    ids[number] = insist("proc_start", command=command, key=f"p{number}", name=f"{name}-{number}")["id"]
    with open(f"{scratch}/{name}.started", "a") as file:
        file.write("started\n")
assert len(set(ids.values())) == 25
for number, id in ids.items():
    while True:
        waited = insist("proc_wait", id=id, timeout_s=20)
        if not waited["timed_out"]:
            break
    assert waited["exit"] == {"code": number}, (number, waited)
    assert waited["text"] == f"{name} {number}\n", waited
listed = insist("proc_list")["processes"]
assert sorted(row["id"] for row in listed) == sorted(ids.values()), listed
other = "right" if name == "left" else "left"
assert call("proc_read", id=f"{other}-1") is None, "another run's process is not there"
late = {"key": "late", "command": "sleep 60", "class": "read", "timeout_s": 0}
first, again = insist("call", **late), insist("call", **late)
assert first["why"] == again["why"] == "timed out after 0 s" and again["stored"], (first, again)
