"""A real small model on a free port, and antiphon in front of it."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator

import pytest
from openai import OpenAI

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from server import Antiphon, free_ports  # noqa: E402

# Seconds; it reads 90 MB from disk and warms up.
MODEL_READY_WITHIN = 120


@pytest.fixture(scope="session")
def upstream() -> Iterator[str]:
    """The address of llama.cpp's server, once it is healthy."""
    port = free_ports()
    with tempfile.TemporaryFile() as log:
        model = subprocess.Popen([sys.executable, HERE / "smollm2.py", str(port)], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            until = time.monotonic() + MODEL_READY_WITHIN
            while not healthy(f"http://127.0.0.1:{port}/health"):
                if model.poll() is not None or time.monotonic() > until:
                    log.seek(0)
                    pytest.fail("the model did not start; its log ends:\n" + log.read().decode(errors="replace")[-2000:], pytrace=False)
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            model.terminate()
            try:
                model.wait(10)
            except subprocess.TimeoutExpired:
                model.kill()


@pytest.fixture(scope="session")
def client(request: pytest.FixtureRequest) -> Iterator[OpenAI]:
    """The OpenAI SDK on antiphon: the one at ANTIPHON_BASE_URL, else one of our own before the model."""
    if running := os.environ.get("ANTIPHON_BASE_URL"):
        yield OpenAI(base_url=running, api_key="none", max_retries=0, timeout=120)
        return
    upstream = request.getfixturevalue("upstream")
    with Antiphon(f'[[upstreams]]\nname = "llama"\nbase_url = "{upstream}"\n') as server:
        yield OpenAI(base_url=server.base_url, api_key="none", max_retries=0, timeout=120)


def healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False
