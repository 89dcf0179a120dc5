"""Services for tests: marked trees as services, and a Phoenix of its own that runs one until it is killed."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import msgspec

from tests.support.processes import ROOT, Watch, start_plain
from tools.services import ServiceCommand, TerminalSize


def shell(script: str, folder: Path | str = "/", **environment: str) -> ServiceCommand:
    """`script` for bash."""
    return ServiceCommand(("/bin/bash", "-c", script), Path(folder), environment)


def python(script: str, folder: Path | str = "/", **environment: str) -> ServiceCommand:
    """`script` for a Python that loads nothing but the standard library."""
    return ServiceCommand((sys.executable, "-I", "-S", "-c", script), Path(folder), environment)


def watched(watch: Watch, script: str) -> ServiceCommand:
    """`script` for bash, marked for `watch`."""
    command = watch.command(script)
    return ServiceCommand(command.argv, command.working_dir, command.environment)


@contextlib.contextmanager
def host_of(command: ServiceCommand, form: str) -> Generator[subprocess.Popen[bytes]]:
    """A process that runs `command` as `form`: service, program or terminal."""
    arguments = [sys.executable, "-m", "tests.support.service_host", form]
    host = subprocess.Popen(arguments, cwd=ROOT, stdin=subprocess.PIPE)
    assert host.stdin is not None
    order = [list(command.argv), str(command.working_dir), dict(command.environment)]
    host.stdin.write(msgspec.json.encode(order))  # not as an argument: the mark must be on the tree alone
    host.stdin.close()
    host.stdin = None
    try:
        yield host
    finally:
        host.kill()
        host.wait()


async def main(form: str, order: bytes) -> None:
    """Run one program until it ends by itself."""
    argv, folder, environment = msgspec.json.decode(order, type=tuple[tuple[str, ...], str, dict[str, str]])
    command = ServiceCommand(argv, Path(folder), environment)
    services = (await start_plain()).services
    match form:
        case "service":
            await (await services.open(command)).wait_ended()
        case "terminal":
            await (await services.open_terminal(command, TerminalSize())).wait_ended()
        case _:
            await services.run_program(command)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.stdin.buffer.read()))
