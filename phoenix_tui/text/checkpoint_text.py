"""Checkpoints of files in words: their size, their limits, and exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tools.clean import clean_line
from tools.wording import counted

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


def left_alone(coverage: Coverage) -> str:
    """Files that a rewind does not restore; empty if there are none."""
    if coverage.refusal:
        return coverage.refusal
    words = [*_passed_over(coverage), *_not_kept(coverage)]
    if any(name in VERSION_CONTROL for name in coverage.left_out):
        words.append("Git commits are kept.")
    return " ".join(words)


def _passed_over(coverage: Coverage) -> list[str]:
    words = [f"Deleted and not saved: {_names(coverage.gone)}."] if coverage.gone else []
    names = [name for name in coverage.left_out if name not in VERSION_CONTROL]
    left = _names(names, coverage.left_out_count - len(coverage.left_out))
    return [*words, f"Not restored, even if deleted: {left}."] if left else words


def _not_kept(coverage: Coverage) -> list[str]:
    parts = [f"{_names(coverage.too_large)} (too large)"] if coverage.too_large else []
    parts += [f"{_names(coverage.secret)} (may hold keys)"] if coverage.secret else []
    parts += [f"{counted(coverage.over, 'file')} over this folder's share of the limit"] if coverage.over else []
    return [f"Not saved: {', '.join(parts)}."] if parts else []


def _names(names: tuple[str, ...] | list[str], unnamed: int = 0) -> str:
    more = len(names) - NAMES_SHOWN + unnamed if len(names) > NAMES_SHOWN else unnamed
    return ", ".join([*map(clean_line, names[:NAMES_SHOWN]), *([f"{more} more"] if more > 0 else [])])
