"""Every approval that waits, in one sheet: read whole and answered without going to its conversation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.executor.requests import Answer, Choice, Refused
from phoenix_tui.approvals import Pending, as_asked, pending
from phoenix_tui.choosing import first_in_sight, moved
from phoenix_tui.keymap import Scope, bindings
from phoenix_tui.keys_in_force import hint
from phoenix_tui.labels import ASKING, Tone, age
from phoenix_tui.screens.base import Sheet
from phoenix_tui.screens.parts import Teller
from phoenix_tui.surface import EngineSurface, Unsubscribe
from phoenix_tui.widgets.question_panel import ROWS_BESIDE, QuestionPanel
from phoenix_tui.widgets.question_text import one_line
from tools.clean import clean_line
from tools.wording import counted

MOST_ROWS: Final = 6
"""Approvals in sight at once; the text of the chosen one needs the room."""
SHARE: Final = 0.9
"""Of the rows of the screen that the sheet may take, as in its style."""
AROUND: Final = 11
"""Rows of the sheet beside list and text: rule, heading, blank, asker, where (2), answers (3), remark, and one over."""


class ApprovalsSheet(Sheet[str]):
    """Oldest first. y s a n r answer the chosen one, D denies all; gives the conversation to go to."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    DEFAULT_CSS = """
    ApprovalsSheet {
        & > .sheet { max-height: 90%; }
        & #heading, & #rows, & #elsewhere { height: auto; }
        & #elsewhere { color: $text-muted; }
        & QuestionPanel { margin: 1 0 0 0; padding: 0; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.ROWS, sheet_take="go", sheet_page_up="read(-10)", sheet_page_down="read(10)"),
        *bindings(Scope.QUESTION),
        *bindings(Scope.APPROVALS),
    ]

    def __init__(
        self, engine: EngineSurface, tell: Teller, *, plain: bool = False, elsewhere: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self._engine = engine
        self._tell = tell
        self._plain = plain
        self._elsewhere = elsewhere
        self._waiting: list[Pending] = []
        self._chosen = 0
        self._denying = False
        """Whether the reason that is being written is for all of them."""
        self._unwatch: Unsubscribe | None = None
        self.question = QuestionPanel(plain=plain)
        self.question.can_focus = False
        self.question.way_on = hint(("sheet_page_down", "reads on"))

    def compose(self) -> ComposeResult:
        """Heading, rows, the whole question."""
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield Static(id="rows", markup=False)
            yield Static(id="elsewhere", markup=False)
            yield self.question

    def on_mount(self) -> None:
        """Follow what every conversation does."""
        self._unwatch = self._engine.watch(lambda _: self._look())
        self.query_one("#elsewhere").display = bool(self._elsewhere)
        self.query_one("#elsewhere", Static).update("\n".join(f"  {clean_line(one)}" for one in self._elsewhere))
        self.set_interval(1.0, self._draw)
        self._look()

    def on_unmount(self) -> None:
        """Follow nothing any more."""
        self._leave()

    def _leave(self) -> None:
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None

    def on_resize(self) -> None:
        """Rows are as wide as the screen, the text as tall as what is left."""
        self._fit()
        self._draw()

    def _fit(self) -> None:
        listed = min(len(self._waiting), MOST_ROWS) + len(self._elsewhere)
        self.question.room = int(self.size.height * SHARE) - AROUND - listed + ROWS_BESIDE
        self.question.fit()

    def _look(self) -> None:
        """Take in what waits now; the chosen one stays chosen while it waits."""
        chosen = self._waiting[self._chosen].question if self._waiting else None
        self._waiting = pending(self._engine)
        if not self._waiting:
            self._leave()
            self.dismiss(None)
            return
        places = [place for place, one in enumerate(self._waiting) if one.question == chosen]
        self._chosen = places[0] if places else min(self._chosen, len(self._waiting) - 1)
        self._show()

    def _show(self) -> None:
        one = self._waiting[self._chosen]
        self._fit()
        record = one.conversation.record
        self.question.show(as_asked(one.question, record), record.cwd, "")
        self._draw()

    def _draw(self) -> None:
        count = len(self._waiting)
        words = f"{counted(count, 'approval')} {'wait' if count > 1 else 'waits'}"
        keys = hint(("deny_all", "denies all") if count > 1 else "", ("sheet_take", "opens"))
        heading = Content.assemble((words, "bold"), (f"   {keys}", Tone.QUIET.value))
        self.query_one("#heading", Static).update(heading.truncate(self.measure, ellipsis=True))
        first = first_in_sight(self._chosen, count, MOST_ROWS)
        shown = self._waiting[first : first + MOST_ROWS]
        self.query_one("#rows", Static).update(
            Content("\n").join(self._row(one, first + place) for place, one in enumerate(shown))
        )

    def _row(self, one: Pending, place: int) -> Content:
        """Who, what and since when; the chosen row is reversed."""
        chosen, width = place == self._chosen, self.measure
        waits = f" {age(time.monotonic() - one.question.asked)}"
        request = one.question.request
        what = f"{clean_line(one.question.call.name)}  {one_line(request.command or request.summary)}"
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
        place = moved(self._chosen, by, len(self._waiting))
        if place != self._chosen:
            self._chosen = place
            self._show()

    def action_read(self, by: int) -> None:
        """Move through a request that is taller than its room."""
        self.question.action_scroll_asked(by)

    def action_answer(self, letter: str) -> None:
        """Answer the chosen one."""
        self._denying = False
        self.question.action_answer(letter)

    def action_deny_all(self) -> None:
        """Ask why, then deny all that wait now."""
        self._denying = True
        self.question.ask_reason(f"No to all {len(self._waiting)}, because … (Enter denies them)")

    def action_go(self) -> None:
        """To the conversation of the chosen one."""
        self.dismiss(self._waiting[self._chosen].conversation.id)

    def action_close(self) -> None:
        """Close an open line, else the sheet."""
        if not self.question.close_line():
            self.dismiss(None)

    def on_question_panel_left(self, event: QuestionPanel.Left) -> None:
        """A line was closed: the keys are the sheet's again."""
        event.stop()
        self.set_focus(None)

    def on_question_panel_answered(self, event: QuestionPanel.Answered) -> None:
        """Tell the conversation, or all of them."""
        event.stop()
        self.set_focus(None)
        chosen = [one for one in self._waiting if one.question.call.id == event.call_id]
        wanted = self._waiting if self._denying else chosen[:1]
        self.app.run_worker(self._answer(tuple(wanted), event.answer), group="answers")  # outlives the sheet

    async def _answer(self, wanted: Sequence[Pending], answer: Answer) -> None:
        for one in wanted:
            receipt = await one.conversation.answer(one.question.call.id, answer)
            if isinstance(receipt, Refused):
                self._tell(f"{one.title}: {receipt.reason}", bad=True)
        if self._denying and answer.choice is Choice.DENY:
            self._tell(f"{len(wanted)} denied.")
        self._denying = False
