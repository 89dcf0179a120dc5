"""Permission mode: how freely tools run (CONTRACT 6)."""

from __future__ import annotations

from enum import StrEnum


class PermissionMode(StrEnum):
    """Modes of a conversation."""

    ASK = "ask"
    ACCEPT_EDITS = "accept-edits"
    AUTO = "auto"
    PLAN = "plan"
    DENY = "deny"
