#!/usr/bin/env python3
"""Runs antiphon's MCP client against servers of the Python SDK. usage: tests/mcp/run.py

The tests are `mcp::python` of `tests/it`, which need the pinned packages that this installs.
"""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import install  # noqa: E402

env = {**os.environ, "ANTIPHON_MCP_PYTHON": str(install.python("mcp"))}
command = ["cargo", "test", "--locked", "--test", "it", "mcp::python", "--", "--ignored"]
sys.exit(subprocess.run(command, cwd=HERE.parent.parent, env=env).returncode)
