"""LangChain's ChatOpenAI on the Responses API."""
import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


class Person(BaseModel):
    """A person and the year they were born."""

    name: str
    born: int


@pytest.fixture
def chat(base_url: str, api_key: str, model: str) -> ChatOpenAI:
    return ChatOpenAI(model=model, base_url=base_url, api_key=api_key, use_responses_api=True, max_retries=0, timeout=30)


def test_text(chat: ChatOpenAI) -> None:
    answer = chat.invoke("Say hello.")
    assert answer.text == "Hello from the script."
    assert answer.response_metadata["id"].startswith("resp_")
    assert answer.usage_metadata and answer.usage_metadata["total_tokens"] > 0


def test_stream(chat: ChatOpenAI, story: str) -> None:
    pieces = [piece.text for piece in chat.stream("Tell a story.")]
    assert "".join(pieces) == story
    assert len([piece for piece in pieces if piece]) > 1


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_function_loop(chat: ChatOpenAI, weather: dict[str, str], streamed: bool) -> None:
    @tool
    def get_weather(city: str) -> str:
        """The weather in a city, now."""
        return weather[city]

    bound = chat.bind_tools([get_weather])

    def ask(messages: list):
        if not streamed:
            return bound.invoke(messages)
        whole = None
        for piece in bound.stream(messages):
            whole = piece if whole is None else whole + piece
        return whole

    messages: list = [HumanMessage("Compare the weather in Oslo and Rome.")]
    answer = ask(messages)
    assert [call["args"] for call in answer.tool_calls] == [{"city": "Oslo"}, {"city": "Rome"}]
    messages.append(answer)
    for call in answer.tool_calls:
        messages.append(ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"]))
    assert ask(messages).text == "Rome is warmer than Oslo."


def test_structured_output(chat: ChatOpenAI) -> None:
    reader = chat.with_structured_output(Person, method="json_schema", strict=True)
    assert reader.invoke("Extract the person.") == Person(name="Ada Lovelace", born=1815)


def test_previous_response_id(base_url: str, api_key: str, model: str) -> None:
    chained = ChatOpenAI(model=model, base_url=base_url, api_key=api_key, use_responses_api=True, use_previous_response_id=True, max_retries=0, timeout=30)
    messages: list = [HumanMessage("Say hello.")]
    messages.append(chained.invoke(messages))
    messages.append(HumanMessage("Tell a story."))
    assert chained.invoke(messages).text.startswith("Once upon a time")
