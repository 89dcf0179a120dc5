"""View of a conversation's messages for a model: omissions, summaries, and the draft of a compaction."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class OmissionKind(StrEnum):
    """Kinds of reduction of a part of a message before a model receives it."""

    SHORTENED = "shortened"
    CLEARED = "cleared"
    IMAGE = "image"


class Omission(Struct, frozen=True):
    """A part of a stored message that models no longer see whole; the message itself is never changed."""

    seq: int
    block: int
    """Index in the message."""
    kind: OmissionKind
    part: int = -1
    """Index of an image inside a tool result."""


MOST_EARLIER = 20
"""Compactions that can be taken back, one after the other; each holds a summary of up to 40 KB."""


class EarlierView(Struct, frozen=True):
    """View before a compaction, so that it can be restored."""

    summary: str
    start_seq: int
    tokens: int
    """Tokens in the window at that time."""
    estimated: bool = True


class ContextView(Struct, frozen=True):
    """Selection of the stored messages that a model is sent (SPEC DEC-07)."""

    summary: str = ""
    """Replacement for everything before `start_seq`."""
    start_seq: int = 0
    omitted: tuple[Omission, ...] = ()
    earlier: tuple[EarlierView, ...] = ()
    """Views before each of the last `MOST_EARLIER` compactions, newest last."""


class CompactionDraft(Struct, frozen=True):
    """A view made by a compaction, and the row about it; it takes effect with the move that saves it."""

    view: ContextView
    tokens: int
    """Tokens in the window from then on, estimated."""
    note: str
    """The row of the transcript about it."""
