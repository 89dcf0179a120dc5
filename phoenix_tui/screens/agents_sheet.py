"""Every sub-agent of a conversation, those of earlier days too: open, show beside, stop, send a hint."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.executor.requests import EngineError
from engine.machine.states import AwaitingApproval
from engine.ports import StorageError
from engine.updates import AgentView
from phoenix_tui.agent_words import counted
from phoenix_tui.agents_surface import AgentsSurface
from phoenix_tui.choosing import first_in_sight, moved
from phoenix_tui.keymap import Scope, bindings
from phoenix_tui.keys_in_force import hint
from phoenix_tui.labels import Tone, money, short_model, tokens
from phoenix_tui.screens.ask_line import AskLineScreen
from phoenix_tui.screens.base import Sheet
from phoenix_tui.screens.parts import Teller
from phoenix_tui.sub_agents import at_work
from phoenix_tui.widgets.agent_figures import last_words, profile_words, time_used, turns
from phoenix_tui.widgets.agent_rows import agent_rows, doing, ending_words, rows_each
from tools.clean import clean, clean_line

BESIDE: Final = "beside:"
"""Before the id of one that is to be shown in a pane beside."""
TICK: Final = 1.0
POINTER: Final = 2
"""Cells of the sign before a row."""
SHARE: Final = 0.7
CHROME: Final = 9
"""Rows of the sheet beside the rows: rule, heading, blank, and the six of what is said of the chosen one."""
DETAIL_ROWS: Final = 6
TASK_ROWS: Final = 2
FACT_ROWS: Final = 2
GAP: Final = "   "
KEYS: Final = (
    ("sheet_take", "opens"),
    ("agent_stop", "stops"),
    ("agent_hint", "hint"),
    ("agent_stop_all", "stops all"),
    ("agent_beside", "beside"),
)
"""The last ones go first where there is little room."""


class AgentsSheet(Sheet[str]):
    """Gives the id of the one to open, with `BESIDE` before it for a pane; the rest happens while it stays open."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    DEFAULT_CSS = "AgentsSheet { & Static { height: auto; } & #detail { margin: 1 0 0 2; } }"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.ROWS), *bindings(Scope.AGENTS)]

    def __init__(
        self,
        crew: AgentsSurface,
        parent_id: str,
        tell: Teller,
        *,
        plain: bool = False,
        current: str = "",
        wall: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self._crew = crew
        self._parent_id = parent_id
        self._tell = tell
        self._plain = plain
        self._wall = wall
        self._chosen = next((place for place, one in enumerate(self._views) if one.id == current), 0)
        self._first = 0
        """The place of the one on top."""
        self._each = 1
        """Rows of each."""

    @property
    def _views(self) -> list[AgentView]:
        return list(self._crew.views(self._parent_id))

    @property
    def _one(self) -> AgentView:
        return self._views[min(self._chosen, len(self._views) - 1)]

    def compose(self) -> ComposeResult:
        """Heading, rows, and what is to be said of the chosen one."""
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield Static(id="rows", markup=False)
            yield Static(id="detail", markup=False)

    def on_mount(self) -> None:
        """Look again each second while it is open."""
        self.set_interval(TICK, self._draw)
        self._draw()

    def on_resize(self) -> None:
        """Rows are as wide as the screen."""
        self._draw()

    def _draw(self) -> None:
        views, width = self._views, self.measure
        self.query_one("#heading", Static).update(_heading(views, width))
        room = max(int(self.size.height * SHARE) - CHROME, 3)
        self._each = rows_each(views, width - POINTER, room)
        most = room // self._each
        self._first = first_in_sight(self._chosen, len(views), most)
        rows = agent_rows(views, width - POINTER, self._wall(), plain=self._plain, each=self._each)
        shown = [self._marked(row, place) for place, row in enumerate(rows)]
        seen = slice(self._first * self._each, (self._first + most) * self._each)
        self.query_one("#rows", Static).update(Content("\n").join(shown[seen]))
        self.query_one("#detail", Static).update(self._detail(self._one, width - POINTER))

    @on(events.Click, "#rows")
    def point(self, event: events.Click) -> None:
        """A click chooses a row, one on the chosen row opens it."""
        place = self._first + event.y // self._each
        if place == self._chosen:
            self.action_take()
        elif place < len(self._views):
            self.action_move(place - self._chosen)

    def _marked(self, row: Content, place: int) -> Content:
        """A row of the screen: its sub-agent is the one at `place` divided by the rows of each."""
        if place // self._each != self._chosen:
            return Content.assemble("  ", row)
        return Content.styled(f"{'  ' if place % self._each else '› '}{row.plain}", "reverse")

    def _detail(self, view: AgentView, width: int) -> Content:
        """Task, who does it with what, and what it does or how it ended."""
        now = self._wall()
        lines = Content(clean(view.task).strip()).wrap(width)[:TASK_ROWS]
        lines += Content.styled(" · ".join(_facts(view, now)), Tone.QUIET.value).wrap(width)[:FACT_ROWS]
        if view.outcome is None:
            lines.append(doing(view, plain=self._plain).truncate(width, ellipsis=True))
        else:
            said = view.outcome.text if not view.outcome.reason else ending_words(view.outcome)
            lines += Content("\n".join(line for line in clean(said).splitlines() if line.strip())).wrap(width)
        return Content("\n").join(lines[:DETAIL_ROWS])

    def action_move(self, by: int) -> None:
        """Choose another one."""
        self._chosen = moved(self._chosen, by, len(self._views))
        self._draw()

    def action_take(self) -> None:
        """Open its transcript."""
        self.dismiss(self._one.id)

    def action_beside(self) -> None:
        """Open it in a pane beside."""
        self.dismiss(f"{BESIDE}{self._one.id}")

    def action_stop_one(self) -> None:
        """Stop the chosen one; its parent gets what it had found."""
        if self._one.outcome is not None:
            self._tell("It has ended already.")
            return
        self._crew.stop((self._one.id,))
        self._draw()

    def action_stop_all(self) -> None:
        """Stop all of them."""
        working = at_work(self._views)
        self._crew.stop([view.id for view in working])
        self._tell(f"{len(working)} stopped; what they found is kept." if working else "None is at work.")
        self._draw()

    def action_hint(self) -> None:
        """A line that it reads before its next step; one that has ended goes on with it."""
        self.run_worker(self._hint(self._one), group="hint", exclusive=True)

    async def _hint(self, view: AgentView) -> None:
        name = clean_line(" ".join(view.task.split()))[:40]
        ended = " (it goes on in the background)" if view.outcome is not None else ""
        text = await self.app.push_screen_wait(AskLineScreen(f"Hint for {name}{ended}"))
        if not text or not text.strip():
            return
        try:
            await self._crew.hint(view.id, text.strip())
        except (EngineError, StorageError) as error:
            self._tell(str(error), bad=True)
            return
        self._tell(
            "Sent: it goes on with it." if view.outcome is not None else "Sent: it reads it before its next step."
        )
        self._draw()


def _heading(views: Sequence[AgentView], width: int) -> Content:
    """How many there are, work and ask, and as many of the keys as there is room for."""
    working = at_work(views)
    asks = sum(isinstance(view.state, AwaitingApproval) for view in working)
    head = Content.assemble(
        (counted(len(views)), "bold"),
        (f" · {len(working)} at work" if working else "", Tone.WORK.value),
        (f" · {asks} {'asks' if asks == 1 else 'ask'} you" if asks else "", Tone.NEEDS_YOU.value),
    )
    parts = list(KEYS)
    while parts and head.cell_length + len(GAP) + len(hint(*parts)) > width:
        parts.pop()
    return Content.assemble(head, (f"{GAP}{hint(*parts)}", Tone.QUIET.value)).truncate(width, ellipsis=True)


def _facts(view: AgentView, now: float) -> list[str]:
    """All that is known of one, in words."""
    works = view.outcome is None
    facts = [profile_words(view), short_model(view.model)]
    facts += ["in the background"] if view.background else ["its parent waits for it"] if works else []
    facts += [f"turn {turns(view)}", time_used(view, now)] if view.turn else []
    facts += [f"{tokens(view.tokens)} tokens"] if view.tokens else []
    facts += [money(view.cost_usd)] if money(view.cost_usd) else []
    facts += [f"last output {last_words(view, now)}"] if last_words(view, now) else []
    return facts
