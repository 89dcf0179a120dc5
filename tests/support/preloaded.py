"""The program in forks of a Python that has loaded it: a real process with real streams for 0.1 s in place of 0.6 s.

What Python itself reads once, as it starts, is that of the test: a test of such variables starts the program anew.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from phoenix_tui.acp.serving import serve
from phoenix_tui.acp.unsaved import UnsavedTexts
from phoenix_tui.cli.faults import end_quietly, fault_of
from phoenix_tui.cli.parser import command_parser
from phoenix_tui.cli.setup import Setup, prepare_command
from phoenix_tui.wiring.acp import acp_arguments, open_services
from phoenix_tui.wiring.backend import Outside
from phoenix_tui.wiring.services import ServiceOpener
from tests.support.cli import DEADLINE, ROOT, Phoenix, Ran
from tools.process.link import ZygoteLink, spawn_zygote

LOADED: Final = (
    "phoenix_tui.__main__",
    "phoenix_tui.acp.serving",
    "phoenix_tui.cli.control.start",
    "phoenix_tui.cli.conversations",
    "phoenix_tui.wiring.acp",
    "phoenix_tui.wiring.commands",
    "phoenix_tui.wiring.control",
    "phoenix_tui.wiring.doctor",
    "phoenix_tui.wiring.headless",
    "phoenix_tui.wiring.linear",
)
SCREEN: Final = "<screen>"
"""Door in place of arguments: the services are opened as by a screen, and the reason why they cannot be is printed."""
EDITOR: Final = "<editor>"
"""Door in place of arguments: an editor, which sends each line of stdin once the one before is answered."""


@dataclass(frozen=True, slots=True)
class Preloaded:
    """The process that forks."""

    process: subprocess.Popen[str]

    def run(self, phoenix: Phoenix, *arguments: str, stdin: bytes | None = None, fault: str = "", out: str = "") -> Ran:
        """A run to its end; `fault` is `module:function`, which breaks something in the fork before.

        `out` is a device in the place of stdout.
        """
        folder = phoenix.home.parent
        given = folder / "stdin"
        given.write_bytes(stdin or b"")
        order = {
            "argv": arguments,
            "cwd": str(phoenix.cwd),
            "environment": phoenix.environment,
            "files": [str(given) if stdin is not None else os.devnull, out or str(folder / "out"), str(folder / "err")],
            "fault": fault,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        return Ran(code, "" if out else (folder / "out").read_text("utf-8"), (folder / "err").read_text("utf-8"))


@contextmanager
def preloaded() -> Generator[Preloaded]:
    """Load the program once."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.preloaded"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Preloaded(process)
    finally:
        process.communicate(timeout=DEADLINE)


def _serve() -> int:
    for name in LOADED:
        import_module(name)
    for line in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if not pid:
            return _perform(json.loads(line))
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()
    return 0


def _perform(order: Mapping[str, Any]) -> int:
    """Become the program of one order; the exit of the fork runs what a real exit runs."""
    signal.alarm(round(DEADLINE))
    _take_streams(order["files"])
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    if order["fault"]:
        module, _, name = order["fault"].partition(":")
        getattr(import_module(module), name)()
    for door, perform in ((SCREEN, _open_screen), (EDITOR, _serve_editor)):
        if order["argv"] == [door]:
            return _run_door(perform)
    from phoenix_tui.__main__ import main  # noqa: PLC0415 - loaded by then

    sys.argv = ["phoenix", *order["argv"]]
    return main(list(order["argv"]))


def _take_streams(files: Sequence[str]) -> None:
    for number, (name, mode) in enumerate(zip(files, ("rb", "wb", "wb"), strict=True)):
        with Path(name).open(mode) as file:
            os.dup2(file.fileno(), number)
    sys.stdin = os.fdopen(0, "r", encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _run_door(perform: Callable[[Setup, ZygoteLink], Coroutine[Any, Any, int]]) -> int:
    link = None
    try:
        link = spawn_zygote()
        return asyncio.run(perform(prepare_command(os.environ), link))
    except Exception as error:  # noqa: BLE001 - as the program's own entry
        fault = fault_of(error)
        sys.stderr.write(f"phoenix: {fault.sentence}\n")
        return fault.code
    finally:
        if link is not None:
            link.close()


async def _open_screen(setup: Setup, link: ZygoteLink) -> int:
    opener = ServiceOpener(setup, os.environ, link)
    services = await opener.open()
    await end_quietly(services.engine.close())
    await end_quietly(opener.close(crashed=False))
    return 0


async def _serve_editor(setup: Setup, link: ZygoteLink) -> int:
    """The agent on pipes; a session id of `last` stands for that of the session that was begun."""
    link.close()
    theirs, ours = os.pipe(), os.pipe()
    unsaved, session = UnsavedTexts(), ""
    parsed = command_parser().parse_args(["acp"])
    opened = partial(open_services, setup, acp_arguments(parsed), Outside(hooks=(unsaved,)))
    serving = asyncio.ensure_future(serve(theirs[0], ours[1], opened, unsaved))
    answers = os.fdopen(ours[0], "r", encoding="utf-8")
    for line in sys.stdin.read().splitlines():
        os.write(theirs[1], line.replace('"last"', json.dumps(session)).encode() + b"\n")
        answer: dict[str, Any] = {}
        while answer.get("id") != json.loads(line)["id"] and not serving.done():
            text = await asyncio.to_thread(answers.readline)
            answer = json.loads(text)
            sys.stdout.write(text)
        session = (answer.get("result") or {}).get("sessionId", session)
    os.close(theirs[1])
    return await serving


if __name__ == "__main__":
    sys.exit(_serve())
