"""The docked question that also takes the answers to questions of the model (`ask_user`)."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from textual.actions import SkipAction
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content

from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.updates import Question
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.request_text import CHOOSE, CHOOSE_ONLY, NO_ROW, SEND, AskForm, FormOutcome
from phoenix_tui.widgets.bases import Flowing, Opened
from phoenix_tui.widgets.question_panel import QuestionPanel

FINISH: Final = "Finish the line above"
OWN_WORDS: Final = "Enter takes your words as the answer."
DECLINES: Final = "Esc declines to answer"
PUTS_AWAY: Final = "Esc puts the question away"
CLOSES: Final = "Esc closes the question"
ASK_ACTIONS: Final = frozenset({"ask"})


class AskingPanel(QuestionPanel):
    """A form where the model asks, else the question about a tool call."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.ASK), *bindings(Scope.QUESTION)]

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__(plain=plain)
        self.form: AskForm | None = None
        """Answers being chosen; None while no question of the model is shown."""
        self._writing = False
        """True while the open line is for own words."""
        self.request.form = None

    def show(
        self, question: Question | None, folder: Path, place: str, *, own: bool = True, is_elsewhere: bool = False
    ) -> None:
        """Show a question, or none; a repeated one keeps its answers."""
        if question is not None and self._question is not None and question.call.id == self._question.call.id:
            super().show(question, folder, place, own=own, is_elsewhere=is_elsewhere)
            return
        had = self.form is not None
        asked = question.request.questions if question is not None else ()
        self.form = self.request.form = AskForm(asked) if asked else None
        self._writing = False
        super().show(question, folder, place, own=own, is_elsewhere=is_elsewhere)
        if had and self.form is None:
            self.post_message(Opened(""))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys of a form count only while one is shown; then the others let them through."""
        return action not in ASK_ACTIONS or self.form is not None

    @property
    def invitation(self) -> str:
        """Words for the empty composer below; empty where it has its own."""
        if self.line.is_open:
            return FINISH
        if self.form is None or (self._question is not None and self._question.left_open):
            return ""
        return CHOOSE_ONLY if self.form.question.only_options else CHOOSE

    @property
    def declines(self) -> bool:
        """True where Esc declines to answer; a key that came as the question appeared was meant for something else."""
        return self.form is not None and self.display and self.gate.is_open

    def decline(self, *, is_left: bool = False) -> None:
        """Say no to all questions; with `is_left` those of a server are only put away."""
        of_server = self._question is not None and bool(self._question.server)
        self._answer(ApprovalAnswer(ApprovalChoice.DENY, is_left=is_left and of_server))

    def _offer(self, question: Question, *, guarded: bool) -> None:
        super()._offer(question, guarded=guarded)
        if question is self._question and self.form is not None and not guarded:
            self._say_esc()

    def _say_esc(self) -> None:
        if self._question is not None and self.can_focus and not self.line.is_open:  # a line has an Esc of its own
            words = PUTS_AWAY if self._question.server else DECLINES
            self.post_message(Opened(CLOSES if self._question.left_open else words))

    def _draw_answers(self) -> None:
        if self.form is None or self._question is None:
            super()._draw_answers()
            return
        from phoenix_tui.widgets.request_view import ask_keys  # noqa: PLC0415 - with the first question of the model

        words = ask_keys(self.form, guarded=self._guarded, left_open=self._question.left_open)
        rows = Content.styled(words, Tone.QUIET.value)
        self.query_one("#answers", Flowing).flow(lambda width: rows.wrap(max(width, 1)))

    def press(self, key: str) -> bool:
        """Answer with a digit or a key of the form, or with a letter of an approval."""
        if self.form is None:
            return super().press(key)
        if key == "n":
            self.decline()
        elif key == "r":
            self._writing = False
            self.ask_reason("No answer, because …", "Enter declines; the model reads the reason.")
        else:
            self._do(self.form.press(key))
        return True

    def take_lit(self) -> bool:
        return super().take_lit() if self.form is None else self.take_all()

    def take_all(self) -> bool:
        """Enter away from the form: send what was chosen; False where nothing was."""
        if self.form is None or not self.gate.is_open or not self.form.has_answers:
            return False
        self._do(self.form.press(SEND))
        return True

    def action_ask(self, key: str) -> None:
        if self.form is None:
            raise SkipAction
        if self.gate.is_open:
            self._do(self.form.press(key))

    def action_choose(self, by: int) -> None:
        if self.form is None:
            super().action_choose(by)
        elif self.form.move(by):
            self._redraw()
        else:
            self.post_message(self.Left(upwards=by < 0))

    def enter(self, *, from_below: bool) -> None:
        if self.form is None:
            super().enter(from_below=from_below)
        else:
            self.form.row = self.form.last_row if from_below else 0
            self._redraw()

    def clear_choice(self) -> None:
        super().clear_choice()
        if self.form is not None and not self.has_focus_within:
            self.form.row = NO_ROW
            self._redraw()

    def refuse(self, reason: str) -> bool:
        """Take a text from the composer: own words for the question in view, or the reason of a no."""
        if self.form is None or self._question is None:
            return super().refuse(reason)
        if self._question.left_open or self.line.is_open:
            return False
        self._do(self.form.write(reason))
        return True

    def take_line(self, answer: ApprovalAnswer) -> None:
        if self.form is None or not self._writing:
            super().take_line(answer)
            return
        self.close_line()
        self._do(self.form.write(answer.reason))

    def close_line(self) -> bool:
        closed, self._writing = super().close_line(), False
        if closed and self.form is not None:
            self._say_esc()
        return closed

    def _do(self, outcome: FormOutcome) -> None:
        match outcome:
            case FormOutcome.WRITE if self.form is not None:
                self.ask_reason(self.form.question.header, OWN_WORDS)
                self._writing = True
            case FormOutcome.COMPLETE if self.form is not None:
                self._answer(self.form.answer)
            case FormOutcome.CHANGED:
                self._redraw()
            case _:
                pass

    def _redraw(self) -> None:
        if self.form is None or not self.is_mounted:
            return
        self.request.forget()
        self.query_one("#request", Flowing).flow(self.request.body)
        self._draw_answers()
        self.fit()
        self.call_after_refresh(self._follow)

    def _follow(self) -> None:
        asked, form = self.query_one("#asked", VerticalScroll), self.form
        if form is None or form.row == NO_ROW or not asked.size.height:
            return
        first, after = self.request.find_chosen_rows(self.query_one("#request", Flowing).size.width, asked.size.height)
        if after - asked.scroll_y > asked.size.height:
            asked.scroll_to(y=after - asked.size.height, animate=False)
        if first < asked.scroll_y:
            asked.scroll_to(y=first, animate=False)
        self.say_more()
