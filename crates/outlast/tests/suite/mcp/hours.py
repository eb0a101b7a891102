"""A process that takes two hours by the clock, looked after by calls of which none takes a minute."""
import os
from client import call

scratch = os.environ["SCRATCH"]


def set_clock(hours):
    with open(f"{scratch}/clock.part", "w") as file:
        file.write(str(hours * 3_600_000))
    os.rename(f"{scratch}/clock.part", f"{scratch}/clock")


gates = "; ".join(f"until test -e {scratch}/hour{n}; do sleep 0.05; done; echo hour {n}" for n in (1, 2))
id = call("proc_start", command=f"{gates}; exit 5", name="hours", timeout_s=10_800)["id"]
cursor, text = 0, ""
for hour in (1, 2):
    early = call("proc_wait", id=id, cursor=cursor, timeout_s=1)
    assert early["timed_out"] and early["text"] == "", early
    set_clock(hour)
    open(f"{scratch}/hour{hour}", "w").close()
    while text.count("\n") < hour:
        read = call("proc_wait", id=id, cursor=cursor, timeout_s=1)
        text, cursor = text + read["text"], read["cursor"]
while True:
    read = call("proc_wait", id=id, cursor=cursor, timeout_s=45)
    text, cursor = text + read["text"], read["cursor"]
    if not read["timed_out"]:
        break
assert read["exit"] == {"code": 5} and text == "hour 1\nhour 2\n", (read, text)
print("two hours have passed")
