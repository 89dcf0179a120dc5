"""The llama server of one model: a long-running program within the memory of this machine, started on first use and
stopped after a while of silence.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from signal import SIGILL
from typing import Protocol

from msgspec import Struct

from engine.ports import ProviderError
from engine.providers.local import serve
from tools.contract import Command, OutputChunk, ProcessRunner, Progress, Sandbox
from tools.files.own_files import read_start

GIBIBYTE = 1024**3
LEAST_FREE = 3 * GIBIBYTE
"""Bytes of free memory without which a model is not loaded; the 1.5B takes 2.1 GB (docs/decisions/local-model.md)."""


class Resources(Struct, frozen=True):
    """Memory, cores and load at one moment."""

    free_memory: int
    """Bytes a new process may take."""
    cores: int
    load: float
    """Runnable processes, averaged over a minute."""

    @property
    def threads(self) -> int:
        """All cores, or one on a busy machine: the engine's threads spin while they wait for each other."""
        return 1 if self.load > self.cores else self.cores

    def shortage(self, model_size: int) -> str:
        """Reason why a model of `model_size` bytes cannot be loaded, as a sentence; empty when it can."""
        needed = max(LEAST_FREE, model_size + GIBIBYTE)
        if self.free_memory >= needed:
            return ""
        return (
            f"The local model needs {needed / GIBIBYTE:.1f} GB of free memory and {self.free_memory / GIBIBYTE:.1f} GB "
            "are free; close a program, or choose another model with /model."
        )


def measure() -> Resources:
    """The machine as it is now."""
    return Resources(_free_memory(), os.cpu_count() or 1, os.getloadavg()[0])


def _free_memory() -> int:
    """Bytes available; half of all memory where the kernel does not report them."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    available = next(line for line in lines if line.startswith("MemAvailable:"))
    return int(available.split()[1]) * 1024


TAIL_LINES = 8
"""Lines of output quoted when a program ends too early."""


MOST_LINES = 1000
"""Lines of output kept: the first ones, which contain its mark, and the last, which are quoted."""
LONGEST_LINE = 10_000
"""Characters."""


class ServerEnded(Exception):
    """A program ended before it was ready; `signal` is set when one ended it."""

    def __init__(self, exit_code: int | None, signal: int | None, tail: str) -> None:
        super().__init__(tail)
        self.exit_code = exit_code
        self.signal = signal
        self.tail = tail


class ServerProgram(Protocol):
    """A started program."""

    @property
    def running(self) -> bool:
        """True until the program has ended."""
        ...

    async def line(self, mark: str) -> str:
        """The rest of the first output line that starts with `mark`.

        Raises:
            ProgramEnded: it ended without such a line.
        """
        ...

    async def stop(self) -> None:
        """End it and all it started; done when it is gone."""
        ...


class ProgramHost(Protocol):
    """Starts programs that die with Phoenix."""

    async def start(self, argv: tuple[str, ...], environment: Mapping[str, str], stdin: bytes) -> ServerProgram:
        """Start it; a failed start shows in `line` as ProgramEnded."""
        ...

    def resources(self) -> Resources:
        """Memory, cores and load of the machine now."""
        ...


class RunnerHost:
    """`ProgramHost` on the ProcessRunner port: a run that is cancelled takes its whole process tree with it."""

    def __init__(self, runner: ProcessRunner, working_dir: Path) -> None:
        self._runner = runner
        self._working_dir = working_dir

    async def start(self, argv: tuple[str, ...], environment: Mapping[str, str], stdin: bytes) -> RunnerProgram:
        """Start the run as a task."""
        command = Command(argv, self._working_dir, environment=environment, stdin=stdin, sandbox=Sandbox(unseen=True))
        return RunnerProgram(self._runner, command)

    def resources(self) -> Resources:
        """Memory, cores and load of this machine now."""
        return measure()


class RunnerProgram:
    """One run of a `RunnerHost`."""

    def __init__(self, runner: ProcessRunner, command: Command) -> None:
        self._lines: list[str] = [""]
        """Output so far; the last item is the line that has not ended."""
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._run(runner, command))

    @property
    def running(self) -> bool:
        """True until the run has ended."""
        return not self._task.done()

    async def line(self, mark: str) -> str:
        """The rest of the first line that starts with `mark`."""
        while True:
            self._news.clear()
            found = next((line for line in self._lines[:-1] if line.startswith(mark)), None)
            if found is not None:
                return found.removeprefix(mark).strip()
            if self._task.done():
                raise self._task.result()
            news = asyncio.ensure_future(self._news.wait())
            try:
                await asyncio.wait({news, self._task}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                news.cancel()

    async def stop(self) -> None:
        """Cancel the run, which kills the tree."""
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _run(self, runner: ProcessRunner, command: Command) -> ServerEnded:
        try:
            ended = await runner.run(command, self._report)
        except OSError as error:
            return ServerEnded(None, None, error.strerror or str(error))
        tail = "\n".join(line for line in self._lines[-TAIL_LINES:] if line.strip())
        return ServerEnded(ended.exit_code, ended.signal, tail)

    def _report(self, progress: Progress) -> None:
        if isinstance(progress, OutputChunk):
            first, *more = progress.text.split("\n")
            self._lines[-1] = (self._lines[-1] + first)[:LONGEST_LINE]
            self._lines += [line[:LONGEST_LINE] for line in more]
            if len(self._lines) > MOST_LINES:
                del self._lines[MOST_LINES // 4 : -MOST_LINES // 4]
            self._news.set()


CONTEXT_WINDOW = 8192
"""Tokens (docs/decisions/local-model.md)."""
START_SECONDS = 180.0
"""The longest a model may take to load: 13 s were measured under load, a slow disk needs more."""
GGUF_MAGIC = b"GGUF"
SCRIPT = Path(serve.__file__)


class ServerAddress(Struct, frozen=True):
    """Address and key of the server."""

    url: str
    api_key: str


class LlamaServer:
    """Serves one file. At most one process at a time; `address` starts it."""

    def __init__(self, model: Path, host: ProgramHost, script: Path = SCRIPT) -> None:
        self._model = model
        self._host = host
        self._script = script
        self._program: ServerProgram | None = None
        self._starting: asyncio.Task[ServerAddress] | None = None

    @property
    def running(self) -> bool:
        """True while a process exists, ready or not."""
        return self._program is not None and self._program.running

    async def address(self) -> ServerAddress:
        """The address of the running server, started if need be; a caller that gives up does not stop the start.

        Raises:
            ProviderError: it cannot be started; the message says why and what to do.
        """
        if self._starting is None or (self._starting.done() and not self.running):
            await self.stop()
            self._starting = asyncio.create_task(self._start())
        return await asyncio.shield(self._starting)

    async def stop(self) -> None:
        """End the process."""
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.cancel()
            with suppress(asyncio.CancelledError, ProviderError):
                await starting
        program, self._program = self._program, None
        if program is not None:
            await program.stop()

    async def _start(self) -> ServerAddress:
        resources = await asyncio.to_thread(self._host.resources)
        objection = await asyncio.to_thread(objection_to, self._model, resources)
        if objection:
            raise failure(objection)
        key = secrets.token_urlsafe(24)
        config = {
            "model": str(self._model),
            "api_key": key,
            "context": CONTEXT_WINDOW,
            "threads": resources.threads,
        }
        argv = (sys.executable, "-E", "-P", str(self._script))
        program = await self._host.start(argv, {"OMP_WAIT_POLICY": "passive"}, json.dumps(config).encode())
        self._program = program
        try:
            async with asyncio.timeout(START_SECONDS):
                return ServerAddress(await program.line("phoenix-ready "), key)
        except TimeoutError:
            await program.stop()
            raise failure(f"The local model did not load within {START_SECONDS:g} s.") from None
        except ServerEnded as ended:
            raise failure(explain_end(ended)) from None


def objection_to(model: Path, resources: Resources) -> str:
    """Reason why `model` cannot be loaded here, as a sentence; empty when it can."""
    try:
        magic = read_start(model, len(GGUF_MAGIC))
    except OSError as error:
        reason = error.strerror or "unreadable"
        return f"{model} cannot be read ({reason}): run `phoenix model install`, or correct PHOENIX_GGUF."
    if magic != GGUF_MAGIC:
        return f"{model} is not a GGUF model file; set PHOENIX_GGUF to another one or choose one with /model."
    return resources.shortage(model.stat().st_size)


def explain_end(ended: ServerEnded) -> str:
    """Reason why the server ended before it was ready, as a sentence."""
    if ended.signal == SIGILL:
        return "This processor lacks the instructions (AVX2) of the embedded engine; choose another model with /model."
    if ended.exit_code == serve.MISSING_ENGINE:
        return "The embedded engine is not installed; install it with `pip install 'phoenix-tui[local]'`."
    if ended.signal is not None:
        return f"The local model server was ended by signal {ended.signal}; it may have run out of memory."
    reason = ended.tail.strip().splitlines()
    return "The local model server could not load the model" + (f": {reason[-1][:200]}" if reason else ".")


def failure(sentence: str) -> ProviderError:
    """A final error of the embedded model; nothing is tried twice (docs/decisions/local-model.md)."""
    return ProviderError(sentence, kind="server", retryable=False)
