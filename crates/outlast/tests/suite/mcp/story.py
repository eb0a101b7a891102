"""What an agent does with the tools of its run, by the official SDK."""
import asyncio, os
import jsonschema
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

SERVER = StdioServerParameters(command=os.environ["OUTLAST"], args=["mcp"], env=dict(os.environ))
KEPT = {}


async def call(session, tool, **arguments):
    result = await session.call_tool(tool, arguments)
    assert not result.isError, (tool, arguments, result.content)
    return result.structuredContent


async def first():
    async with stdio_client(SERVER) as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        assert "report_done" in hello.instructions
        tools = (await session.list_tools()).tools
        names = {tool.name for tool in tools}
        wanted = """proc_start proc_list proc_read proc_write proc_wait proc_stop run_spawn run_status run_result
            run_wait run_stop call checkpoint report_done report_blocked ask_human report_usage budget_left note"""
        assert set(wanted.split()) <= names, names
        for tool in tools:
            jsonschema.Draft202012Validator.check_schema(tool.inputSchema)
            assert tool.annotations is not None and tool.description
        started = await call(session, "proc_start", name="three", key="three",
                             command="for i in 1 2 3; do echo line $i; sleep 0.2; done; sleep 1; exit 4")
        KEPT["three"] = started["id"]
        text, cursor = "", 0
        while text.count("\n") < 2:
            read_now = await call(session, "proc_read", id=started["id"], cursor=cursor)
            text, cursor = text + read_now["text"], read_now["cursor"]
        KEPT["text"], KEPT["cursor"] = text, cursor
        await call(session, "proc_start", name="bound", command="sleep 600")
        await call(session, "proc_start", name="kept", command="sleep 600", persist=True)
        child = await call(session, "run_spawn", key="child", command="echo from the child")
        KEPT["child"] = child["id"]
        made = await call(session, "call", key="once", command="echo made >>$SCRATCH/made; echo result")
        assert made["stdout"] == "result\n" and not made["stored"], made
        await call(session, "checkpoint", text="half of it is done")
        # The connection is lost here.


async def second():
    async with stdio_client(SERVER) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        again = await call(session, "proc_start", name="three", key="three",
                           command="for i in 1 2 3; do echo line $i; sleep 0.2; done; sleep 1; exit 4")
        assert again["id"] == KEPT["three"] and again["existed"], again
        waited = await call(session, "proc_wait", id="three", cursor=KEPT["cursor"])
        assert waited["exit"] == {"code": 4} and not waited["timed_out"], waited
        assert KEPT["text"] + waited["text"] == "line 1\nline 2\nline 3\n", (KEPT, waited)
        done = await call(session, "run_wait", id="child")
        assert done["state"] == "completed", done
        result = await call(session, "run_result", id=KEPT["child"])
        assert result["last_output"] == "from the child\n", result
        made = await call(session, "call", key="once", command="echo made >>$SCRATCH/made; echo result")
        assert made["stored"] and made["stdout"] == "result\n", made
        assert open(os.environ["SCRATCH"] + "/made").read() == "made\n"
        other = await session.call_tool("call", {"key": "once", "command": "echo other"})
        assert other.isError and "key_conflict" in other.content[0].text, other
        stranger = await session.call_tool("proc_read", {"id": os.environ["OUTLAST_RUN_ID"]})
        assert stranger.isError, "its own run is none of its processes"
        listed = (await call(session, "proc_list"))["processes"]
        assert {row["name"] for row in listed} == {"three", "bound", "kept"}, listed
        typed = await call(session, "proc_start", name="cat", command="cat", tty=True)
        while (await call(session, "run_status", id="cat"))["state"] != "running":
            pass
        await call(session, "proc_write", id="cat", text="hello\n")
        seen = ""
        while seen.count("hello") < 2:
            seen = (await call(session, "proc_read", id=typed["id"]))["text"]
        stopped = await call(session, "proc_stop", id="cat", now=True)
        assert stopped["state"] == "stopped", stopped
        short = await call(session, "proc_wait", id="bound", timeout_s=0)
        assert short["timed_out"], short
        assert "limits" in await call(session, "budget_left")
        await call(session, "report_usage", input_tokens=10)
        await call(session, "report_done", summary="all is done")


asyncio.run(first())
asyncio.run(second())
print("the story is told")
