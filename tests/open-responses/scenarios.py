"""The 17 scenarios of the Open Responses compliance suite, all at once, as the suite sends them."""
import asyncio
import contextlib
import json
import os
import pathlib
import sys
import tomllib
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import schema

HERE = pathlib.Path(__file__).resolve().parent
BASE_URL = os.environ["ANTIPHON_BASE_URL"]
KEY = os.environ.get("ANTIPHON_API_KEY", "none")
MODEL = os.environ.get("ANTIPHON_MODEL", "scripted")
HEADERS = {"Authorization": f"Bearer {KEY}"}
# Seconds. The suite gives a turn on a WebSocket 30 and the rest no limit.
TURN_WITHIN = 30
TERMINAL = {"response.completed": "completed", "response.failed": "failed", "response.incomplete": "incomplete"}
# A red square of 32 by 32.
IMAGE = ("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAKklEQVR42mO4oKBAU8QwasGoBaMWjFowasGoBaMWjFowasGoBaMWDBUL"
         "AE7YQD2B7wk2AAAAAElFTkSuQmCC")
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the current weather for a location",
    "parameters": {
        "type": "object",
        "properties": {"location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"}},
        "required": ["location"],
    },
}

Scenario = Callable[["Http"], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(run: Scenario) -> Scenario:
    """Lists a function under its name in the suite."""
    SCENARIOS[run.__name__.replace("_", "-")] = run
    return run


def message(role: str, content: object, **more: object) -> dict:
    return {"type": "message", "role": role, "content": content, **more}


def valid(errors: list[str]) -> None:
    assert not errors, "; ".join(errors)


class Http:
    """Plain requests of one scenario."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def post(self, path: str, body: dict) -> tuple[int, dict]:
        async with self.session.post(BASE_URL + path, json=body, headers=HEADERS) as answer:
            return answer.status, json.loads(await answer.read())

    async def respond(self, input: list[dict], **more: object) -> dict:
        """A Response that is completed and has output, as most scenarios ask for it."""
        status, body = await self.post("/responses", {"model": MODEL, "input": input, **more})
        assert status == 200, f"status {status}: {body}"
        valid(schema.errors("ResponseResource", body))
        assert body["output"], "the output is empty"
        assert body["status"] == "completed", f"the response is {body['status']}: {body['error']}"
        return body

    async def compact(self) -> dict:
        status, body = await self.post("/responses/compact", {"model": MODEL, "prompt_cache_key": "compact-conformance", "input": [
            message("user", "I am planning a trip to Kyoto in April."), message("assistant", "Early April is the best time for the blossom.")]})
        assert status == 200, f"status {status}: {body}"
        valid(schema.errors("CompactResource", body))
        assert [item for item in body["output"] if item["type"] == "compaction"], "the output has no compaction item"
        return body

    @contextlib.asynccontextmanager
    async def socket(self) -> AsyncIterator["Socket"]:
        async with self.session.ws_connect(BASE_URL + "/responses", headers=HEADERS, max_msg_size=0) as wire:
            yield Socket(wire)


class Socket:
    """A WebSocket and its turns."""

    def __init__(self, wire: aiohttp.ClientWebSocketResponse) -> None:
        self.wire = wire

    async def turn(self, input: list[dict], **more: object) -> dict:
        """Sends one `response.create` and returns the event that ends it, every one before it valid."""
        await self.wire.send_json({"type": "response.create", "model": MODEL, "input": input, **more})
        async with asyncio.timeout(TURN_WITHIN):
            while True:
                event = json.loads(await self.wire.receive_str())
                valid(schema.event_errors(event, websocket=True))
                if event["type"] in TERMINAL:
                    valid(schema.errors("ResponseResource", event["response"]))
                if event["type"] in TERMINAL or event["type"] == "error":
                    return event

    async def completed(self, input: list[dict], **more: object) -> dict:
        event = await self.turn(input, **more)
        assert event["type"] == "response.completed", f"the turn ended with {json.dumps(event)[:400]}"
        return event["response"]

    async def refused(self, code: str, input: list[dict], **more: object) -> None:
        event = await self.turn(input, **more)
        assert event["type"] == "error" and event["error"]["code"] == code, f"wanted the error {code}, got {json.dumps(event)[:400]}"


@scenario
async def basic_response(http: Http) -> None:
    await http.respond([message("user", "Say hello in exactly 3 words.")])


@scenario
async def assistant_phase(http: Http) -> None:
    await http.respond([
        message("assistant", "I will look at the notes first.", phase="commentary"),
        message("assistant", "The notes say that the meeting is on Monday.", phase="final_answer"),
        message("user", "Say that again in one short sentence.")])


@scenario
async def response_output_phase_schema(_: Http) -> None:
    """Sends nothing: a message of the output may have a phase, one of two and never null."""
    told = message("assistant", [{"type": "output_text", "text": "Hello.", "annotations": []}], id="msg_1", status="completed")
    for phase in ("commentary", "final_answer"):
        valid(schema.errors("ItemField", told | {"phase": phase}))
    for phase in (None, "thinking"):
        assert schema.errors("ItemField", told | {"phase": phase}), f"the phase {phase} is not refused"


@scenario
async def streaming_response(http: Http) -> None:
    body = {"model": MODEL, "input": [message("user", "Count from 1 to 5.")], "stream": True}
    events, ended = [], False
    async with http.session.post(BASE_URL + "/responses", json=body, headers=HEADERS) as answer:
        assert answer.status == 200, f"status {answer.status}: {await answer.text()}"
        assert answer.content_type == "text/event-stream", answer.content_type
        pending = b""
        async for piece, whole in answer.content.iter_chunks():
            pending += piece
            if not whole:
                continue
            # The suite's parser loses an event that is spread over two writes, and every event of a stream with CR LF.
            assert pending.endswith(b"\n\n") and b"\r" not in pending, f"a write is no whole event: {pending[-80:]!r}"
            for block in pending.decode().split("\n\n")[:-1]:
                if block.startswith(":"):
                    continue
                assert not ended, f"{block[:80]!r} comes after [DONE]"
                if block == "data: [DONE]":
                    ended = True
                    continue
                name, data = block.split("\n")
                event = json.loads(data.removeprefix("data: "))
                assert name == f"event: {event['type']}", f"{name!r} stands over {event['type']}"
                valid(schema.event_errors(event))
                events.append(event)
            pending = b""
    assert ended, "the stream does not end with [DONE]"
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["type"] == "response.completed", events[-1]["type"]
    valid(schema.errors("ResponseResource", events[-1]["response"]))
    told = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert told, "the stream has no text"
    last = events[-1]["response"]["output"][-1]
    assert "".join(told) == last["content"][0]["text"], "the deltas are not the text"


@scenario
async def system_prompt(http: Http) -> None:
    await http.respond([message("system", "You are a pirate. Always answer in pirate speak."), message("user", "Say hello.")])


@scenario
async def tool_calling(http: Http) -> None:
    status, body = await http.post("/responses", {
        "model": MODEL, "input": [message("user", "What's the weather like in San Francisco?")], "tools": [WEATHER]})
    assert status == 200, f"status {status}: {body}"
    valid(schema.errors("ResponseResource", body))
    calls = [item for item in body["output"] if item["type"] == "function_call"]
    assert [call["name"] for call in calls] == ["get_weather"], body["output"]
    json.loads(calls[0]["arguments"])


@scenario
async def image_input(http: Http) -> None:
    await http.respond([message("user", [
        {"type": "input_text", "text": "What do you see in this image? Answer in one sentence."}, {"type": "input_image", "image_url": IMAGE}])])


@scenario
async def multi_turn(http: Http) -> None:
    await http.respond([
        message("user", "My name is Alice."), message("assistant", "Hello Alice! Nice to meet you."), message("user", "What is my name?")])


@scenario
async def compact_response(http: Http) -> None:
    await http.compact()


@scenario
async def compact_missing_model(http: Http) -> None:
    status, body = await http.post("/responses/compact", {"input": [message("user", "Hello."), message("assistant", "Hello to you.")]})
    assert status in (400, 422), f"status {status}: {body}"


@scenario
async def websocket_response(http: Http) -> None:
    async with http.socket() as socket:
        await socket.completed([message("user", "Count from 1 to 5.")])


@scenario
async def websocket_sequential_responses(http: Http) -> None:
    async with http.socket() as socket:
        first = await socket.completed([message("user", "Say one.")], store=False)
        second = await socket.completed([message("user", "Say two.")], store=False)
    assert first["id"] != second["id"]


@scenario
async def websocket_continuation(http: Http) -> None:
    async with http.socket() as socket:
        first = await socket.completed([message("user", "Remember the word lantern.")], store=False)
        second = await socket.completed([message("user", "Which word?")], store=False, previous_response_id=first["id"])
    assert second["previous_response_id"] == first["id"]


@scenario
async def websocket_reconnect_store_false_recovery(http: Http) -> None:
    async with http.socket() as socket:
        first = await socket.completed([message("user", "Remember the word lantern.")], store=False)
    async with http.socket() as socket:
        again = [message("user", "Which word?")]
        await socket.refused("previous_response_not_found", again, store=False, previous_response_id=first["id"])
        await socket.completed(again, store=False)


@scenario
async def websocket_previous_response_not_found(http: Http) -> None:
    async with http.socket() as socket:
        await socket.refused("previous_response_not_found", [message("user", "Go on.")], store=False, previous_response_id=f"resp_{'0' * 32}")


@scenario
async def websocket_failed_continuation_evicts_cache(http: Http) -> None:
    async with http.socket() as socket:
        first = await socket.completed([message("user", "Say hello.")], store=False)
        stray = {"type": "function_call_output", "call_id": "call_nobody_made", "output": "{}"}
        failed = await socket.turn([stray], store=False, previous_response_id=first["id"])
        assert failed["type"] in ("error", "response.failed"), f"an output without its call ended with {failed['type']}"
        await socket.refused("previous_response_not_found", [message("user", "Go on.")], store=False, previous_response_id=first["id"])


@scenario
async def websocket_compact_new_chain(http: Http) -> None:
    compacted = await http.compact()
    async with http.socket() as socket:
        await socket.completed([*compacted["output"], message("user", "What did I plan?")], store=False)


async def main(wanted: list[str]) -> int:
    later = {entry["id"]: f"later, issue {entry['issue']}: {entry['reason']}"
             for entry in tomllib.loads((HERE / "later.toml").read_text()).get("scenarios", [])}
    if unknown := sorted((set(wanted) | later.keys()) - SCENARIOS.keys()):
        sys.exit(f"there is no scenario {', '.join(unknown)}, only {', '.join(SCENARIOS)}")
    # A scenario that is asked for by name is run, whatever later.toml says.
    names = wanted or [name for name in SCENARIOS if name not in later]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        results = await asyncio.gather(*(SCENARIOS[name](Http(session)) for name in names), return_exceptions=True)
    failed = 0
    for name, result in zip(names, results):
        failed += result is not None
        print(f"PASS {name}" if result is None else f"FAIL {name} {why(result)}")
    skipped = [] if wanted else sorted(later)
    for name in skipped:
        print(f"SKIP {name} {later[name]}")
    print(f"\n{len(names) - failed} passed, {failed} failed, {len(skipped)} skipped")
    return 1 if failed else 0


def why(error: BaseException) -> str:
    """What a scenario failed of, with the line of the scenario when it is no assertion of ours."""
    if isinstance(error, AssertionError) and str(error):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} {error} (line {next((frame.lineno for frame in place if frame.filename == __file__), '?')})"


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
