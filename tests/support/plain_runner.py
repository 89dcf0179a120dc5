"""A `ProcessRunner` of a few lines for tests: real processes, merged output, killed as a group when cancelled."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress

from tools.contract import Captured, Command, Finished, OutputChunk, Report


class PlainRunner:
    """Runs commands and remembers them."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.pids: list[int] = []

    async def run(self, command: Command, report: Report | None = None) -> Finished:
        """Run to the end, or to the time limit."""
        self.commands.append(command)
        started = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *command.argv,
            cwd=command.working_dir,
            env={**os.environ, **command.environment},
            stdin=asyncio.subprocess.DEVNULL if command.stdin is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        self.pids.append(process.pid)
        timed_out = False
        try:
            if process.stdin is not None and command.stdin is not None:
                process.stdin.write(command.stdin)
                process.stdin.close()
            async with asyncio.timeout(command.timeout):
                output = await _read(process, report)
                await process.wait()
        except TimeoutError:
            timed_out, output = True, b""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        code = process.returncode or 0
        return Finished(
            None if code < 0 else code,
            -code if code < 0 else None,
            captured(command, output),
            time.monotonic() - started,
            timed_out,
        )


def captured(command: Command, output: bytes) -> Captured:
    """Both ends of `output` within the command's limits, the whole in its spill file if they do not hold it."""
    lines = output.count(b"\n") + (output[-1:] not in {b"", b"\n"})
    if len(output) <= command.keep_head + command.keep_tail:
        return Captured(output, lines=lines)
    if command.spill is not None:
        command.spill.write_bytes(output)
    tail = output[len(output) - command.keep_tail :]
    dropped = len(output) - command.keep_head - command.keep_tail
    return Captured(output[: command.keep_head], tail, dropped, command.spill, lines=lines)


async def _read(process: asyncio.subprocess.Process, report: Report | None) -> bytes:
    assert process.stdout is not None
    output = b""
    while chunk := await process.stdout.read(65536):
        output += chunk
        if report is not None:
            report(OutputChunk(chunk.decode("utf-8", "replace")))
    return output
