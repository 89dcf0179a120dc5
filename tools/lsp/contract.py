"""Values of edit checks that cross from the tools to the engine and the screens."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from tools.contract import Sandbox


class LanguageServerState(StrEnum):
    """State of a server as the user sees it."""

    READY = "ready"
    STARTING = "starting"
    WAITING = "not started"
    FAILED = "failed"
    NEEDS_YES = "needs your yes"
    """The user has not allowed in this folder what the server does: run what the project contains."""
    MISSING = "not installed"
    OFF = "off"


class LanguageServerView(Struct, frozen=True):
    """One language server of a folder, for a list and its details."""

    name: str
    state: LanguageServerState
    text: str = ""
    """Cause of the state."""
    files: str = ""
    """Patterns of its files, joined by blanks."""
    program: str = ""
    """Path of its program; empty where it was not found."""
    root: str = ""
    pid: int = 0
    sandbox: str = ""
    """Limits that it runs under, in words; empty while it does not run."""
    log: tuple[str, ...] = ()
    """Newest lines of its log."""


class CheckPlace(Struct, frozen=True):
    """The conversation that an edit belongs to."""

    conversation_id: str
    folder: Path
    """Working folder, resolved: files outside of it are not checked."""
    sandbox: Sandbox
    """Limits of its commands."""


class EditBegun(Struct, frozen=True):
    """A file before an edit."""

    place: CheckPlace
    path: Path
    before: str | None
    """Text before the edit; None: there is no such file."""


class EditedText(Struct, frozen=True):
    """One edit of a file."""

    path: Path
    shown: str
    """The file as the call names it."""
    before: str
    """Text before the edit; empty for a new file."""
    after: str
    created: bool
    conversation_id: str
