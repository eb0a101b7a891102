"""The protocol without a handshake, by the official SDK that speaks it: the client asks first which versions there are."""
import asyncio, os
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

SERVER = StdioServerParameters(command=os.environ["OUTLAST"], args=["mcp"], env=dict(os.environ))


async def story(mode, is_new):
    async with Client(stdio_client(SERVER), mode=mode) as client:
        assert client.protocol_version == "2026-07-28", client.protocol_version
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"proc_start", "call", "report_done"} <= tools, tools
        made = await client.call_tool("call", {"key": "once", "command": "echo made >>$SCRATCH/made; echo result"})
        assert not made.is_error, made
        assert made.structured_content["stored"] is not is_new, made
        wrong = await client.call_tool("call", {"key": "once", "command": "echo other"})
        assert wrong.is_error and "key_conflict" in wrong.content[0].text, wrong
        if not is_new:
            done = await client.call_tool("report_done", {"summary": "without a handshake"})
            assert not done.is_error, done


asyncio.run(story("auto", True))
asyncio.run(story("2026-07-28", False))
assert open(os.environ["SCRATCH"] + "/made").read() == "made\n"
print("the story is told")
