"""Start and end of a long-running program: a Protocol, and its form on the `ProcessRunner` port."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from engine.providers.local.resources import Resources, measure
from tools.contract import Command, OutputChunk, ProcessRunner, Progress, Sandbox

TAIL_LINES = 8
"""Lines of output quoted when a program ends too early."""


MOST_LINES = 1000
"""Lines of output kept: the first ones, which contain its mark, and the last, which are quoted."""
LONGEST_LINE = 10_000
"""Characters."""


class ProgramEnded(Exception):
    """A program ended before it was ready; `signal` is set when one ended it."""

    def __init__(self, exit_code: int | None, signal: int | None, tail: str) -> None:
        super().__init__(tail)
        self.exit_code = exit_code
        self.signal = signal
        self.tail = tail


class RunningProgram(Protocol):
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

    async def start(self, argv: tuple[str, ...], environment: Mapping[str, str], stdin: bytes) -> RunningProgram:
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

    async def _run(self, runner: ProcessRunner, command: Command) -> ProgramEnded:
        try:
            ended = await runner.run(command, self._report)
        except OSError as error:
            return ProgramEnded(None, None, error.strerror or str(error))
        tail = "\n".join(line for line in self._lines[-TAIL_LINES:] if line.strip())
        return ProgramEnded(ended.exit_code, ended.signal, tail)

    def _report(self, progress: Progress) -> None:
        if isinstance(progress, OutputChunk):
            first, *more = progress.text.split("\n")
            self._lines[-1] = (self._lines[-1] + first)[:LONGEST_LINE]
            self._lines += [line[:LONGEST_LINE] for line in more]
            if len(self._lines) > MOST_LINES:
                del self._lines[MOST_LINES // 4 : -MOST_LINES // 4]
            self._news.set()
