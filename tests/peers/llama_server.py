"""llama.cpp's own server, that of the extra [local], in a process of its own on loopback."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.support.waiting import poll

KEY: Final = "sk-llama-0123456789"
WINDOW: Final = 12_288
SERVE: Final = """
import json, sys, threading
import xllamacpp
given = json.loads(sys.argv[1])
params = xllamacpp.CommonParams()
params.model.path = given["model"]
params.hostnames, params.port, params.api_keys = ["127.0.0.1"], given["port"], [given["key"]]
params.n_ctx, params.n_parallel, params.n_batch = given["window"], 1, 256
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = given["threads"]
params.use_jinja = params.endpoint_metrics = params.endpoint_slots = True
server = xllamacpp.Server(params)
threading.Event().wait()
"""
"""Small batches, so that a cancelled prompt is let go soon: the server looks between two of them."""


@dataclass(slots=True)
class Server:
    """The process that serves, and what it tells of itself."""

    model: Path
    threads: int
    log: Path
    port: int = 0
    process: asyncio.subprocess.Process | None = field(default=None)

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start the process; it loads its model behind that."""
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the port of the former one is free
            free.bind(("127.0.0.1", self.port))
            self.port = free.getsockname()[1]
        given = {"model": str(self.model), "port": self.port, "key": KEY, "window": WINDOW, "threads": self.threads}
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", SERVE, json.dumps(given), stdout=log, stderr=log
            )

    @property
    def runs(self) -> bool:
        """True while its process exists."""
        return self.process is not None and self.process.returncode is None

    async def listening(self) -> bool:
        """True once it accepts requests, loaded or not."""
        return await poll(lambda: _listens(self.port), seconds=120)

    async def ready(self) -> bool:
        """Wait until the model is loaded."""
        return await poll(lambda: self.ask("/health") == {"status": "ok"}, seconds=180)

    def ask(self, path: str) -> Any:
        """A document of it; None where there is none."""
        request = urllib.request.Request(self.url + path, headers={"authorization": f"Bearer {KEY}"})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                body: str = answer.read().decode()
        except OSError:
            return None
        return json.loads(body) if body.startswith(("{", "[")) else body

    def counted(self) -> tuple[int, int]:
        """Tokens of prompts that were read (without cached ones) and tokens written, since it began."""
        metrics = str(self.ask("/metrics"))
        found = [re.search(rf"^llamacpp:{name} (\S+)", metrics, re.M) for name in _COUNTERS]
        read, written = (round(float(each.group(1))) if each else -1 for each in found)
        return read, written

    def cancelled(self) -> int:
        """Number of requests it has dropped because their client has gone."""
        return self.log.read_text(errors="replace").count("cancel task")

    async def end(self) -> None:
        """Kill it."""
        if self.process is not None and self.runs:
            self.process.kill()
            await self.process.wait()


_COUNTERS: Final = ("prompt_tokens_total", "tokens_predicted_total")


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
