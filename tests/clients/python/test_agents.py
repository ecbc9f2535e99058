"""The OpenAI Agents SDK for Python."""
import asyncio

import pytest
from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from pydantic import BaseModel

set_tracing_disabled(True)


class Person(BaseModel):
    name: str
    born: int


@pytest.fixture
def scripted(base_url: str, api_key: str, model: str) -> OpenAIResponsesModel:
    return OpenAIResponsesModel(model=model, openai_client=AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0, timeout=30))


def test_text(scripted: OpenAIResponsesModel) -> None:
    result = Runner.run_sync(Agent(name="greeter", instructions="Be kind.", model=scripted), "Say hello.")
    assert result.final_output == "Hello from the script."


def test_stream(scripted: OpenAIResponsesModel, story: str) -> None:
    async def listen() -> tuple[str, str]:
        result = Runner.run_streamed(Agent(name="teller", model=scripted), "Tell a story.")
        heard = ""
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                heard += event.data.delta
        return heard, result.final_output

    assert asyncio.run(listen()) == (story, story)


@pytest.mark.parametrize("chained", [False, True], ids=["history", "previous_response_id"])
def test_function_loop(scripted: OpenAIResponsesModel, weather: dict[str, str], chained: bool) -> None:
    asked = []

    @function_tool
    def get_weather(city: str) -> str:
        """The weather in a city, now."""
        asked.append(city)
        return weather[city]

    agent = Agent(name="forecaster", model=scripted, tools=[get_weather], model_settings=ModelSettings(parallel_tool_calls=True))
    result = Runner.run_sync(agent, "Compare the weather in Oslo and Rome.", auto_previous_response_id=chained)
    assert sorted(asked) == ["Oslo", "Rome"]
    assert result.final_output == "Rome is warmer than Oslo."
    again = Runner.run_sync(agent, result.to_input_list() + [{"role": "user", "content": "Say hello."}])
    assert again.final_output == "Hello from the script."


def test_output_type(scripted: OpenAIResponsesModel) -> None:
    result = Runner.run_sync(Agent(name="reader", model=scripted, output_type=Person), "Extract the person.")
    assert result.final_output == Person(name="Ada Lovelace", born=1815)
