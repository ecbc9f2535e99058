"""An MCP server on standard input and output with one tool. Codex shows it to the model as the namespace `mcp__lighthouse`."""
import json
import sys

FLASH = {
    "name": "flash",
    "description": "Flash the light.",
    "inputSchema": {"type": "object", "properties": {"times": {"type": "integer"}}, "required": ["times"]},
}


def answer(method: str, params: dict) -> dict:
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "lighthouse", "version": "1"}}
    if method == "tools/list":
        return {"tools": [FLASH]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": f"flashed {params['arguments']['times']} times"}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
