"""A conversation that is not stored: for what belongs to a folder before anything was written in it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from engine.records import ConversationRecord, PermissionMode
from engine.records.totals import Totals
from tools.contract import SandboxMode

ID: Final = "unstored"


def unstored_record(cwd: Path, sandbox: SandboxMode, *, required: bool) -> ConversationRecord:
    """The record of a new conversation in `cwd`; it has one id per folder, which no stored one has."""
    return ConversationRecord(
        id=f"{ID}:{cwd}",
        title="",
        cwd=cwd,
        model="",
        profile="",
        permission_mode=PermissionMode.ASK,
        system_prompt="",
        append_system_prompt="",
        context_window=0,
        context_tokens=0,
        context_estimated=False,
        totals=Totals(),
        draft="",
        scroll_seq=0,
        context_start_seq=1,
        summary="",
        archived=False,
        deleted=False,
        created_at=0.0,
        updated_at=0.0,
        message_count=0,
        owner_pid=None,
        sandbox=sandbox,
        sandbox_required=required,
    )
