"""Codex CLI with antiphon as its provider: it must really run what the scripted model asks for, and hand the result back."""
import json
import os
import pathlib
import subprocess
import sys

import install
import pytest

LIGHTHOUSE = pathlib.Path(__file__).with_name("lighthouse.py")
CONFIG = """
model = "{model}"
model_provider = "antiphon"
approval_policy = "never"
sandbox_mode = "danger-full-access"
# Codex offers OpenAI's hosted search unless told otherwise, and the server under test has no search provider.
web_search = "disabled"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.antiphon]
name = "antiphon"
base_url = "{base_url}"
wire_api = "responses"
env_key = "ANTIPHON_API_KEY"
request_max_retries = 0
stream_max_retries = 0

[mcp_servers.lighthouse]
command = {python}
args = [{lighthouse}]
"""


@pytest.fixture
def workspace(tmp_path: pathlib.Path, base_url: str, model: str) -> pathlib.Path:
    """An empty folder that Codex works in, with its home beside it."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    config = CONFIG.format(model=model, base_url=base_url, python=json.dumps(sys.executable), lighthouse=json.dumps(str(LIGHTHOUSE)))
    (home / "config.toml").write_text(config)
    return work


def codex(workspace: pathlib.Path, prompt: str, api_key: str, resume: str = "") -> list[dict]:
    """Runs `codex exec` to its end and returns the events that it reports; with `resume` it goes on with that session."""
    program = install.install("clients") / "node" / "node_modules" / ".bin" / "codex"
    env = {
        "PATH": f"{install.node('clients')}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(workspace.parent / "home"),
        "CODEX_HOME": str(workspace.parent / "home"),
        "ANTIPHON_API_KEY": api_key,
    }
    ended = subprocess.run([program, "exec", *(["resume", resume] if resume else []), "--skip-git-repo-check", "--json", prompt], cwd=workspace, env=env, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]


def items(events: list[dict], kind: str) -> list[dict]:
    return [event["item"] for event in events if event["type"] == "item.completed" and event["item"]["type"] == kind]


def test_a_shell_command_runs(workspace: pathlib.Path, api_key: str) -> None:
    events = codex(workspace, "Please probe the shell.", api_key)
    assert (workspace / "proof.txt").read_text() == "lantern-42\n"
    [command] = items(events, "command_execution")
    assert (command["exit_code"], command["aggregated_output"].strip()) == (0, "lantern-42")
    assert [item["text"] for item in items(events, "agent_message")] == ["The command printed lantern-42."]
    [end] = [event for event in events if event["type"] == "turn.completed"]
    assert end["usage"]["input_tokens"] > 0


def test_thoughts_come_back_sealed_with_the_next_request(workspace: pathlib.Path, api_key: str) -> None:
    """Codex stores nothing with the server: it sends the reasoning item back as it came, and a session goes on in another process."""
    events = codex(workspace, "Please probe the memory.", api_key)
    assert [item["text"] for item in items(events, "reasoning")] == ["First I light the beacon."]
    assert [item["text"] for item in items(events, "agent_message")] == ["The beacon is lit."]
    [begun] = [event for event in events if event["type"] == "thread.started"]
    again = codex(workspace, "Please probe the shell.", api_key, resume=begun["thread_id"])
    assert [item["text"] for item in items(again, "agent_message")] == ["The command printed lantern-42."]


def test_a_call_in_a_namespace_reaches_its_server(workspace: pathlib.Path, api_key: str) -> None:
    events = codex(workspace, "Please probe the namespace.", api_key)
    [call] = items(events, "mcp_tool_call")
    assert (call["server"], call["tool"], call["arguments"], call["status"]) == ("lighthouse", "flash", {"times": 3}, "completed")
    assert [item["text"] for item in items(events, "agent_message")] == ["The lighthouse answered."]


def test_a_refusal_ends_the_turn_and_names_the_request(workspace: pathlib.Path, api_key: str) -> None:
    with pytest.raises(AssertionError, match=r"429 Too Many Requests, request id: \S+"):
        codex(workspace, "Be refused.", api_key)
