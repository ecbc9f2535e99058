"""The official Python SDK: what it types, streams, parses, pages and raises."""
import asyncio
import itertools
import json
from collections.abc import Iterator

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city, now.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
    "strict": True,
}


class Person(BaseModel):
    name: str
    born: int


@pytest.fixture(scope="module")
def client(base_url: str, api_key: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=base_url, api_key=api_key, max_retries=0, timeout=30) as client:
        yield client


def test_text(client: OpenAI, model: str) -> None:
    response = client.responses.create(model=model, input="Say hello.", metadata={"from": "test"})
    assert response.output_text == "Hello from the script."
    assert (response.status, response.object, response.model) == ("completed", "response", model)
    assert response.id.startswith("resp_")
    assert response.metadata == {"from": "test"}
    assert response.usage and response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens > 0
    assert response._request_id, "an answer can be found again in the log by its x-request-id"


def test_stream(client: OpenAI, model: str, story: str) -> None:
    events = list(client.responses.create(model=model, input="Tell a story.", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == story
    assert len(deltas) > 1, "the text comes as the model says it, not all at once"
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == story
    assert client.responses.retrieve(events[-1].response.id).output_text == story


def test_stream_helper(client: OpenAI, model: str, story: str) -> None:
    with client.responses.stream(model=model, input="Tell a story.") as stream:
        snapshots = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert snapshots[-1] == story == final.output_text
    assert all(story.startswith(snapshot) for snapshot in snapshots)


def test_parse(client: OpenAI, model: str) -> None:
    response = client.responses.parse(model=model, input="Extract the person.", text_format=Person)
    assert response.output_parsed == Person(name="Ada Lovelace", born=1815)
    assert response.text and response.text.format and response.text.format.type == "json_schema"


def test_parse_streamed(client: OpenAI, model: str) -> None:
    with client.responses.stream(model=model, input="Extract the person.", text_format=Person) as stream:
        assert stream.get_final_response().output_parsed == Person(name="Ada Lovelace", born=1815)


def test_function_loop_by_id(client: OpenAI, model: str, weather: dict[str, str]) -> None:
    first = client.responses.create(model=model, input="What is the weather in Oslo?", tools=[WEATHER])
    [call] = [item for item in first.output if item.type == "function_call"]
    assert (call.name, json.loads(call.arguments), call.status) == ("get_weather", {"city": "Oslo"}, "completed")
    output = {"type": "function_call_output", "call_id": call.call_id, "output": weather["Oslo"]}
    second = client.responses.create(model=model, previous_response_id=first.id, input=[output], tools=[WEATHER])
    assert second.output_text == "It rains in Oslo at 7 degrees."
    assert second.previous_response_id == first.id


def test_function_loop_by_hand(client: OpenAI, model: str, weather: dict[str, str]) -> None:
    """Nothing stored: the client sends the whole history, with the items as they came."""
    history: list = [{"role": "user", "content": "Compare the weather in Oslo and Rome."}]
    first = client.responses.create(model=model, input=history, tools=[WEATHER], store=False)
    calls = [item for item in first.output if item.type == "function_call"]
    assert [json.loads(call.arguments)["city"] for call in calls] == ["Oslo", "Rome"]
    assert len({call.call_id for call in calls}) == 2
    assert first.output_text == "Let me look at both."
    history += [item.model_dump(exclude_none=True) for item in first.output]
    history += [{"type": "function_call_output", "call_id": call.call_id, "output": weather[json.loads(call.arguments)["city"]]} for call in calls]
    assert client.responses.create(model=model, input=history, tools=[WEATHER], store=False).output_text == "Rome is warmer than Oslo."
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)


def test_function_call_streamed(client: OpenAI, model: str) -> None:
    with client.responses.stream(model=model, input="What is the weather in Oslo?", tools=[WEATHER]) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert "".join(e.delta for e in events if e.type == "response.function_call_arguments.delta") == '{"city":"Oslo"}'
    [call] = final.output
    assert call.type == "function_call" and call.arguments == '{"city":"Oslo"}'


def test_an_output_without_its_call_is_refused(client: OpenAI, model: str) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.responses.create(model=model, input=[{"type": "function_call_output", "call_id": "call_nobody", "output": "x"}])
    assert raised.value.param == "input" and "call_nobody" in raised.value.message


def test_reasoning(client: OpenAI, model: str) -> None:
    raw = client.responses.create(model=model, input="Think it over.")
    [thought] = [item for item in raw.output if item.type == "reasoning"]
    assert thought.content and "".join(part.text for part in thought.content) == "Both sides have a point."
    assert raw.output_text == "The coin stays on its edge."
    with client.responses.stream(model=model, input="Think it over.", reasoning={"summary": "auto"}) as stream:
        events = list(stream)
    assert "".join(e.delta for e in events if e.type == "response.reasoning_summary_text.delta") == "Both sides have a point."


def test_retrieve_and_delete(client: OpenAI, model: str) -> None:
    made = client.responses.create(model=model, input="Say hello.")
    assert client.responses.retrieve(made.id).to_dict() == made.to_dict()
    client.responses.delete(made.id)
    for again in (client.responses.retrieve, client.responses.delete, client.responses.input_items.list):
        with pytest.raises(openai.NotFoundError) as raised:
            again(made.id)
        assert made.id in raised.value.message


def test_what_is_kept_is_what_was_answered(client: OpenAI, model: str) -> None:
    """Not the same value alone, the same text: schemas and arguments come back with their keys in order and their numbers as written."""
    tool = WEATHER | {"parameters": {"type": "object", "properties": {"z": {"maximum": 1.0}, "a": {"type": "string"}}}, "strict": False}
    asked: list = [{"role": "user", "content": "Say hello."}, {"type": "acme:note", "z": 1.0, "a": 2}]
    made = client.responses.with_raw_response.create(model=model, input=asked, tools=[tool]).http_response.text
    response_id = json.loads(made)["id"]
    assert client.responses.with_raw_response.retrieve(response_id).http_response.text == made
    items = client.responses.input_items.with_raw_response.list(response_id).http_response.text
    assert '"type":"acme:note","z":1.0,"a":2' in items


def test_pages_go_on_after_an_item_of_a_foreign_type(client: OpenAI, model: str) -> None:
    asked: list = [{"role": "user", "content": "Say hello."}, *({"type": "acme:note", "number": number} for number in range(3))]
    made = client.responses.create(model=model, input=asked)
    pages = client.responses.input_items.list(made.id, order="asc", limit=1)
    # An SDK turns pages for ever when a cursor leads nowhere.
    items = list(itertools.islice(pages, 5))
    assert len(items) == 4 and len({item.id for item in items}) == 4


def test_input_items_page_by_page(client: OpenAI, model: str) -> None:
    said = ["one", "two", "three"]
    made = client.responses.create(model=model, input=[{"role": "user", "content": text} for text in said])

    def texts(**options) -> list[str]:
        return [item.content[0].text for item in client.responses.input_items.list(made.id, **options)]

    assert texts(order="asc") == said
    assert texts(order="asc", limit=1) == said, "the SDK turns the pages until has_more is false"
    assert texts() == said[::-1], "newest first, unless asked otherwise"
    ids = [item.id for item in client.responses.input_items.list(made.id)]
    assert len(set(ids)) == 3


def test_chain(client: OpenAI, model: str) -> None:
    first = client.responses.create(model=model, input="Say hello.")
    second = client.responses.create(model=model, previous_response_id=first.id, input="Say it again.")
    assert second.previous_response_id == first.id and second.id != first.id
    with pytest.raises(openai.BadRequestError) as raised:
        client.responses.create(model=model, previous_response_id="resp_nowhere", input="Say hello.")
    assert (raised.value.code, raised.value.param) == ("previous_response_not_found", "previous_response_id")


def test_conversation(client: OpenAI, model: str) -> None:
    talk = client.conversations.create(metadata={"topic": "hello"}, items=[{"type": "message", "role": "user", "content": "I am Ada."}])
    assert talk.id.startswith("conv_") and talk.metadata == {"topic": "hello"}
    response = client.responses.create(model=model, conversation=talk.id, input="Say hello.")
    assert response.conversation and response.conversation.id == talk.id
    items = list(client.conversations.items.list(talk.id, order="asc"))
    assert [(item.role, item.content[0].text) for item in items] == [
        ("user", "I am Ada."), ("user", "Say hello."), ("assistant", "Hello from the script.")]
    assert client.conversations.update(talk.id, metadata={"topic": "bye"}).metadata == {"topic": "bye"}
    assert client.conversations.retrieve(talk.id).metadata == {"topic": "bye"}
    added = client.conversations.items.create(talk.id, items=[{"type": "message", "role": "user", "content": "Bye."}])
    assert [item.type for item in added.data] == ["message"]
    assert client.conversations.delete(talk.id).deleted is True
    with pytest.raises(openai.NotFoundError):
        client.conversations.retrieve(talk.id)


def test_incomplete(client: OpenAI, model: str) -> None:
    response = client.responses.create(model=model, input="Run out of tokens.")
    assert response.status == "incomplete"
    assert response.incomplete_details and response.incomplete_details.reason == "max_output_tokens"
    assert response.output_text == "This sentence is never"


def test_bad_requests_name_the_parameter(client: OpenAI, model: str) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.responses.create(model=model, input="Say hello.", temperature=3)
    assert raised.value.param == "temperature" and raised.value.type == "invalid_request_error"
    with pytest.raises(openai.BadRequestError) as raised:
        client.responses.create(input="Say hello.")
    assert raised.value.param == "model"


def test_rate_limit(client: OpenAI, model: str) -> None:
    with pytest.raises(openai.RateLimitError) as raised:
        client.responses.create(model=model, input="Be refused.")
    assert raised.value.status_code == 429


def test_a_break_in_the_stream_is_an_error_and_a_failed_response(client: OpenAI, model: str) -> None:
    heard = []
    with pytest.raises(openai.APIError, match="breaks off"):
        for event in client.responses.create(model=model, input="Break off.", stream=True):
            heard.append(event)
    assert "This sentence br".startswith("".join(e.delta for e in heard if e.type == "response.output_text.delta") or "nothing")
    failed = client.responses.retrieve(heard[0].response.id)
    assert failed.status == "failed" and failed.error and failed.error.message


def test_async(base_url: str, api_key: str, model: str, story: str) -> None:
    async def talk() -> None:
        async with AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0, timeout=30) as client:
            answers = await asyncio.gather(*(client.responses.create(model=model, input="Say hello.") for _ in range(8)))
            assert {answer.output_text for answer in answers} == {"Hello from the script."}
            assert len({answer.id for answer in answers}) == 8
            stream = await client.responses.create(model=model, input="Tell a story.", stream=True)
            assert "".join([event.delta async for event in stream if event.type == "response.output_text.delta"]) == story
            async with client.responses.stream(model=model, input="Tell a story.") as helper:
                assert (await helper.get_final_response()).output_text == story

    asyncio.run(talk())
