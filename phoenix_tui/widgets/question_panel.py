"""The docked question: what wants to run, in full, and the five answers (LOOK.md 7)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from engine.executor.requests import Answer, Choice
from engine.updates import Question
from phoenix_tui.keymap import Scope, bindings
from phoenix_tui.labels import ASKING, Tone
from phoenix_tui.widgets.flowing import Flowing
from phoenix_tui.widgets.line_input import LineInput
from phoenix_tui.widgets.question_text import (
    answer_rows,
    first_change,
    request_rows,
    what_text,
    where_text,
)
from tools.clean import clean_line

ROWS_BESIDE: Final = 13
"""Rows of the screen that the body of a question never takes: title, answers, composer, status, some context."""
LEAST_ROWS: Final = 3


class QuestionPanel(Vertical):
    """Shows one question and posts the answer; knows no engine."""

    can_focus = True
    DEFAULT_CSS = """
    QuestionPanel {
        height: auto; display: none; padding: 0 0 0 1;
        & > #asker { height: auto; }
        & > #asked { height: auto; border-left: heavy $warning; padding: 0 0 0 1; scrollbar-size-vertical: 1; }
        & > #where { height: auto; border-left: heavy $warning; padding: 0 0 0 1; color: $text-muted; }
        & > #answers { height: auto; padding: 0 0 0 2; }
        & > #line { margin: 0 1 0 2; display: none; }
        &:focus > #asker { text-style: bold; }
        &:focus > #asked, &:focus > #where { border-left: heavy $accent; }
        &.-filling > #answers { display: none; }
        &.-filling > #line { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.QUESTION),
        Binding("up", "scroll_asked(-1)", show=False),
        Binding("down", "scroll_asked(1)", show=False),
    ]
    HELP = "y once, s for this conversation, a always, n no, r no with a reason. Esc stops the run."

    class Answered(Message):
        """The user decided on the call `call_id`."""

        def __init__(self, call_id: str, answer: Answer) -> None:
            super().__init__()
            self.call_id = call_id
            self.answer = answer

    class Left(Message):
        """A line was closed unsent: the focus belongs to the composer again."""

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__()
        self._plain = plain
        self._question: Question | None = None
        self._filling: Choice | None = None

    def compose(self) -> ComposeResult:
        """Asker, the whole request, where and why, the answers, a line for a rule or a reason."""
        yield Static(id="asker", markup=False)
        with VerticalScroll(id="asked", can_focus=False):
            yield Flowing(id="request")
        yield Static(id="where", markup=False)
        yield Flowing(id="answers")
        yield LineInput(id="line")

    def show(self, question: Question | None, folder: Path, place: str) -> None:
        """Show a question, or none; `place` says which of how many it is."""
        if question is None and self._question is None:
            return  # hidden as it was: a layout of the whole screen for nothing
        self._question = question
        self._close_line()
        self.display = question is not None
        if question is None:
            return
        self.query_one("#asker", Static).update(self._asker(question, place))
        self.query_one("#request", Flowing).flow(partial(request_rows, question))
        self.query_one("#where", Static).update(Content(where_text(question, folder)))
        self.query_one("#answers", Flowing).flow(partial(answer_rows, question))
        self.query_one("#asked", VerticalScroll).scroll_home(animate=False)
        self._fit()
        self.call_after_refresh(self._show_change, question)

    def on_resize(self) -> None:
        """Leave the conversation its rows."""
        self._fit()

    def _fit(self) -> None:
        self.query_one("#asked").styles.max_height = max(self.screen.size.height - ROWS_BESIDE, LEAST_ROWS)

    def _show_change(self, question: Question) -> None:
        """Where a change is taller than its room, begin at what changes."""
        asked, request = self.query_one("#asked", VerticalScroll), self.query_one("#request", Flowing)
        if self._question is question and asked.max_scroll_y > 0 and not asked.scroll_y:
            asked.scroll_to(y=first_change(question, request.size.width), animate=False)

    def _asker(self, question: Question, place: str) -> Content:
        return Content.assemble(
            (f"{ASKING.mark(self._plain)} ", ASKING.tone.value),
            (clean_line(question.asker) or "This conversation", "bold"),
            what_text(question),
            (f"  {place}" if place else "", Tone.QUIET.value),
        )

    def press(self, key: str) -> None:
        """Answer with one of the letters."""
        match key:
            case "y":
                self._answer(Answer(Choice.ONCE))
            case "s":
                self._answer(Answer(Choice.CONVERSATION))
            case "n":
                self._answer(Answer(Choice.DENY))
            case "a" if self._question is not None and self._question.rule:
                self._fill(Choice.ALWAYS, self._question.rule, "The rule that is kept; Enter keeps it, Esc goes back")
            case "r":
                self._fill(Choice.DENY, "", "No, because … (Enter sends the reason to the model, Esc goes back)")
            case _:
                return

    def close_line(self) -> bool:
        """Close the line for a rule or a reason; False when none was open."""
        if self._filling is None:
            return False
        self._close_line()
        self.post_message(self.Left())
        return True

    def action_answer(self, key: str) -> None:
        """A letter while the question has the focus."""
        self.press(key)

    def action_scroll_asked(self, by: int) -> None:
        """Move through a request that is taller than its room."""
        self.query_one("#asked", VerticalScroll).scroll_relative(y=by, animate=False)

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        """The rule or the reason is written."""
        event.stop()
        if self._filling is Choice.ALWAYS and event.text:
            self._answer(Answer(Choice.ALWAYS, rule=event.text))
        elif self._filling is Choice.DENY:
            self._answer(Answer(Choice.DENY, reason=event.text))

    def _fill(self, choice: Choice, text: str, placeholder: str) -> None:
        self._filling = choice
        self.add_class("-filling")
        line = self.query_one("#line", LineInput)
        line.placeholder = placeholder
        line.fill(text)
        self.screen.set_focus(line)

    def _close_line(self) -> None:
        self._filling = None
        self.remove_class("-filling")

    def _answer(self, answer: Answer) -> None:
        if self._question is not None:
            self.post_message(self.Answered(self._question.call.id, answer))
            self._close_line()
