"""Text of a file as it is before an edit, for hooks behind the edit."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from engine.executor.hooking import wants_hooks
from engine.executor.ready_calls import ReadyCall
from engine.executor.session import Session
from engine.ports.hooks import HookEvent
from tools.contract import ToolClass
from tools.failure import ToolFailure
from tools.files.location import Location
from tools.files.opening import opened_file

LONGEST: Final = 256 * 1024
"""Characters that a hook gets; the rest is left out."""
_BYTES: Final = LONGEST * 4
"""Bytes that so many characters may take in UTF-8."""


async def text_before(session: Session, ready: ReadyCall) -> str | None:
    """The beginning of the file that a call edits; None where no hook asks, or there is no such file."""
    is_edit = ready.tool.spec.tool_class is ToolClass.EDIT and len(ready.request.paths) == 1
    if not is_edit or not wants_hooks(session, HookEvent.POST_TOOL_USE):
        return None
    try:
        return await asyncio.to_thread(_read, ready.request.paths[0])
    except (OSError, ToolFailure):
        return None


def _read(path: Path) -> str:
    with opened_file(Location(Path(path.anchor), path.parts[1:], str(path))) as stream:
        text = stream.read(_BYTES).decode("utf-8", "replace")
    return text.replace("\r\n", "\n")[:LONGEST]
