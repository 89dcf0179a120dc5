"""The program, and services that no arguments open alone, in a fork, with a fault in it where one is named."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from phoenix_tui.__main__ import main
from phoenix_tui.acp.server import serve
from phoenix_tui.acp.services import UnsavedTexts
from phoenix_tui.cli.faults import end_quietly, fault_of
from phoenix_tui.cli.parser import command_parser
from phoenix_tui.cli.setup import Setup, prepare_command
from phoenix_tui.wiring.acp import acp_arguments, open_services
from phoenix_tui.wiring.backend import Outside
from phoenix_tui.wiring.services import ServiceOpener
from tests.support.cli import DEADLINE, Phoenix, Ran
from tests.support.forks import fork_program
from tools.process.link import ZygoteLink, spawn_zygote

SCREEN: Final = "<screen>"
"""Door in place of arguments: the services are opened as by a screen, and the reason why they cannot be is printed."""
MODES: Final = ("rb", "wb", "wb")
EDITOR: Final = "<editor>"
"""Door in place of arguments: an editor, which sends each line of stdin once the one before is answered."""


def run_door(phoenix: Phoenix, *arguments: str, stdin: bytes | None = None, fault: str = "", out: str = "") -> Ran:
    """A run of the program, or of a door, to its end; `fault` is `module:function`, which breaks something before.

    `out` is a device in the place of stdout.
    """
    folder = phoenix.home.parent
    given = folder / "stdin"
    given.write_bytes(stdin or b"")
    names = (given if stdin is not None else os.devnull, out or folder / "out", folder / "err")
    words = ("tests.support.preloaded", fault, *arguments)
    with ExitStack() as files:
        streams = [files.enter_context(Path(name).open(mode)) for name, mode in zip(names, MODES, strict=True)]
        fork = fork_program(words, phoenix.cwd, phoenix.environment, [stream.fileno() for stream in streams])
    if (code := fork.poll(DEADLINE)) is None:
        fork.kill()
        code = fork.poll(None)
    assert code is not None
    return Ran(code, "" if out else (folder / "out").read_text("utf-8"), (folder / "err").read_text("utf-8"))


def _perform(fault: str, *arguments: str) -> int:
    if fault:
        module, _, name = fault.partition(":")
        getattr(import_module(module), name)()
    for door, perform in ((SCREEN, _open_screen), (EDITOR, _serve_editor)):
        if arguments == (door,):
            return _run_door(perform)
    return main(arguments)


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
    sys.exit(_perform(*sys.argv[1:]))
