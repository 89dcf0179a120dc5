"""Live rows of the sub-agents at work, above the composer: shown while there are any."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.timer import Timer
from textual.widget import Widget

from engine.machine.states import AwaitingApproval
from engine.updates import AgentView
from phoenix_tui.labels import AGENTS, Tone
from phoenix_tui.still import Still
from phoenix_tui.widgets.agent_rows import agent_rows

MOST_ROWS: Final = 6
ROWS_EACH: Final = 6
"""Rows of the screen for which the panel takes one."""
TICK: Final = 1.0
"""Seconds between two looks at the clocks, while one of them runs."""
ROOMY: Final = 24
"""Rows of the screen from which a blank one stands between the rows and a question."""
KEY: Final = "Alt+S shows all"
SIDES: Final = 2


class AgentPanel(Still, Widget):
    """A heading, a row each, `+n more`. A click on the heading folds it, one on a row opens that sub-agent."""

    DEFAULT_CSS = """
    AgentPanel {
        height: auto; display: none; padding: 0 1; background: $background;
        &.-asked { margin: 0 0 1 0; }
    }
    """
    can_focus = False

    def __init__(self, *, plain: bool = False, wall: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._plain = plain
        self._wall = wall
        self._source: Callable[[], Sequence[AgentView]] = tuple
        self._shown: Sequence[AgentView] = ()
        """Those that have a row now, in order."""
        self._folded = False
        self._timer: Timer | None = None
        self._drawn = ""

    @property
    def ticking(self) -> bool:
        """Whether its clock runs."""
        return self._timer is not None

    def show(self, source: Callable[[], Sequence[AgentView]]) -> None:
        """Show what `source` gives, now and with every tick."""
        self._source = source
        self._look()

    def fold(self) -> None:
        """One line alone, or all rows again."""
        self._folded = not self._folded
        self._look()

    def _look(self) -> None:
        views = self._source()
        rows = self._rows(views)
        self.display = bool(views)
        asked = any(view.outcome is None and isinstance(view.state, AwaitingApproval) for view in views)
        self.set_class(asked and self.is_attached and self.screen.size.height >= ROOMY, "-asked")
        drawn = "\n".join(str(row) for row in rows)
        if drawn != self._drawn:
            taller = drawn.count("\n") != self._drawn.count("\n") or not self._drawn
            self._drawn = drawn
            self.refresh(layout=taller)
        self._see_to_clock(any(view.outcome is None for view in views))

    def _see_to_clock(self, runs: bool) -> None:
        if runs and self._timer is None and self.is_attached:
            self._timer = self.set_interval(TICK, self._look)
        elif not runs and self._timer is not None:
            self._timer.stop()
            self._timer = None

    def on_mount(self) -> None:
        """Begin to tick where something works already."""
        self._look()

    def on_resize(self) -> None:
        """Other columns."""
        self.call_after_refresh(self._look)

    def on_click(self, event: events.Click) -> None:
        """The heading folds, a row opens."""
        if event.y == 0 or self._folded:
            self.fold()
        elif event.y - 1 < len(self._shown):
            self.call_later(self.run_action, f"screen.command({f'agents {self._shown[event.y - 1].id}'!r})")
        else:
            self.call_later(self.run_action, "screen.command('agents')")

    @property
    def _most(self) -> int:
        return max(min(self.screen.size.height // ROWS_EACH, MOST_ROWS), 2)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """A row of the screen each, whatever their width: none of them wraps."""
        return len(self._rows(self._source()))

    def render(self) -> Content:
        """Heading and rows."""
        return Content("\n").join(self._rows(self._source()))

    def _rows(self, views: Sequence[AgentView]) -> list[Content]:
        if not views or not self.is_attached:
            return []
        width = max(self.size.width or self.screen.size.width - SIDES, 1)
        heading = self._heading(views, width)
        self._shown = chosen(views, self._most)
        if self._folded:
            return [heading]
        rows = agent_rows(self._shown, width, self._wall(), plain=self._plain)
        if more := len(views) - len(self._shown):
            rows.append(Content.styled(f"  +{more} more", Tone.QUIET.value))
        return [heading, *rows]

    def _heading(self, views: Sequence[AgentView], width: int) -> Content:
        done = sum(view.outcome is not None for view in views)
        asks = sum(view.outcome is None and isinstance(view.state, AwaitingApproval) for view in views)
        left = Content.assemble(
            (f"{AGENTS.mark(self._plain)} " if self._folded else "", AGENTS.tone.value),
            (f"sub-agents {done}/{len(views)} done", Tone.QUIET.value),
            (f" · {asks} {'asks' if asks == 1 else 'ask'} you" if asks else "", Tone.NEEDS_YOU.value),
        )
        gap = width - left.cell_length - len(KEY)
        if gap < 1:
            return left.truncate(width, ellipsis=True)
        return Content.assemble(left, " " * gap, (KEY, Tone.QUIET.value))


def chosen(views: Sequence[AgentView], most: int) -> Sequence[AgentView]:
    """At most so many, in their order: those that ask come in first, then those at work, then those that ended."""
    ranked = sorted(range(len(views)), key=lambda place: _rank(views[place]))[:most]
    return [views[place] for place in sorted(ranked)]


def _rank(view: AgentView) -> int:
    if view.outcome is not None:
        return 3
    return 0 if isinstance(view.state, AwaitingApproval) else 2 if view.waits else 1
