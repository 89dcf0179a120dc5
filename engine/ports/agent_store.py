"""Interface of the store for sub-agents."""

from __future__ import annotations

from typing import Final

USER: Final = "user"
"""Sender of messages that the user wrote."""
