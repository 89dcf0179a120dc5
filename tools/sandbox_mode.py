"""Sandbox of a call (CONTRACT 6)."""

from __future__ import annotations

from enum import StrEnum


class SandboxMode(StrEnum):
    """Kinds of limits of a call."""

    OFF = "off"
    WORKSPACE = "workspace"
    READ_ONLY = "read-only"
