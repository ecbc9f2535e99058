"""What holds with a real model behind antiphon: the shape of answers, never their words (it has 135 million weights)."""
import json

import openai
import pytest
from openai import OpenAI

MODEL = "smollm2"
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
    "strict": True,
}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 40}, "born": {"type": "integer"}},
    "required": ["name", "born"],
    "additionalProperties": False,
}


def test_text(client: OpenAI) -> None:
    response = client.responses.create(model=MODEL, input="Say hello.", max_output_tokens=32, temperature=0)
    assert response.status in ("completed", "incomplete")
    assert response.output_text.strip()
    assert response.usage and response.usage.input_tokens > 0 and 0 < response.usage.output_tokens <= 32


def test_the_token_limit_makes_it_incomplete(client: OpenAI) -> None:
    response = client.responses.create(model=MODEL, input="Tell a very long story about a fox.", max_output_tokens=16, temperature=0)
    assert (response.status, response.incomplete_details and response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert response.usage and response.usage.output_tokens == 16


def test_stream(client: OpenAI) -> None:
    with client.responses.create(model=MODEL, input="Tell a story.", max_output_tokens=48, temperature=0, stream=True) as stream:
        events = list(stream)
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(deltas) > 8, "tokens come as the model makes them"
    assert events[-1].type in ("response.completed", "response.incomplete")
    assert "".join(deltas) == events[-1].response.output_text
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert client.responses.retrieve(events[-1].response.id).output_text == events[-1].response.output_text


def test_json_schema(client: OpenAI) -> None:
    response = client.responses.create(
        model=MODEL, input="Describe the person Ada Lovelace.", max_output_tokens=120, temperature=0,
        text={"format": {"type": "json_schema", "name": "person", "schema": PERSON, "strict": True}})
    assert response.status == "completed"
    person = json.loads(response.output_text)
    assert set(person) == {"name", "born"} and isinstance(person["name"], str) and isinstance(person["born"], int)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_function_loop(client: OpenAI, streamed: bool) -> None:
    def ask(**request) -> openai.types.responses.Response:
        request |= {"model": MODEL, "tools": [WEATHER], "max_output_tokens": 64, "temperature": 0}
        if not streamed:
            return client.responses.create(**request)
        with client.responses.stream(**request) as stream:
            return stream.get_final_response()

    first = ask(input="Please use the function get_weather for the city Oslo.")
    [call] = [item for item in first.output if item.type == "function_call"]
    assert call.name == "get_weather" and isinstance(json.loads(call.arguments)["city"], str)
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "It rains, 7 degrees."}
    second = ask(previous_response_id=first.id, input=[output])
    assert second.output_text.strip()
    assert not [item for item in second.output if item.type == "function_call"]


def test_the_chain_is_what_the_model_reads(client: OpenAI) -> None:
    first = client.responses.create(model=MODEL, input="My favourite colour is green.", max_output_tokens=24, temperature=0)
    second = client.responses.create(model=MODEL, input="Hello.", previous_response_id=first.id, max_output_tokens=24, temperature=0)
    alone = client.responses.create(model=MODEL, input="Hello.", max_output_tokens=24, temperature=0)
    assert first.usage and second.usage and alone.usage
    assert second.usage.input_tokens > first.usage.input_tokens > alone.usage.input_tokens > 0


def test_context_overflow(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.responses.create(model=MODEL, input="word " * 3000, max_output_tokens=16)
    assert raised.value.code == "context_length_exceeded"
    assert client.responses.create(model=MODEL, input="Say hello.", max_output_tokens=16).output_text.strip(), "the next request is not harmed"
