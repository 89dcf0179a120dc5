"""Write in the user's own editor while Phoenix steps aside."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import tempfile
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from textual.app import App, SuspendNotSupported

from phoenix_tui.terminal import foreground_programs
from phoenix_tui.terminal.lending import suspend_screen
from tools.process.programs import foreground_start, without_keys
from tools.process.workspace_watch import trouble_at

SAVING: Final = 1.0
"""Seconds for an editor after a hang-up to save, before it is killed."""
TAKING: Final = 0.5
"""Seconds in which its saved text is taken into the draft."""
GIT_OFF: Final = "/dev/null/switched off: Phoenix does not know what sandboxed commands left here"
"""A git folder that cannot exist; git names it in its refusal."""
_open: Final[dict[asyncio.subprocess.Process, asyncio.Task[object] | None]] = {}
"""Editors that have the terminal, and the task waiting for each."""


async def edit_outside(app: App[object], text: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The text as the editor left it; None when it could not be started or failed.

    The loop continues, and so do other conversations; nothing is painted meanwhile. Where Phoenix ends before the
    editor does, the saved text counts.
    """
    descriptor, name = tempfile.mkstemp(prefix="phoenix-", suffix=".md")
    path = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        if not await _with_terminal(app, (*_editor(environment), name), path.parent):
            return None
        return (await asyncio.to_thread(path.read_text, "utf-8", "replace")).rstrip("\n")
    except OSError:
        return None
    finally:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(path.unlink)


def with_changes(before: str, now: str, edited: str) -> str:
    """The edited draft with what came before or behind it meanwhile: a message that was refused, keys typed ahead."""
    if now.startswith(before):
        return edited + now[len(before) :]
    if now.endswith(before):
        return now[: len(now) - len(before)] + edited
    return f"{edited}\n{now}" if now else edited


async def open_outside(app: App[object], path: Path, line: int, environment: Mapping[str, str] = os.environ) -> bool:
    """Show a file in the user's own editor at a line; False when it could not be started or failed."""
    editor = _editor(environment)
    return await _with_terminal(app, (*editor, *place_arguments(editor[0], path, line)), path.parent)


async def end_editors() -> None:
    """Hang up programs on the terminal at Phoenix's end, and wait until their saved text was taken over."""
    waiting = [task for task in _open.values() if task is not None]
    if not _open:
        return
    foreground_programs.hang_up()
    ends = [asyncio.ensure_future(process.wait()) for process in _open]
    _, alive = await asyncio.wait(ends, timeout=SAVING)
    for process in tuple(_open) if alive else ():
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    if waiting:
        await asyncio.wait(waiting, timeout=TAKING)


async def _with_terminal(app: App[object], argv: Sequence[str], folder: Path) -> bool:
    """Run a program that takes the terminal, for a file in `folder`; False where it could not be started, or failed by
    itself.
    """
    begun = succeeded = False
    try:
        words = foreground_start(tuple(argv), os.environ)
        given = await asyncio.to_thread(editor_environment, folder)
        async with suspend_screen(app):
            process = await asyncio.create_subprocess_exec(*words, env=given)
            begun = True
            succeeded = await _wait_for_end(process)
    except (OSError, termios.error, SuspendNotSupported):
        return begun and succeeded  # the terminal is gone, and Phoenix ends
    return succeeded


async def _wait_for_end(process: asyncio.subprocess.Process) -> bool:
    """Wait for its end; True where it went well or was brought about by `end_editors`."""
    _open[process] = asyncio.current_task()
    with foreground_programs.has_terminal(process.pid) as guest:
        try:
            return await process.wait() == 0 or guest.hung_up
        finally:
            del _open[process]
            if process.returncode is None:
                process.terminate()


def editor_environment(folder: Path) -> dict[str, str]:
    """Variables of the user's editor, once it was looked at what sandboxed commands left in `folder` and where it
    starts; without git where that is not known. Blocks.
    """
    here = os.environ.get("PWD", folder)  # the folder itself may be gone
    given = without_keys(os.environ)
    return given | {"GIT_DIR": GIT_OFF} if trouble_at(Path(here), folder) else given


def _editor(environment: Mapping[str, str]) -> list[str]:
    return shlex.split(environment.get("VISUAL") or environment.get("EDITOR") or "vi") or ["vi"]


def place_arguments(program: str, path: Path, line: int) -> tuple[str, ...]:
    """Arguments that open an editor at a line; all but those with windows understand `+LINE FILE`."""
    match Path(program).name:
        case "code" | "code-insiders" | "codium" | "cursor" | "windsurf":
            return ("--goto", f"{path}:{line}")
        case "hx" | "helix" | "subl" | "zed":
            return (f"{path}:{line}",)
        case "ed" | "gedit" | "notepad" | "open":
            return (str(path),)
        case _:
            return (f"+{line}", str(path))
