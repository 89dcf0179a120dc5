"""View of a conversation's messages for a model: omissions, summaries, and the draft of a compaction."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

CHARACTERS_PER_TOKEN = 4
"""Factor of an estimate where the provider has not counted (SPEC CLAW-22)."""


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
    by_rule: bool = False
    """True when no user chose it: a summary is still made from the whole part."""


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


class CompactionCause(StrEnum):
    """Reasons to make the context shorter."""

    ASKED = "asked"
    """The user asked for it."""
    FULL = "full"
    """The window was filled to the threshold, before a message or between two model calls."""
    OVERFLOW = "overflow"
    """A request did not fit into the window."""
    RESTED = "rested"
    """A run had ended and left many messages, or a window filled to the threshold."""
    LONG_RESULTS = "long_results"
    """Old tool results had grown past the threshold for pruning."""


class CompactionKind(StrEnum):
    """Ways to make the context shorter, and to undo that."""

    SUMMARY = "summary"
    SHORTENED = "shortened"
    """Old tool results are sent shortened or cleared."""
    RESTORED = "restored"
    """A summary was taken back."""
    NONE = "none"
    """The attempt changed nothing."""


class CompactionFacts(Struct, frozen=True):
    """One attempt to make the context shorter, as it is kept for later (SPEC CLAW-30)."""

    cause: CompactionCause
    kind: CompactionKind
    message_count: int
    """Messages of the conversation at that time: the next automatic attempt waits for more."""
    first_seq: int = 0
    """First message that the view before it contained."""
    start_seq: int = 0
    """First message that stayed as it was."""
    messages: int = 0
    """Messages summarized; for SHORTENED the results."""
    tokens_before: int = 0
    tokens_after: int = 0
    problem: str = ""
    """Reason why nothing was changed."""


class CompactionDraft(Struct, frozen=True):
    """A view made by a compaction, and the row about it; it takes effect with the move that saves it."""

    view: ContextView
    tokens: int
    """Tokens in the window from then on, estimated."""
    note: str
    """The row of the transcript about it."""
    facts: CompactionFacts
