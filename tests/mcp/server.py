"""An MCP server of the Python SDK. usage: server.py streamable|json|stateless|sse|stdio [PORT]"""
import asyncio
import sys

from mcp.server.mcpserver import Context, Image, MCPServer

server = MCPServer("python", log_level="WARNING")
calls = 0


@server.tool()
def add(a: float, b: float) -> float:
    """Adds."""
    return a + b


@server.tool()
async def talk(context: Context) -> str:
    """Says things before it answers."""
    await context.report_progress(1, 2)
    await context.info("half way")
    return "done"


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("no such city")


@server.tool()
def picture() -> Image:
    """A picture."""
    return Image(data=b"\x89PNG\r\n\x1a\n", format="png")


@server.tool()
async def hang() -> str:
    """Never ends by itself; `heard` tells when it was cancelled."""
    try:
        await asyncio.Event().wait()
    finally:
        cancelled.set()
    return "never"


@server.tool()
async def heard() -> str:
    """Waits until `hang` was cancelled."""
    await asyncio.wait_for(cancelled.wait(), 10)
    return "cancelled"


cancelled = asyncio.Event()

kind = sys.argv[1]
if kind == "stdio":
    server.run("stdio")
else:
    port = int(sys.argv[2])
    if kind == "sse":
        server.run("sse", port=port)
    else:
        server.run("streamable-http", port=port, json_response=kind == "json", stateless_http=kind == "stateless")
