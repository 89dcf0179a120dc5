"""Live rows of the sub-agents at work, above the composer: shown while there are any."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from engine.machine.states import AwaitingApproval
from engine.updates import AgentView
from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.text.labels import AGENTS, Tone
from phoenix_tui.widgets.agent_rows import agent_rows, rows_each
from phoenix_tui.widgets.still import Still, Ticker

MOST: Final = 10
"""Sub-agents that have a row."""
TALL: Final = 36
"""Rows of the screen from which the panel may have every third of them; below that every sixth."""
TICK: Final = 1.0
"""Seconds between two looks at the clocks, while one of them runs."""
SIDES: Final = 2


class AgentPanel(Still, Widget):
    """A heading, a row or two each, `+n more`. A click on the heading folds it, one on a row opens that sub-agent.

    In the transcript of one of them it has its row alone, under the heading of all and the keys to the others.
    """

    DEFAULT_CSS = """
    AgentPanel {
        height: auto; display: none; padding: 0 1; background: $background; text-wrap: nowrap;
        &.-tall { margin: 1 0 0 0; }
    }
    """
    can_focus = False

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__()
        self._plain = plain
        self._source: Callable[[], Sequence[AgentView]] = tuple
        self._only = ""
        """The id of the one in view; empty for all of them."""
        self._shown: Sequence[AgentView] = ()
        """Views that have a row now, in order."""
        self._each = 1
        """Rows of each."""
        self._folded = False
        self._ticker = Ticker(self, TICK, self._look)
        self._drawn = Content()
        """Text drawn last."""
        self._drawn_for: tuple[int, Size] | None = None
        """Width of the panel and the screen's size at that time."""

    @property
    def ticking(self) -> bool:
        """True while its clock runs."""
        return self._ticker.runs

    def show(self, source: Callable[[], Sequence[AgentView]], only: str = "") -> None:
        """Show the views of `source`, now and with every tick; of `only` alone there is a row."""
        self._source, self._only = source, only
        self._look()

    def fold(self) -> None:
        """One line alone, or all rows again."""
        self._folded = not self._folded
        self._look()

    def _look(self) -> None:
        views = self._source()
        drawn, self._drawn_for = Content("\n").join(self._rows(views)), self._space
        self.display = bool(views)
        height = self.screen.size.height if self.is_attached else 0
        self.set_class(height >= TALL, "-tall")
        before, self._drawn = self._drawn.plain, drawn
        if drawn.plain != before:
            self.refresh(layout=drawn.plain.count("\n") != before.count("\n") or not before)
        self._ticker.run(self.is_attached and any(view.outcome is None for view in views))

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
        elif (place := (event.y - 1) // self._each) < len(self._shown):
            self.call_later(self.run_action, f"screen.command({f'agents {self._shown[place].id}'!r})")
        else:
            self.call_later(self.run_action, "screen.command('agents')")

    @property
    def _room(self) -> int:
        """Rows it may take below its heading."""
        height = self.screen.size.height
        return max(height // (3 if height >= TALL else 6), 2)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Number of rows at `width`: none of them wraps."""
        return len(self._rows(self._source(), width))

    def render(self) -> Content:
        """Heading and rows, as they were looked at last; there are others where the room is."""
        return self._drawn if self._drawn_for == self._space else Content("\n").join(self._rows(self._source()))

    @property
    def _space(self) -> tuple[int, Size] | None:
        return (self.size.width, self.screen.size) if self.is_attached else None

    def _rows(self, views: Sequence[AgentView], wide: int = 0) -> list[Content]:
        if not views or not self.is_attached:
            return []
        width = max(wide or self.size.width or self.screen.size.width - SIDES, 1)
        heading = self._heading(views, width)
        if self._folded:
            return [heading]
        own = [view for view in views if not self._only or view.id == self._only]
        self._each = rows_each(own, width, self._room)
        self._shown = chosen(own, min(self._room // self._each, MOST))
        rows = agent_rows(self._shown, width, time.time(), plain=self._plain, each=self._each)
        if more := len(own) - len(self._shown):
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
        shows = next((words for words in self._hints() if left.cell_length + len(words) < width), "")
        gap = max(width - left.cell_length - len(shows), 0)
        return Content.assemble(left.truncate(width, ellipsis=True), " " * gap, (shows, Tone.QUIET.value))

    def _hints(self) -> tuple[str, ...]:
        """The keys, in as many words as there may be room for."""
        every = hint(("agents", "shows all"))
        if not self._only:
            return (every,)
        others = f"{key('agent_previous')} {key('agent_next')}".strip()
        parent, ways = hint(("agent_parent", "parent")), f"{others} others" if others else ""
        return tuple(hint(*words) for words in ((parent, ways, every), (parent, ways), (parent,)))


def chosen(views: Sequence[AgentView], most: int) -> Sequence[AgentView]:
    """At most `most` views, in their order: asking ones are chosen first, then working ones, then ended ones."""
    ranked = sorted(range(len(views)), key=lambda place: _rank(views[place]))[:most]
    return [views[place] for place in sorted(ranked)]


def _rank(view: AgentView) -> int:
    if view.outcome is not None:
        return 3
    return 0 if isinstance(view.state, AwaitingApproval) else 2 if view.waits else 1
