"""One scripted antiphon for all Python clients: the one at ANTIPHON_BASE_URL, else one of our own."""
import os
import pathlib
import sys
from collections.abc import Iterator

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
from server import Antiphon  # noqa: E402

STORY = "Once upon a time a little fox — 🦊, née “Füchsin” — crossed the river, and nobody saw her again."


@pytest.fixture(scope="session")
def base_url() -> Iterator[str]:
    if running := os.environ.get("ANTIPHON_BASE_URL"):
        yield running
        return
    with Antiphon(script=HERE.parent / "script.toml") as server:
        yield server.base_url


@pytest.fixture(scope="session")
def api_key() -> str:
    return os.environ.get("ANTIPHON_API_KEY", "none")


@pytest.fixture(scope="session")
def model() -> str:
    return os.environ.get("ANTIPHON_MODEL", "scripted")


@pytest.fixture(scope="session")
def story() -> str:
    """The text of the round `Tell a story`."""
    return STORY


@pytest.fixture
def weather() -> dict[str, str]:
    """What a weather function answers, by city; the rounds of the script go on from these words."""
    return {"Oslo": "rain, 7 degrees", "Rome": "sun, 21 degrees"}
