"""The turn navigator: every prompt of a conversation, what it led to, and the way there."""

from __future__ import annotations

import time
from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from engine.records import TurnSummary
from phoenix_tui.labels import Tone, age, money
from phoenix_tui.screens.pick import Choice, PickScreen
from phoenix_tui.widgets.blocks.rows import count_text, duration_text
from tools.clean import clean_line


class TurnsScreen(PickScreen):
    """Like every list to pick from, with two rows on the chosen turn below it. Gives the seq of a prompt."""

    DEFAULT_CSS = "TurnsScreen { & #turn { margin: 1 0 0 0; } }"

    def __init__(self, turns: Sequence[TurnSummary], current: int) -> None:
        self._turns = {str(turn.seq): turn for turn in turns}
        nearest = max((turn.seq for turn in turns if turn.seq <= current), default=0)
        width = len(str(len(turns)))
        choices = [
            Choice(str(turn.seq), f"{number:>{width}}  {turn.words or 'an image'}", remark(turn))
            for number, turn in enumerate(turns, 1)
        ]
        super().__init__("Turns", choices, current=str(nearest))

    def on_mount(self) -> None:
        """Draw and take the keys."""
        self.query_one(".sheet").mount(Static(id="turn", markup=False))
        super().on_mount()

    def _draw(self) -> None:
        super()._draw()
        places = list(self.query("#turn").results(Static))
        if places:
            turn = self._turns[self._found[self._chosen].key] if self._found else None
            places[0].update(Content("\n") if turn is None else detail(turn, self.size.width - 4, time.time()))


def remark(turn: TurnSummary) -> str:
    """A turn in the fewest words: calls, files, time, cost."""
    calls = sum(count for _, count in turn.tools)
    words = [
        count_text(calls, "call") if calls else "",
        count_text(len(turn.files), "file") if turn.files else "",
        duration_text(turn.seconds) if turn.seconds else "",
        money(turn.cost_usd) if turn.cost_usd is not None else "",
    ]
    return " · ".join(word for word in words if word)


def detail(turn: TurnSummary, width: int, now: float) -> Content:
    """What a turn did, by name: its tools, then its files; always two rows, so that nothing below moves."""
    tools = ", ".join(f"{name} {count}" if count > 1 else name for name, count in turn.tools) or "no tools"
    failed = f" · {turn.failed} failed" if turn.failed else ""
    first = f"{age(now - turn.created_at)} ago · {tools}"
    second = "changed " + ", ".join(clean_line(path) for path in turn.files) if turn.files else ""
    return Content("\n").join([
        Content.assemble(
            Content.styled(clean_line(first), Tone.QUIET.value), Content.styled(failed, Tone.BAD.value)
        ).truncate(width, ellipsis=True),
        Content.styled(second, Tone.QUIET.value).truncate(width, ellipsis=True),
    ])
