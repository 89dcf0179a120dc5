"""Write in the user's own editor while Phoenix steps aside."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from textual.app import App, SuspendNotSupported

from tools.process.environment import without_keys


async def edit_outside(app: App[object], text: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The text as the editor left it; None when it could not be started or failed.

    The loop runs on, so other conversations go on; nothing is painted meanwhile.
    """
    editor = shlex.split(environment.get("VISUAL") or environment.get("EDITOR") or "vi")
    descriptor, name = tempfile.mkstemp(prefix="phoenix-", suffix=".md")
    path = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        with app.batch_update(), app.suspend():
            process = await asyncio.create_subprocess_exec(*editor, name, env=without_keys(os.environ))
            failed = await process.wait() != 0
        app.refresh(layout=True)
        return None if failed else (await asyncio.to_thread(path.read_text, "utf-8", "replace")).rstrip("\n")
    except (OSError, SuspendNotSupported):
        return None
    finally:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(path.unlink)


async def open_outside(app: App[object], path: Path, line: int, environment: Mapping[str, str] = os.environ) -> bool:
    """Show a file in the user's own editor at a line; False when it could not be started or failed."""
    editor = shlex.split(environment.get("VISUAL") or environment.get("EDITOR") or "vi")
    try:
        with app.batch_update(), app.suspend():
            process = await asyncio.create_subprocess_exec(
                *editor, *place_arguments(editor[0], path, line), env=without_keys(os.environ)
            )
            failed = await process.wait() != 0
        app.refresh(layout=True)
    except (OSError, SuspendNotSupported, IndexError):
        return False
    return not failed


def place_arguments(program: str, path: Path, line: int) -> tuple[str, ...]:
    """How an editor is told the line; all but those of windows know `+LINE FILE`."""
    match Path(program).name:
        case "code" | "code-insiders" | "codium" | "cursor" | "windsurf":
            return ("--goto", f"{path}:{line}")
        case "hx" | "helix" | "subl" | "zed":
            return (f"{path}:{line}",)
        case "ed" | "gedit" | "notepad" | "open":
            return (str(path),)
        case _:
            return (f"+{line}", str(path))
