"""Every sub-agent of a conversation, those of earlier days too: open, show beside, stop, answer, send a hint."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.api.engine import EngineApi
from engine.executor.requests import EngineError
from engine.machine.states import AwaitingApproval
from engine.ports import StorageError
from engine.updates import AgentView
from phoenix_tui.features.approvals import Pending, pending_of
from phoenix_tui.features.sub_agents import at_work
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.approvals_sheet import MOST_ROWS, AnsweringSheet
from phoenix_tui.modals.text_sheet import LineSheet
from phoenix_tui.text.agent_text import count_agents
from phoenix_tui.text.labels import Tone, money, short_model, tokens
from phoenix_tui.widgets.agent_panel import (
    agent_rows,
    describe_action,
    format_time_used,
    last_words,
    outcome_text,
    profile_words,
    rows_each,
    turns,
)
from phoenix_tui.widgets.bases import first_visible, move_choice, run_latest
from phoenix_tui.widgets.notices import Notifier
from tools.clean import clean, clean_line
from tools.clock import SYSTEM_CLOCK, Clock

BESIDE: Final = "beside:"
"""Prefix of the id of one to show in a separate pane."""
TICK: Final = 1.0
POINTER: Final = 2
"""Cells of the sign before a row."""
SHARE: Final = 0.7
CHROME: Final = 9
"""Rows of the sheet besides the list: rule, heading, blank, and six about the selected one."""
DETAIL_ROWS: Final = 6
TASK_ROWS: Final = 2
FACT_ROWS: Final = 2
GAP: Final = "   "
ANSWERS: Final = (("answer_once answer_no", "answers"), ("deny_all", "denies all"))
"""Keys while the selected one asks; the second where others do too."""
KEYS: Final = (
    ("sheet_take", "opens"),
    ("agent_stop", "stops"),
    ("agent_hint", "hints"),
    ("agent_stop_all", "stops all"),
    ("agent_beside", "splits"),
)
"""The last ones go first where there is little room."""


class AgentsSheet(AnsweringSheet):
    """Returns the id of the one to open, with `BESIDE` before it for a pane; other actions leave it open.

    The question of the selected one replaces its details.
    """

    DEFAULT_CSS = """
    AgentsSheet {
        & Static { height: auto; }
        & #detail { margin: 1 0 0 2; }
        &.-asking > .sheet { max-height: 90%; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.ROWS, sheet_page_up="read(-10)", sheet_page_down="read(10)"),
        *bindings(Scope.AGENTS),
    ]

    def __init__(
        self,
        engine: EngineApi,
        parent_id: str,
        toasts: Notifier,
        *,
        plain: bool = False,
        current: str = "",
    ) -> None:
        super().__init__(engine, toasts, plain=plain)
        assert engine.sub_agents is not None, "where there are none, none are shown"
        self._sub_agents = engine.sub_agents
        self._parent_id = parent_id
        self.clock: Clock = SYSTEM_CLOCK
        self._chosen = self._place_of(current)
        self._first = 0
        """The place of the one on top."""
        self._each = 1
        """Rows of each."""

    def waiting(self) -> Sequence[Pending]:
        """The questions of all of them."""
        return pending_of(self._engine, self._parent_id)

    def look(self) -> None:
        """One of them does something else."""
        if self.is_mounted:
            self._draw()

    def _place_of(self, agent_id: str) -> int:
        """Index of this one; if it is not listed, the first that asks."""
        ids = [view.id for view in self._views]
        wanted = [agent_id, *(one.conversation.id for one in self.waiting())]
        return next((ids.index(one) for one in wanted if one in ids), 0)

    @property
    def _views(self) -> list[AgentView]:
        return list(self._sub_agents.views(self._parent_id))

    @property
    def _one(self) -> AgentView:
        return self._views[min(self._chosen, len(self._views) - 1)]

    def compose(self) -> ComposeResult:
        """Heading, rows, and details of the selected one, or its question."""
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield Static(id="rows", markup=False)
            yield Static(id="detail", markup=False)
            yield self.question

    def begin(self) -> None:
        """Look again each second while it is open."""
        self.set_interval(TICK, self._draw)
        self._draw()

    def on_resize(self) -> None:
        """Rows are as wide as the screen."""
        self._draw()

    def _draw(self) -> None:
        views, width = self._views, self.measure
        asked = next((one for one in self.waiting() if one.conversation.id == self._one.id), None)
        self.query_one("#heading", Static).update(_heading(views, width, asks=asked is not None))
        room = max(int(self.size.height * SHARE) - CHROME, 3)
        room = room if asked is None else min(room, MOST_ROWS)
        self._each = rows_each(views, width - POINTER, room)
        most = room // self._each
        self._first = first_visible(self._chosen, len(views), most)
        rows = agent_rows(views, width - POINTER, self.clock.now(), plain=self._plain, each=self._each)
        shown = [
            _mark_chosen(row, place % self._each, chosen=place // self._each == self._chosen)
            for place, row in enumerate(rows)
        ]
        seen = slice(self._first * self._each, (self._first + most) * self._each)
        self.query_one("#rows", Static).update(Content("\n").join(shown[seen]))
        detail = self.query_one("#detail", Static)
        detail.display = asked is None
        detail.update(self._detail(self._one, width - POINTER))
        self.set_class(asked is not None, "-asking")
        self.ask(asked, len(shown[seen]))

    @on(events.Click, "#rows")
    def point(self, event: events.Click) -> None:
        """A click chooses a row, one on the chosen row opens it."""
        place = self._first + event.y // self._each
        if place == self._chosen:
            self.action_take()
        elif place < len(self._views):
            self.action_move(place - self._chosen)

    def _detail(self, view: AgentView, width: int) -> Content:
        """Task, profile and model, and the activity or the outcome."""
        now = self.clock.now()
        lines = Content(clean(view.task).strip()).wrap(width)[:TASK_ROWS]
        lines += Content.styled(" · ".join(_facts(view, now)), Tone.QUIET.value).wrap(width)[:FACT_ROWS]
        if view.outcome is None:
            lines.append(describe_action(view, plain=self._plain).truncate(width, ellipsis=True))
        else:
            said = view.outcome.text if not view.outcome.reason else outcome_text(view.outcome)
            lines += Content("\n".join(line for line in clean(said).splitlines() if line.strip())).wrap(width)
        return Content("\n").join(lines[:DETAIL_ROWS])

    def action_move(self, by: int) -> None:
        """Choose another one."""
        self._chosen = move_choice(self._chosen, by, len(self._views))
        self._draw()

    def action_read(self, by: int) -> None:
        """Move through the question in sight, else through the rows."""
        if self.question.display:
            super().action_read(by)
        else:
            self.action_move(by)

    def action_take(self) -> None:
        """Open its transcript."""
        self.dismiss(self._one.id)

    def action_beside(self) -> None:
        """Open it in a pane beside."""
        self.dismiss(f"{BESIDE}{self._one.id}")

    def action_stop_one(self) -> None:
        """Stop the chosen one; its parent gets its results so far."""
        if self._one.outcome is not None:
            self._toasts.tell("The sub-agent has already ended.")
            return
        self._sub_agents.stop((self._one.id,))
        self._draw()

    def action_stop_all(self) -> None:
        """Stop all of them."""
        working = at_work(self._views)
        self._sub_agents.stop([view.id for view in working])
        self._toasts.tell(f"{len(working)} stopped; their results are kept." if working else "No sub-agent is running.")
        self._draw()

    def action_hint(self) -> None:
        """Ask for a line that it reads before its next step; a finished one resumes with it."""
        run_latest(self, partial(self._hint, self._one), "hint")

    async def _hint(self, view: AgentView) -> None:
        name = clean_line(" ".join(view.task.split()))[:40]
        ended = " (it resumes in the background)" if view.outcome is not None else ""
        text = await self.app.push_screen_wait(LineSheet(f"Hint for {name}{ended}"))
        if not text or not text.strip():
            return
        try:
            await self._sub_agents.hint(view.id, text.strip())
        except (EngineError, StorageError) as error:
            self._toasts.tell(str(error), bad=True)
            return
        self._toasts.tell(
            "Hint sent; the sub-agent resumes."
            if view.outcome is not None
            else "Hint sent; the sub-agent reads it before its next step."
        )
        self._draw()


def _mark_chosen(row: Content, nth: int, *, chosen: bool) -> Content:
    """The nth row of a sub-agent; those of the chosen one are reversed."""
    if not chosen:
        return Content.assemble("  ", row)
    return Content.styled(f"{'  ' if nth else '› '}{row.plain}", "reverse")


def _heading(views: Sequence[AgentView], width: int, *, asks: bool) -> Content:
    """Numbers of all, working and asking ones, and as many of the keys as fit."""
    working = at_work(views)
    asking = sum(isinstance(view.state, AwaitingApproval) for view in working)
    busy = len(working) - asking
    head = Content.assemble(
        (count_agents(len(views)), "bold"),
        (f" · {busy} running" if busy else "", Tone.WORK.value),
        (f" · {asking} {'asks' if asking == 1 else 'ask'} you" if asking else "", Tone.NEEDS_YOU.value),
    )
    parts = [*(ANSWERS[: min(asking, len(ANSWERS))] if asks else ()), *KEYS]
    while parts and head.cell_length + len(GAP) + len(hint(*parts)) > width:
        parts.pop()
    return Content.assemble(head, (f"{GAP}{hint(*parts)}", Tone.QUIET.value)).truncate(width, ellipsis=True)


def _facts(view: AgentView, now: float) -> list[str]:
    """All that is known of one, in words."""
    works = view.outcome is None
    facts = [profile_words(view), short_model(view.model)]
    facts += ["in the background"] if view.background else ["its parent is waiting"] if works else []
    facts += [f"turn {turns(view)}", format_time_used(view, now)] if view.turn else []
    facts += [f"{tokens(view.tokens)} tokens"] if view.tokens else []
    facts += [money(view.cost_usd)] if money(view.cost_usd) else []
    facts += [f"last output {last_words(view, now)}"] if last_words(view, now) else []
    return facts
