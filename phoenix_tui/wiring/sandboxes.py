"""The sandbox that settings and flags give to a conversation, and the sentences about limits that became wider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phoenix_tui.cli.setup import sandbox_in
from phoenix_tui.config.settings import Settings
from tools.sandbox_mode import SandboxMode

if TYPE_CHECKING:
    from pathlib import Path

    from engine.ports import ConversationChanges
    from engine.records import ConversationRecord


def chosen_sandbox(settings: Settings, cwd: Path) -> tuple[SandboxMode, bool]:
    """The sandbox of a new conversation in a folder, and True when it was chosen."""
    return SandboxMode(sandbox_in(settings, cwd)), settings.sources["sandbox"] != "default"


def widened(record: ConversationRecord, changes: ConversationChanges) -> str:
    """Say which limits of a stored conversation the flags of a resume widen; empty where they widen none."""
    from engine.ports.profiles import FREEDOM, SANDBOX_FREEDOM  # noqa: PLC0415 - not before the first frame

    said: list[str] = []
    mode, sandbox = changes.permission_mode, changes.sandbox
    if mode is not None and FREEDOM[mode] > FREEDOM[record.permission_mode]:
        said.append(
            f"--permission-mode {mode.value} allows more than this conversation's mode, which was {_mode(record)}."
        )
    if sandbox is not None and SANDBOX_FREEDOM[sandbox] > SANDBOX_FREEDOM[record.sandbox]:
        said.append(
            f"--sandbox {sandbox.value} allows more than this conversation's sandbox, which was {record.sandbox.value}."
        )
    return " ".join(said)


def _mode(record: ConversationRecord) -> str:
    return record.permission_mode.value
