#!/usr/bin/env python3
"""Runs the cases against an antiphon of its own. usage: tests/cases/run.py [AREA ...] [--only ID,ID] [--jobs N] [--full]

`ANTIPHON_CASES` names another folder of cases. The last line says how many passed, failed and were skipped.
"""
import argparse
import contextlib
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import install  # noqa: E402
from server import Antiphon, free_ports  # noqa: E402

# The areas that must pass as a whole; others join with what they test.
AREAS = ("upstream-stream", "responses-events", "tool-calls", "leaked-markup", "mcp", "web-and-code", "reasoning", "input", "errors", "state")
DISPUTED_AT_MOST = 5
# Settings of the cases that hold for every server this starts.
SETTINGS = {"two_keys": True, "files": True, "idempotency": True, "keepalive_s": 1, "web_search": True}
# A setting that goes by model name, and the dialect keys it becomes (a callable makes them from the setting's value).
DIALECT_KEYS = {
    "rescue": lambda grammar: {"rescue": "off"} if grammar == "off" else {"call_grammar": grammar, "rescue": "off"},
    "strip_tokens": lambda tokens: {"strip_tokens": tokens},
    "think_tags": lambda mode: {"think_tags": "on" if mode is True else mode},
    "reasoning_dialect": lambda param: {"reasoning_param": param},
    "tool_id_format": lambda form: {"call_id_form": form},
    "system_policy": lambda policy: {"system_policy": policy},
}


def main() -> int:
    options = arguments()
    cases = [case for case in load(options.cases) if wanted(case, options)]
    if not cases:
        sys.exit(f"no case of {options.cases} is in the areas {', '.join(options.areas)}")
    left_out = set_aside(cases, ours=options.cases == HERE / "public")
    run = [case for case in cases if case["id"] not in left_out]
    port = free_ports(2)
    with searxng() as search, Antiphon(config(run, port, search), tenants=("a", "b")) as server:
        report = play(run, server, port, options)
        if any(not case["pass"] for case in report["cases"]):
            print(f"\nThe server's log ends:\n{server.tail()}\n")
    for case, reason in sorted(left_out.items()):
        print(f"SKIP {case} {reason}")
    for case in report["skipped"]:
        print(f"SKIP {case['id']} needs the settings {json.dumps(case['settings'], ensure_ascii=False)}")
    passed = sum(case["pass"] for case in report["cases"])
    failed = len(report["cases"]) - passed
    print(f"\n{passed} passed, {failed} failed, {len(report['skipped']) + len(left_out)} skipped")
    return 0 if passed and not failed else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("areas", nargs="*", default=list(AREAS), metavar="AREA", help="default: %(default)s")
    parser.add_argument("--only", default="", help="ids of cases, with commas between")
    parser.add_argument("--jobs", type=int, default=4, help="cases at once")
    parser.add_argument("--full", action="store_true", help="every reason of a failure, uncut")
    options = parser.parse_args()
    options.cases = pathlib.Path(os.environ.get("ANTIPHON_CASES") or HERE / "public").resolve()
    options.only = {name for name in options.only.split(",") if name}
    return options


def load(folder: pathlib.Path) -> list[dict]:
    """Every case below `folder`; a file holds a list, or an object with `cases`."""
    cases = []
    for file in sorted(folder.rglob("*.json")):
        content = json.loads(file.read_text())
        cases += [case for case in (content if isinstance(content, list) else content.get("cases", [])) if "steps" in case]
    return cases


def wanted(case: dict, options: argparse.Namespace) -> bool:
    if options.only:
        return bool(options.only & {case["id"], case.get("base")})
    return case["area"] in options.areas


def set_aside(cases: list[dict], ours: bool) -> dict[str, str]:
    """The ids that are not run, each with its reason. An entry for a case that is gone is a mistake in our own folder."""
    later = tomllib.loads((HERE / "later.toml").read_text())
    disputed = tomllib.loads((HERE / "disputed.toml").read_text()).get("cases", [])
    if len(disputed) > DISPUTED_AT_MOST or not all(entry.get("reason") for entry in disputed):
        sys.exit(f"disputed.toml holds at most {DISPUTED_AT_MOST} cases, each with a reason")
    known = {case["id"] for case in load(HERE / "public")}
    for entry in later["cases"] + disputed:
        if entry["id"] not in known:
            sys.exit(f"{entry['id']} is set aside, but there is no such case")
    named = {entry["id"]: f"later, issue {entry['issue']}: {entry['reason']}" for entry in later["cases"]}
    named |= {entry["id"]: f"disputed: {entry['reason']}" for entry in disputed}
    aside = {case["id"]: named[case["id"]] for case in cases if case["id"] in named}
    if not ours:
        for case in cases:
            for feature in needs(case) & later["features"].keys():
                entry = later["features"][feature]
                aside.setdefault(case["id"], f"later, issue {entry['issue']}: {entry['reason']}")
    return aside


def needs(case: dict) -> set[str]:
    """The features of later.toml that a case uses, read off its requests."""
    found = set()
    for body in bodies(case["steps"]):
        if body.get("truncation") == "auto":
            found.add("truncation_auto")
        tools = body.get("tools")
        for tool in tools if isinstance(tools, list) else []:
            kind = tool.get("type") if isinstance(tool, dict) else None
            if kind == "file_search":
                found.add("file_search")
            elif kind == "code_interpreter":
                found.add("code_interpreter")
    return found


def bodies(steps: list[dict]) -> list[dict]:
    """The bodies of all requests in `steps`, those inside loops and parallel steps too."""
    found = []
    for step in steps:
        body = step.get("request", {}).get("body")
        found += [body] if isinstance(body, dict) else []
        found += bodies(step.get("steps", [])) + bodies(step.get("parallel", []))
    return found


@contextlib.contextmanager
def searxng():
    """A SearXNG with one result for every query; gives its address."""
    class Answers(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            found = [{"url": "https://example.org/oslo?id=1", "title": "Oslo", "content": "Sunny, 21 degrees.", "engine": "stub"}]
            body = json.dumps({"query": "", "number_of_results": 1, "results": found}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def config(cases: list[dict], port: int, search: str) -> str:
    """The antiphon.toml for these cases: one scripted backend, overrides for the profiles they use, and a search."""
    lines = ["[http]", f"ping_seconds = {SETTINGS['keepalive_s']}", "[net]", f'allow = ["127.0.0.1:{port + 1}", "127.0.0.1:1"]']
    if any("file_search" in (case.get("settings") or {}) for case in cases):
        lines += ["[models]", 'embedding = "e-256"']
    lines += ["[tools.web_search]", 'provider = "searxng"', f'base_url = "{search}"']
    lines += ["[[upstreams]]", 'name = "script"', f'base_url = "http://127.0.0.1:{port}/v1"', 'dialect = "generic"',
              'models = ["m*", "text-embedding-*", "e-*"]']
    profiles = json.loads((HERE / "profiles.json").read_text())
    for name in sorted({case["profile"] for case in cases if case.get("profile")}):
        if name not in profiles:
            sys.exit(f"a case asks for the profile {name}, which profiles.json does not know")
        lines += ["[[models.overrides]]", f'match = "m.{name}-*"']
        for setting, value in profiles[name].items():
            # JSON's strings and lists of strings are TOML's.
            lines += [f"{key} = {json.dumps(it, ensure_ascii=False)}" for key, it in DIALECT_KEYS[setting](value).items()]
    return "\n".join(lines) + "\n"


def play(cases: list[dict], server: Antiphon, port: int, options: argparse.Namespace) -> dict:
    """Runs the cases through runner.py, which prints as it goes, and returns its report."""
    profiles = ",".join(json.loads((HERE / "profiles.json").read_text()))
    settings = SETTINGS | ({"file_search": True} if any("file_search" in (case.get("settings") or {}) for case in cases) else {})
    with tempfile.TemporaryDirectory() as folder:
        script, answer = pathlib.Path(folder) / "cases.json", pathlib.Path(folder) / "report.json"
        script.write_text(json.dumps(cases))
        ended = subprocess.run([
            install.python("cases"), HERE / "runner.py", "--base-url", server.base_url, "--upstream-port", str(port), "--cases", script,
            "--json", answer, "--api-key", server.keys["a"], "--api-key-b", server.keys["b"], "--profiles", profiles,
            "--settings", json.dumps(settings), "--jobs", str(options.jobs),
            # A debug build on two cores that may be busy: the limits of the cases are for a server at rest.
            "--timeout-scale", "2", *(["--full"] if options.full else [])])
        if not answer.exists():
            sys.exit(f"the case runner ended with {ended.returncode} and left no report")
        return json.loads(answer.read_text())


if __name__ == "__main__":
    sys.exit(main())
