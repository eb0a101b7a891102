"""The protocol without a handshake over HTTP, by the official SDK that speaks it."""
import asyncio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from http_server import TOKEN, URL, server


async def story(mode):
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60)
    async with http, Client(streamable_http_client(URL, http_client=http), mode=mode) as client:
        assert client.protocol_version == "2026-07-28", client.protocol_version
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"proc_start", "call", "report_done"} <= tools, tools
        made = await client.call_tool("call", {"key": "once", "command": "echo result"})
        assert not made.is_error, made
        done = await client.call_tool("report_done", {"summary": "without a handshake over HTTP"})
        assert not done.is_error, done


asyncio.run(story("auto"))
asyncio.run(story("2026-07-28"))
server.terminate()
server.wait()
print("the story is told")
