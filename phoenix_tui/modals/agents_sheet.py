"""The sub-agents of a conversation, and the questions that they ask in its place."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.executor.requests import ApprovalAnswer, ApprovalChoice, EngineError, Refused
from engine.machine.states import AwaitingApproval
from engine.ports import StorageError
from engine.updates import AgentView, Unsubscribe
from phoenix_tui.features.agents import Pending, as_asked, at_work, hint_line, pending, pending_of
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import ANSWER_KEYS, Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.text_sheet import LineSheet
from phoenix_tui.text.agent_text import count_agents
from phoenix_tui.text.labels import ASKING, Tone, age, money, short_model, tokens
from phoenix_tui.text.request_text import LineFor, find_answer, one_line
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
from phoenix_tui.widgets.asking_panel import AskingPanel
from phoenix_tui.widgets.bases import first_visible, mark_chosen, move_choice, run_latest
from phoenix_tui.widgets.notices import Notifier
from phoenix_tui.widgets.question_panel import ROWS_BESIDE, QuestionPanel
from tools.call_titles import call_title
from tools.clean import clean, clean_line
from tools.clock import SYSTEM_CLOCK, Clock
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.engine import Engine

MOST_ROWS: Final = 6
"""Rows of the list in sight beside a question; its text needs the room."""
SHARE_OF_ROWS: Final = 6
"""Part of the screen, as a divisor, that these take at most."""
LEAST_ROWS: Final = 2
QUESTION_SHARE: Final = 0.9
"""Share of the rows of the screen that a sheet with a question may take."""
AROUND: Final = 11
"""Rows of the sheet beside list and text: rule, heading, blank, asker, where (2), answers (3), remark, and one over."""


class AnsweringSheet(Sheet[str]):
    """y s a n r answer the question in sight, D denies all; a question takes no letter as it appears."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    DEFAULT_CSS = "AnsweringSheet QuestionPanel { margin: 1 0 0 0; padding: 0; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.QUESTION, *ANSWER_KEYS),
        *bindings(Scope.ASK, "ask_before", "ask_after", "ask_other"),
        *bindings(Scope.APPROVALS),
    ]

    def __init__(self, engine: Engine, toasts: Notifier, *, plain: bool = False) -> None:
        super().__init__()
        self._engine = engine
        self._toasts = toasts
        self._plain = plain
        self._denying = False
        """True while the reason being written is for all of them."""
        self._unwatch: Unsubscribe | None = None
        self.question = AskingPanel(plain=plain)
        self.question.can_focus = self.question.lights = False
        self.question.way_on = hint(("sheet_page_down", "scrolls"))

    @abstractmethod
    def waiting(self) -> Sequence[Pending]:
        """Every question that can be answered here."""

    @abstractmethod
    def look(self) -> None:
        """Update the list after an event in a conversation."""

    @abstractmethod
    def go_to_asker(self) -> None:
        """Close, and open the conversation whose question is in sight."""

    def on_mount(self) -> None:
        self._unwatch = self._engine.watch(lambda _: self.look())
        self.begin()

    def begin(self) -> None:
        """Show the list, and follow the time."""

    def on_unmount(self) -> None:
        self.leave()

    def leave(self) -> None:
        """Stop listening to events."""
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None

    @property
    def most_rows(self) -> int:
        """Rows of the list while a question is in sight, whose answers take a row each."""
        return max(min(MOST_ROWS, self.size.height // SHARE_OF_ROWS), LEAST_ROWS)

    def ask(self, one: Pending | None, listed: int) -> None:
        """Show this question, or none, below `listed` rows of a list."""
        self.question.room = int(self.size.height * QUESTION_SHARE) - AROUND - listed + ROWS_BESIDE
        self.question.fit()
        if one is None:
            self.question.close_line()
            self.question.show(None, Path(), "")
        else:
            record = one.conversation.record
            self.question.show(as_asked(one.question, record), record.cwd, "", is_elsewhere=True)

    def action_read(self, by: int) -> None:
        """Move through a request that is taller than its room."""
        self.question.action_scroll_asked(by)

    def action_answer(self, letter: str) -> None:
        """Answer the question in sight; its plan is edited in its conversation."""
        asked = self.question.question
        answer = find_answer(asked, letter) if asked is not None and not asked.request.questions else None
        if answer is not None and answer.line is LineFor.PLAN:
            self.go_to_asker()
        elif self.question.display:
            self._denying = False
            self.question.action_answer(letter)

    def action_ask(self, key: str) -> None:
        """A key of the questions in sight."""
        self.question.action_ask(key)

    def action_deny_all(self) -> None:
        """Ask why, then deny all that wait now."""
        if self.question.display:
            self._denying = True
            self.question.ask_reason(f"No to all {len(self.waiting())}, because … (Enter denies)")

    def action_close(self) -> None:
        """Close an open line, else the sheet."""
        if not self.question.close_line():
            self.dismiss(None)

    def on_question_panel_left(self, event: QuestionPanel.Left) -> None:
        """A line was closed: the keys are the sheet's again."""
        event.stop()
        self.set_focus(None)

    def on_question_panel_answered(self, event: QuestionPanel.Answered) -> None:
        """Answer the conversation, or all of them."""
        event.stop()
        self.set_focus(None)
        chosen = [one for one in self.waiting() if one.question.call.id == event.call_id]
        wanted = self.waiting() if self._denying else chosen[:1]
        self.app.run_worker(self._answer(tuple(wanted), event.answer), group="answers")  # outlives the sheet

    async def _answer(self, wanted: Sequence[Pending], answer: ApprovalAnswer) -> None:
        for one in wanted:
            receipt = await one.conversation.answer(one.question.call.id, answer)
            if isinstance(receipt, Refused):
                self._toasts.tell(f"{one.title}: {receipt.reason}", bad=True)
        if self._denying and answer.choice is ApprovalChoice.DENY:
            self._toasts.tell(f"{len(wanted)} denied.")
        self._denying = False


class ApprovalsSheet(AnsweringSheet):
    """Oldest first; gives the conversation to go to."""

    DEFAULT_CSS = """
    ApprovalsSheet {
        & > .sheet { max-height: 90%; }
        & #heading, & #rows, & #elsewhere { height: auto; }
        & #elsewhere { color: $text-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.ROWS, sheet_take="go", sheet_page_up="read(-10)", sheet_page_down="read(10)"),
    ]

    def __init__(self, engine: Engine, toasts: Notifier, *, plain: bool = False, elsewhere: Sequence[str] = ()) -> None:
        super().__init__(engine, toasts, plain=plain)
        self._elsewhere = elsewhere
        self._waiting: list[Pending] = []
        self._chosen = 0

    def waiting(self) -> Sequence[Pending]:
        """All of them."""
        return self._waiting

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield Static(id="rows", markup=False)
            yield Static(id="elsewhere", markup=False)
            yield self.question

    def begin(self) -> None:
        """Show the other waiting processes, and their times."""
        self.query_one("#elsewhere").display = bool(self._elsewhere)
        self.query_one("#elsewhere", Static).update("\n".join(f"  {clean_line(one)}" for one in self._elsewhere))
        self.set_interval(1.0, self._draw_rows)
        self.look()

    def look(self) -> None:
        """Read the waiting questions; the chosen one stays chosen while it waits."""
        chosen = self._waiting[self._chosen].question if self._waiting else None
        self._waiting = pending(self._engine)
        if not self._waiting:
            self.leave()
            self.dismiss(None)
            return
        places = [place for place, one in enumerate(self._waiting) if one.question == chosen]
        self._chosen = places[0] if places else min(self._chosen, len(self._waiting) - 1)
        self._draw()

    def _draw(self) -> None:
        """Draw all: rows are as wide as the screen, the text as tall as the rest."""
        listed = min(len(self._waiting), self.most_rows) + len(self._elsewhere)
        self.ask(self._waiting[self._chosen] if self._waiting else None, listed)
        self._draw_rows()

    def _draw_rows(self) -> None:
        count = len(self._waiting)
        words = f"{pluralize(count, 'approval')} {'wait' if count > 1 else 'waits'}"
        keys = hint(("deny_all", "denies all") if count > 1 else "", ("sheet_take", "opens"))
        heading = Content.assemble((words, "bold"), (f"   {keys}", Tone.QUIET.value))
        self.query_one("#heading", Static).update(heading.truncate(self.measure, ellipsis=True))
        first = first_visible(self._chosen, count, self.most_rows)
        shown = self._waiting[first : first + self.most_rows]
        self.query_one("#rows", Static).update(
            Content("\n").join(self._row(one, first + place) for place, one in enumerate(shown))
        )

    def _row(self, one: Pending, place: int) -> Content:
        """Author, text and age of a question; the selected row is reversed."""
        chosen, width = place == self._chosen, self.measure
        waits = f" {age(time.monotonic() - one.question.asked)}"
        call, request = one.question.call, one.question.request
        what = one_line(call_title(call.name, call.input_json, request.command or request.summary, "  "))
        row = Content.assemble(
            "› " if chosen else "  ",
            (f"{ASKING.mark(self._plain)} ", ASKING.tone.value),
            (one.title, "bold"),
            (f"  {what}", "" if chosen else Tone.QUIET.value),
        ).truncate(width - len(waits), ellipsis=True, pad=True)
        row = Content.assemble(row, (waits, Tone.QUIET.value))
        return Content.styled(row.plain, "reverse") if chosen else row

    def action_move(self, by: int) -> None:
        place = move_choice(self._chosen, by, len(self._waiting))
        if place != self._chosen:
            self._chosen = place
            self._draw()

    def action_go(self) -> None:
        """Send the answers chosen here, else go to the conversation of the selected one."""
        if self.question.take_all():
            return
        self.go_to_asker()

    def go_to_asker(self) -> None:
        self.dismiss(self._waiting[self._chosen].conversation.id)


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
        engine: Engine,
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
        ids = [view.id for view in self._views]
        wanted = [current, *(one.conversation.id for one in self.waiting())]
        self._chosen = next((ids.index(one) for one in wanted if one in ids), 0)
        """At first the current one, or where it is not listed one that asks."""
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

    @property
    def _views(self) -> list[AgentView]:
        return list(self._sub_agents.views(self._parent_id))

    @property
    def _one(self) -> AgentView:
        return self._views[min(self._chosen, len(self._views) - 1)]

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield Static(id="rows", markup=False)
            yield Static(id="detail", markup=False)
            yield self.question

    def begin(self) -> None:
        """Look again each second while it is open."""
        self.set_interval(TICK, self._draw)
        self._draw()

    def _draw(self) -> None:
        views, width = self._views, self.measure
        asked = next((one for one in self.waiting() if one.conversation.id == self._one.id), None)
        self.query_one("#heading", Static).update(_heading(views, width, asks=asked is not None))
        room = max(int(self.size.height * SHARE) - CHROME, 3)
        room = room if asked is None else min(room, self.most_rows)
        self._each = rows_each(views, width - POINTER, room)
        most = room // self._each
        self._first = first_visible(self._chosen, len(views), most)
        rows = agent_rows(views, width - POINTER, self.clock.now(), plain=self._plain, each=self._each)
        shown = [
            mark_chosen(row, chosen=place // self._each == self._chosen, sign=" " if place % self._each else "›")
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
        self._chosen = move_choice(self._chosen, by, len(self._views))
        self._draw()

    def action_read(self, by: int) -> None:
        """Move through the question in sight, else through the rows."""
        if self.question.display:
            super().action_read(by)
        else:
            self.action_move(by)

    def action_take(self) -> None:
        self.go_to_asker()

    def go_to_asker(self) -> None:
        self.dismiss(self._one.id)

    def action_beside(self) -> None:
        self.dismiss(f"{BESIDE}{self._one.id}")

    def action_stop_one(self) -> None:
        """Stop the chosen one; its parent gets its results so far."""
        if self._one.outcome is not None:
            self._toasts.tell("The sub-agent has already ended.")
            return
        self._sub_agents.stop((self._one.id,))
        self._draw()

    def action_stop_all(self) -> None:
        working = at_work(self._views)
        self._sub_agents.stop([view.id for view in working])
        self._toasts.tell(f"{len(working)} stopped; their results are kept." if working else "No sub-agent is running.")
        self._draw()

    def action_hint(self) -> None:
        """Ask for a line that it reads before its next step; a finished one resumes with it."""
        run_latest(self, partial(self._hint, self._one), "hint")

    async def _hint(self, view: AgentView) -> None:
        name = clean_line(" ".join(view.task.split()))[:40]
        text = await self.app.push_screen_wait(LineSheet(hint_line(view, f"Hint for {name}")))
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
