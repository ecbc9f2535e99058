"""An MCP server with one tool, on http://127.0.0.1:8100/mcp.

    pip install 'mcp>=2' && python3 examples/dice.py
"""

import random

from mcp.server.mcpserver import MCPServer

server = MCPServer("dice")


@server.tool()
def roll(sides: int = 6) -> int:
    """Throws a die."""
    return random.randint(1, sides)


server.run("streamable-http", port=8100)
