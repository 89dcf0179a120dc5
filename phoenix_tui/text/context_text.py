"""Checkpoints of files, attempts to shorten the context, and images, in words."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from engine.machine.views import CompactionCause, CompactionFacts, CompactionKind
from engine.records import Attachment, StoredCompaction
from phoenix_tui.text.labels import tokens
from tools.clean import clean_line
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.ports.files import CheckpointUse, Coverage


NAMES_SHOWN: Final = 5
"""Names in a sentence, before the rest is a number."""
VERSION_CONTROL: Final = frozenset({".git", ".hg", ".svn", ".jj"})
MEGABYTE: Final = 1024 * 1024


def use_in_words(use: CheckpointUse) -> str:
    """Space of the checkpoints and its limit, in one sentence."""
    used, total, file = (round(size / MEGABYTE) for size in (use.used, use.limits.total, use.limits.file))
    return f"Checkpoints: {used:,} of {total:,} MB (checkpoint_total_mb), files up to {file} MB (checkpoint_file_mb)."


def describe_unrestored(coverage: Coverage) -> str:
    """Files that a rewind does not restore; empty if there are none."""
    if coverage.refusal:
        return coverage.refusal
    words = [f"Deleted and not saved: {_names(coverage.gone)}."] if coverage.gone else []
    names = [name for name in coverage.left_out if name not in VERSION_CONTROL]
    left = _names(names, coverage.left_out_count - len(coverage.left_out))
    words += [f"Not restored, even if deleted: {left}."] if left else []
    parts = [f"{_names(coverage.too_large)} (too large)"] if coverage.too_large else []
    parts += [f"{_names(coverage.secret)} (may hold keys)"] if coverage.secret else []
    parts += [f"{pluralize(coverage.over, 'file')} over this folder's share of the limit"] if coverage.over else []
    words += [f"Not saved: {', '.join(parts)}."] if parts else []
    if any(name in VERSION_CONTROL for name in coverage.left_out):
        words.append("Git commits are kept.")
    return " ".join(words)


def _names(names: tuple[str, ...] | list[str], unnamed: int = 0) -> str:
    more = len(names) - NAMES_SHOWN + unnamed if len(names) > NAMES_SHOWN else unnamed
    return ", ".join([*map(clean_line, names[:NAMES_SHOWN]), *([f"{more} more"] if more > 0 else [])])


SHOWN: Final = 3
"""Newest attempts that are shown."""
CAUSES: Final = {
    CompactionCause.ASKED: "you asked",
    CompactionCause.FULL: "the window was full",
    CompactionCause.OVERFLOW: "a request did not fit",
    CompactionCause.RESTED: "after a long run",
    CompactionCause.LONG_RESULTS: "old results filled the window",
}


def compaction_lines(made: Sequence[StoredCompaction]) -> list[str]:
    return [compaction_line(one) for one in made[:SHOWN]]


def compaction_line(one: StoredCompaction) -> str:
    """`2026-11-24 14:02 · summarized 12 messages (the window was full) · 150k → 30k tokens`, in local time."""
    facts = one.facts
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.at))
    said = f"{when} · {_describe_outcome(facts)} ({CAUSES[facts.cause]})"
    if facts.kind is CompactionKind.NONE:
        return said
    return f"{said} · {tokens(facts.tokens_before)} → ~{tokens(facts.tokens_after)} tokens"


def _describe_outcome(facts: CompactionFacts) -> str:
    match facts.kind:
        case CompactionKind.SUMMARY:
            return f"summarized {pluralize(facts.messages, 'message')}"
        case CompactionKind.SHORTENED:
            return f"shortened {pluralize(facts.messages, 'tool result')}"
        case CompactionKind.RESTORED:
            return f"restored {pluralize(facts.messages, 'message')}"
        case CompactionKind.NONE:
            return f"not summarized: {clean_line(facts.problem).rstrip('.')}"


KILO: Final = 1_000


def size_words(image: Attachment) -> str:
    """`1568×882 · 310 KB · png`, and its size before shrinking."""
    words = f"{image.width}×{image.height} · {_weight(image)} · {_kind(image)}"
    return f"{words} · from {image.original_width}×{image.original_height}" if _shrunk(image) else words


def spell_size(image: Attachment) -> str:
    """`image, 1568 by 882, 310 KB, png`, and its size before shrinking."""
    words = f"image, {image.width} by {image.height}, {_weight(image)}, {_kind(image)}"
    return f"{words}, shrunk from {image.original_width} by {image.original_height}" if _shrunk(image) else words


def _weight(image: Attachment) -> str:
    return f"{max(image.bytes // KILO, 1):,} KB"


def _kind(image: Attachment) -> str:
    return image.media_type.rpartition("/")[2]


def _shrunk(image: Attachment) -> bool:
    return (image.original_width, image.original_height) != (image.width, image.height)
