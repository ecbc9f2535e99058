#!/usr/bin/env python3
"""Runs the pinned client programs against a scripted antiphon. usage: tests/clients/run.py [python|node|smoke ...]

Starts `antiphon serve --script` unless ANTIPHON_BASE_URL names a running one (with this folder's script.toml). All kinds
run, whatever fails; a client that cannot be installed or started is a failure.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import install  # noqa: E402
from server import Antiphon  # noqa: E402

KINDS = ("python", "node", "smoke")


def main() -> int:
    kinds = sys.argv[1:] or list(KINDS)
    if unknown := set(kinds) - set(KINDS):
        sys.exit(f"there is no {', '.join(unknown)} here, only {', '.join(KINDS)}")
    folder = install.install("clients")
    if running := os.environ.get("ANTIPHON_BASE_URL"):
        return run(kinds, folder, running)
    with Antiphon(script=HERE / "script.toml") as server:
        code = run(kinds, folder, server.base_url)
        if code:
            print(f"\nThe server's log ends:\n{server.tail()}")
    return code


def run(kinds: list[str], folder: pathlib.Path, base_url: str) -> int:
    node = install.node("clients")
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")},
        "ANTIPHON_BASE_URL": base_url,
        "ANTIPHON_CLIENTS": str(folder / "node"),
        "ANTIPHON_NODE": str(node),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    failed = []
    with tempfile.TemporaryDirectory() as bodies:
        commands = {
            "python": [[folder / "venv" / "bin" / "python", "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", HERE / "python"]],
            "node": [[node / "node", "--import", HERE / "node" / "resolve.mjs", "--test", *sorted((HERE / "node").glob("*.test.mjs"))]],
            # The second reads what the first was answered; the cases have the schema's validator.
            "smoke": [["bash", HERE / "smoke.sh"], [install.python("cases"), HERE / "bodies.py", bodies]],
        }
        for kind in kinds:
            print(f"--- {kind}", flush=True)
            ended = [subprocess.run([str(word) for word in command], env={**env, "SMOKE_BODIES": bodies}, cwd=HERE) for command in commands[kind]]
            if any(program.returncode for program in ended):
                failed.append(kind)
    if failed:
        print(f"clients failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
