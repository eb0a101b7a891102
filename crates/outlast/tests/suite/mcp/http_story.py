"""What an agent does with the tools of its run over HTTP, by the official SDK."""
import asyncio
import httpx
from datetime import timedelta
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from http_server import TOKEN, URL, server

KEPT = {}


async def call(session, tool, **arguments):
    result = await session.call_tool(tool, arguments)
    assert not result.isError, (tool, arguments, result.content)
    return result.structuredContent


def client():
    return httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60)


async def first():
    async with client() as http, streamable_http_client(URL, http_client=http) as (read, write, _), \
            ClientSession(read, write) as session:
        hello = await session.initialize()
        assert "report_done" in hello.instructions
        names = {tool.name for tool in (await session.list_tools()).tools}
        assert {"proc_start", "proc_read", "call", "report_done"} <= names, names
        started = await call(session, "proc_start", name="two", key="two", command="echo one; read -r _ <gate; echo two; exit 4")
        text, cursor = "", 0
        while "one\n" not in text:
            part = await call(session, "proc_read", id=started["id"], cursor=cursor)
            text, cursor = text + part["text"], part["cursor"]
        KEPT.update(id=started["id"], text=text, cursor=cursor)
        made = await call(session, "call", key="once", command="echo made >>$SCRATCH/made; echo result")
        assert made["stdout"] == "result\n" and not made["stored"], made
        several = await asyncio.gather(*(call(session, "budget_left") for _ in range(20)))
        assert all("limits" in left for left in several)
        # The connection is lost here.


async def second():
    async with client() as http, streamable_http_client(URL, http_client=http) as (read, write, _), \
            ClientSession(read, write) as session:
        await session.initialize()
        made = await call(session, "call", key="once", command="echo made >>$SCRATCH/made; echo result")
        assert made["stored"], made
        heard = []

        async def progress(done, _total, message):
            heard.append((done, message))
            if len(heard) == 1:
                # The call goes on until the process may end, so that the answer comes as a stream.
                with open("gate", "w") as gate:
                    gate.write("\n")

        waited = await session.call_tool("proc_wait", {"id": "two", "cursor": KEPT["cursor"]},
                                         read_timeout_seconds=timedelta(seconds=50), progress_callback=progress)
        waited = waited.structuredContent
        assert heard and heard[0][0] == 1, heard
        assert waited["exit"] == {"code": 4}, waited
        assert KEPT["text"] + waited["text"] == "one\ntwo\n", (KEPT, waited)
        stranger = await session.call_tool("proc_read", {"id": "no-such-run"})
        assert stranger.isError
        await call(session, "report_done", summary="told over HTTP")


asyncio.run(first())
asyncio.run(second())
server.terminate()
server.wait()
print("the story is told")
