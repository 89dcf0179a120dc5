"""The child process: serves one GGUF on loopback until its standard input or its parent is gone.

Run by path, never imported. Configuration comes as one JSON object on standard input, so that no argument list and no
environment contains the key. Prints `phoenix-engine INFO` once the engine is loaded (a processor that lacks its
instructions dies before that, in this process) and `phoenix-ready URL` once requests are answered.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

PARENT_CHECK_SECONDS = 1.0
BATCH = 128
"""Tokens of a prompt that are read between two reports of progress: 2 to 4 s on two cores."""
MISSING_ENGINE = 3
"""Exit code: xllamacpp is not installed."""
UNUSABLE_MODEL = 4
"""Exit code: the engine could not load the file."""


def say(line: str) -> None:
    """Write one line to the parent process."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Serve until standard input or the parent is gone."""
    parent = os.getppid()
    config = json.load(sys.stdin)
    try:
        engine: Any = importlib.import_module("xllamacpp")
    except ImportError as error:
        say(str(error))
        return MISSING_ENGINE
    say("phoenix-engine " + engine.get_system_info())
    params = engine.CommonParams()
    params.model.path = config["model"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [config["api_key"]]
    params.n_ctx = config["context"]
    params.n_parallel = 1
    params.n_batch = BATCH
    params.cpuparams.n_threads = config["threads"]
    params.cpuparams_batch.n_threads = config["threads"]
    params.use_jinja = True
    params.endpoint_slots = False
    params.endpoint_props = False
    params.ui = False
    params.verbosity = -1
    try:
        server = engine.Server(params)
    except (RuntimeError, ValueError) as error:
        say(str(error))
        return UNUSABLE_MODEL
    say("phoenix-ready " + server.listening_address)
    stop = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    while not stop.wait(PARENT_CHECK_SECONDS) and os.getppid() == parent:
        pass
    # The server's threads do not end by themselves; nothing here needs flushing.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
