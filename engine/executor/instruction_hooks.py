"""Tells hooks which instruction files a model reads; nothing waits for them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from engine.executor.hooking import wants_hooks
from engine.executor.prompt_hooks import tell_hooks
from engine.executor.session import Session
from engine.ports.hooks import HookEvent
from engine.ports.instructions import PromptFile
from tools.contract import JsonObject

BEGINNING, INCLUDED, NESTED, NAMED = "session_start", "include", "nested_traversal", "path_glob_match"
"""Reasons for which a file is read."""


def hear_prompt_files(session: Session, files: Iterable[PromptFile]) -> None:
    """Tell of each file of the system prompt, once in a session."""
    if not wants_hooks(session, HookEvent.INSTRUCTIONS_LOADED):
        return
    for file in files:
        if file.path not in session.hooks.instructions:
            session.hooks.instructions.add(file.path)
            _tell(session, file, INCLUDED if file.imported_by is not None else BEGINNING)


def hear_folder_file(session: Session, file: PromptFile, read: Path) -> None:
    """Tell of the file of a subfolder, or of the rule, that a model reads because of `read`."""
    if wants_hooks(session, HookEvent.INSTRUCTIONS_LOADED):
        _tell(session, file, NAMED if file.scope else NESTED, trigger_file_path=str(read))


def _tell(session: Session, file: PromptFile, reason: str, **more: str) -> None:
    fields: JsonObject = {
        "file_path": str(file.path),
        "memory_type": file.owner.value,
        "load_reason": reason,
        **more,
    }
    if file.imported_by is not None:
        fields["parent_file_path"] = str(file.imported_by)
    tell_hooks(session, HookEvent.INSTRUCTIONS_LOADED, reason, fields)
