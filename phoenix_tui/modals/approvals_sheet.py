"""Every approval that waits, and the part of a sheet that shows a question whole and answers it."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.api.conversation import Unsubscribe
from engine.api.engine import EngineApi
from engine.executor.requests import ApprovalAnswer, ApprovalChoice, Refused
from phoenix_tui.features.approvals import Pending, as_asked, pending
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import ANSWER_KEYS, Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.labels import ASKING, Tone, age
from phoenix_tui.text.request_text import one_line
from phoenix_tui.widgets.asking_panel import AskingPanel
from phoenix_tui.widgets.bases import first_visible, move_choice
from phoenix_tui.widgets.notices import Notifier
from phoenix_tui.widgets.question_panel import ROWS_BESIDE, QuestionPanel
from tools.call_titles import call_title
from tools.clean import clean_line
from tools.wording import pluralize

MOST_ROWS: Final = 6
"""Rows of the list in sight beside a question; its text needs the room."""
SHARE: Final = 0.9
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

    def __init__(self, engine: EngineApi, toasts: Notifier, *, plain: bool = False) -> None:
        super().__init__()
        self._engine = engine
        self._toasts = toasts
        self._plain = plain
        self._denying = False
        """True while the reason being written is for all of them."""
        self._unwatch: Unsubscribe | None = None
        self.question = AskingPanel(plain=plain)
        self.question.can_focus = False
        self.question.way_on = hint(("sheet_page_down", "scrolls"))

    @abstractmethod
    def waiting(self) -> Sequence[Pending]:
        """Every question that can be answered here."""

    @abstractmethod
    def look(self) -> None:
        """Update the list after an event in a conversation."""

    def on_mount(self) -> None:
        """Follow all conversations."""
        self._unwatch = self._engine.watch(lambda _: self.look())
        self.begin()

    def begin(self) -> None:
        """Show the list, and follow the time."""

    def on_unmount(self) -> None:
        """Follow nothing any more."""
        self.leave()

    def leave(self) -> None:
        """Stop listening to events."""
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None

    def ask(self, one: Pending | None, listed: int) -> None:
        """Show this question, or none, below `listed` rows of a list."""
        self.question.room = int(self.size.height * SHARE) - AROUND - listed + ROWS_BESIDE
        self.question.fit()
        if one is None:
            self.question.close_line()
            self.question.show(None, Path(), "")
        else:
            record = one.conversation.record
            self.question.show(as_asked(one.question, record), record.cwd, "")

    def action_read(self, by: int) -> None:
        """Move through a request that is taller than its room."""
        self.question.action_scroll_asked(by)

    def action_answer(self, letter: str) -> None:
        """Answer the question in sight."""
        if self.question.display:
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

    def __init__(
        self, engine: EngineApi, toasts: Notifier, *, plain: bool = False, elsewhere: Sequence[str] = ()
    ) -> None:
        super().__init__(engine, toasts, plain=plain)
        self._elsewhere = elsewhere
        self._waiting: list[Pending] = []
        self._chosen = 0

    def waiting(self) -> Sequence[Pending]:
        """All of them."""
        return self._waiting

    def compose(self) -> ComposeResult:
        """Heading, rows, the whole question."""
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield Static(id="rows", markup=False)
            yield Static(id="elsewhere", markup=False)
            yield self.question

    def begin(self) -> None:
        """Show the other waiting processes, and their times."""
        self.query_one("#elsewhere").display = bool(self._elsewhere)
        self.query_one("#elsewhere", Static).update("\n".join(f"  {clean_line(one)}" for one in self._elsewhere))
        self.set_interval(1.0, self._draw)
        self.look()

    def on_resize(self) -> None:
        """Redraw: rows are as wide as the screen, the text as tall as the rest."""
        self._show()

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
        self._show()

    def _show(self) -> None:
        listed = min(len(self._waiting), MOST_ROWS) + len(self._elsewhere)
        self.ask(self._waiting[self._chosen] if self._waiting else None, listed)
        self._draw()

    def _draw(self) -> None:
        count = len(self._waiting)
        words = f"{pluralize(count, 'approval')} {'wait' if count > 1 else 'waits'}"
        keys = hint(("deny_all", "denies all") if count > 1 else "", ("sheet_take", "opens"))
        heading = Content.assemble((words, "bold"), (f"   {keys}", Tone.QUIET.value))
        self.query_one("#heading", Static).update(heading.truncate(self.measure, ellipsis=True))
        first = first_visible(self._chosen, count, MOST_ROWS)
        shown = self._waiting[first : first + MOST_ROWS]
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
        """Choose another one."""
        place = move_choice(self._chosen, by, len(self._waiting))
        if place != self._chosen:
            self._chosen = place
            self._show()

    def action_go(self) -> None:
        """Send the answers chosen here, else go to the conversation of the selected one."""
        if self.question.take_all():
            return
        self.dismiss(self._waiting[self._chosen].conversation.id)
