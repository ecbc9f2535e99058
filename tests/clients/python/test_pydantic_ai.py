"""Pydantic AI's model for the Responses API."""
import asyncio

import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


class Person(BaseModel):
    name: str
    born: int


@pytest.fixture
def scripted(base_url: str, api_key: str, model: str) -> OpenAIResponsesModel:
    client = AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0, timeout=30)
    return OpenAIResponsesModel(model, provider=OpenAIProvider(openai_client=client))


def test_text(scripted: OpenAIResponsesModel) -> None:
    result = Agent(scripted, instructions="Be kind.").run_sync("Say hello.")
    assert result.output == "Hello from the script."


def test_stream(scripted: OpenAIResponsesModel, story: str) -> None:
    async def listen() -> list[str]:
        async with Agent(scripted).run_stream("Tell a story.") as result:
            return [piece async for piece in result.stream_text(delta=True, debounce_by=None)]

    pieces = asyncio.run(listen())
    assert "".join(pieces) == story
    assert len(pieces) > 1


def test_function_loop(scripted: OpenAIResponsesModel, weather: dict[str, str]) -> None:
    agent, asked = Agent(scripted), []

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather in a city, now."""
        asked.append(city)
        return weather[city]

    first = agent.run_sync("Compare the weather in Oslo and Rome.")
    assert sorted(asked) == ["Oslo", "Rome"]
    assert first.output == "Rome is warmer than Oslo."
    second = agent.run_sync("Say hello.", message_history=first.all_messages())
    assert second.output == "Hello from the script."


def test_reasoning_comes_along(scripted: OpenAIResponsesModel) -> None:
    agent = Agent(scripted)
    first = agent.run_sync("Think it over.")
    assert first.output == "The coin stays on its edge."
    assert agent.run_sync("Say hello.", message_history=first.all_messages()).output == "Hello from the script."


def test_structured_output(scripted: OpenAIResponsesModel) -> None:
    result = Agent(scripted, output_type=NativeOutput(Person)).run_sync("Extract the person.")
    assert result.output == Person(name="Ada Lovelace", born=1815)
