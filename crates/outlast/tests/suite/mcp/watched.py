"""Starts a server whose output is watched, and goes on until it is told to end."""
import os, time
from client import call

scratch = os.environ["SCRATCH"]
assert call("proc_start", command="true", watch=["("]) is None, "no pattern is refused"
command = f"echo warming up; echo listening on 80; until test -e {scratch}/end; do sleep 0.05; done"
started = call("proc_start", command=command, name="watched", watch=["listening on"])
assert started is not None, "it was not started"
while not os.path.exists(f"{scratch}/over"):
    time.sleep(0.05)
