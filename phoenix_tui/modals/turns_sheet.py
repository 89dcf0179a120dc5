"""The turn navigator: every prompt of a conversation, its effects, and the way there."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from textual.content import Content
from textual.widgets import Static

from engine.records.turns import TurnSummary
from phoenix_tui.modals.picker_sheet import PickerRow, PickerSheet
from phoenix_tui.text.labels import Tone, age, money
from phoenix_tui.widgets.blocks.rows import duration_text
from tools.clean import clean_line
from tools.wording import counted

SUMMARY_ROWS: Final = 3
DETAIL_ROWS: Final = 2


class TurnsSheet(PickerSheet):
    """Like every list to pick from, with rows on the chosen turn below it. Gives the seq of a prompt."""

    TAKES = "Enter jumps to it"
    DEFAULT_CSS = "TurnsSheet { & #turn { margin: 1 0 0 0; } }"

    def __init__(self, turns: Sequence[TurnSummary], current: int) -> None:
        self._turns = {str(turn.seq): turn for turn in turns}
        self._summed_up = any(turn.summary for turn in turns)
        self.rows_below = 1 + DETAIL_ROWS + (SUMMARY_ROWS if self._summed_up else 0)
        nearest = max((turn.seq for turn in turns if turn.seq <= current), default=0)
        width = len(str(len(turns)))
        choices = [
            PickerRow(str(turn.seq), f"{number:>{width}}  {turn.words or 'an image'}", remark(turn), turn.summary)
            for number, turn in enumerate(turns, 1)
        ]
        super().__init__("Turns", choices, current=str(nearest))

    def begin(self) -> None:
        """Draw and take the keys."""
        self.query_one(".sheet").mount(Static(id="turn", markup=False))
        super().begin()

    def _draw(self) -> None:
        super()._draw()
        places = list(self.query("#turn").results(Static))
        if places:
            turn = self._turns[self._found[self._chosen].key] if self._found else None
            width = self.measure
            rows = [Content()] * DETAIL_ROWS if turn is None else detail(turn, width, time.time())
            if self._summed_up:
                rows[:0] = summary_rows(turn.summary if turn is not None else "", width)
            places[0].update(Content("\n").join(rows))


def remark(turn: TurnSummary) -> str:
    """A turn in the fewest words: calls, files, time, cost."""
    calls = sum(count for _, count in turn.tools)
    words = [
        counted(calls, "call") if calls else "",
        counted(len(turn.files), "file") if turn.files else "",
        duration_text(turn.seconds) if turn.seconds else "",
        money(turn.cost_usd) if turn.cost_usd is not None else "",
    ]
    return " · ".join(word for word in words if word)


def summary_rows(summary: str, width: int) -> list[Content]:
    """Summary of a turn by a model; always the same number of rows, so that nothing below moves."""
    lines = Content(clean_line(summary)).wrap(max(width, 1)) if summary else []
    shown = lines[:SUMMARY_ROWS]
    if len(lines) > SUMMARY_ROWS:
        shown[-1] = Content(f"{shown[-1].plain.rstrip()} …").truncate(width, ellipsis=True)
    return [*shown, *[Content()] * (SUMMARY_ROWS - len(shown))]


def detail(turn: TurnSummary, width: int, now: float) -> list[Content]:
    """Actions of a turn by name: its tools, then its files; always two rows, so that nothing below moves."""
    tools = ", ".join(f"{name} {count}" if count > 1 else name for name, count in turn.tools) or "no tools"
    failed = f" · {turn.failed} failed" if turn.failed else ""
    first = f"{age(now - turn.created_at)} ago · {tools}"
    second = "changed " + ", ".join(clean_line(path) for path in turn.files) if turn.files else ""
    return [
        Content.assemble(
            Content.styled(clean_line(first), Tone.QUIET.value), Content.styled(failed, Tone.BAD.value)
        ).truncate(width, ellipsis=True),
        Content.styled(second, Tone.QUIET.value).truncate(width, ellipsis=True),
    ]
