"""Remarks below a message of the user: how it differs from what the model is sent, and what it looks like."""

from __future__ import annotations

from engine.context.message_cap import MOST, words_length
from engine.machine.messages import Origin
from engine.records import StoredMessage
from tools.clean import clean_line


def marks(message: StoredMessage) -> list[str]:
    """Remarks for the chips of a message; none for most."""
    if message.origin is not Origin.HUMAN:
        return []
    found: list[str] = []
    if message.suspected:
        found.append(f"looks like an injection: {clean_line(', '.join(message.suspected))}")
    if (length := words_length(message.blocks)) > MOST:
        found.append(f"cut to {MOST:,} of {length:,} characters for the model")
    return found
