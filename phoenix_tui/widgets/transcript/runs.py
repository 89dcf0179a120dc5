"""Quick reads of several replies in a row: they share the row of the first (docs/decisions/looks.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from engine.machine.messages import Origin, ToolUseBlock
from phoenix_tui.widgets.blocks.tool_view import ToolView
from phoenix_tui.widgets.transcript.model import TranscriptModel

LONGEST: Final = 40
"""Messages looked through in either direction."""


def reads_of(model: TranscriptModel, seq: int) -> list[ToolView]:
    """The calls of a message that holds nothing but quick good reads of one name; else none."""
    message = model.messages.get(seq)
    if message is None or message.silent or model.plain:
        return []
    views: list[ToolView] = []
    for block in message.blocks:
        if not isinstance(block, ToolUseBlock):
            return []
        view = model.calls.view(block)
        if not view.folds_with_others or (views and view.name != views[0].name):
            return []
        views.append(view)
    return views


def run_of(model: TranscriptModel, seq: int) -> list[int]:
    """The messages that share one row with message `seq`, oldest first; itself alone when it shares none."""
    reads = reads_of(model, seq)
    if not reads:
        return [seq]
    name = reads[0].name
    before = _neighbours(model, range(seq - 1, seq - LONGEST, -1), name)
    return [*reversed(before), seq, *_neighbours(model, range(seq + 1, seq + LONGEST), name)]


def _neighbours(model: TranscriptModel, seqs: range, name: str) -> list[int]:
    found: list[int] = []
    for seq in seqs:
        message = model.messages.get(seq)
        if message is not None and message.origin is Origin.TOOL:
            continue
        reads = reads_of(model, seq)
        if not reads or reads[0].name != name:
            break
        found.append(seq)
    return found


def opened_runs(model: TranscriptModel, seq: int, opened: Collection[str]) -> Iterator[str]:
    """The keys of opened rows of reads that message `seq` has a part in."""
    slots = {other - 1 for other in run_of(model, seq)}
    for key in opened:
        kind, _, call_id = key.partition(":")
        if kind == "reads" and model.calls.slot(call_id) in slots:
            yield key
