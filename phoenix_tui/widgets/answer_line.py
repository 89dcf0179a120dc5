"""The line of a question for a rule or a reason, and the text about it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static, TextArea

from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.updates import Question
from phoenix_tui.keys.keymap import bindings
from phoenix_tui.keys.scopes import Scope
from phoenix_tui.widgets.answer_gate import AnswerGate
from phoenix_tui.widgets.line_input import LineInput
from phoenix_tui.widgets.question_text import rule_effect
from tools.clean import clean_line

READING: Final = 0.5
"""Seconds in which a rule is not kept: it is unread, and the key was meant for the former content."""
REASON: Final = "Enter denies; the model reads the reason."
REMARKS: Final = "Enter sends your remarks; the agent revises its plan."
"""Text below the line for a reason, and for remarks on a plan."""


class AnswerLine(Vertical):
    """Open for one answer at a time; a rule leaves it only if it matches the call it was made from."""

    DEFAULT_CSS = """
    AnswerLine {
        height: auto; display: none;
        & > #effect { height: auto; color: $text-muted; }
        &.-refused > #effect { color: $error; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "keep_here", show=False),
        *bindings(Scope.RULES, "rule_everywhere", rule_everywhere="keep_everywhere"),
    ]

    class Written(Message):
        """Enter, or Tab in a rule."""

        def __init__(self, answer: ApprovalAnswer) -> None:
            super().__init__()
            self.answer = answer

    def __init__(self, gate: AnswerGate) -> None:
        super().__init__()
        self._gate = gate
        self._since = 0.0
        """Time at which the line was opened."""
        self._question: Question | None = None
        """The one whose rule is written; None while it is a reason."""
        self._folder = Path()

    def compose(self) -> ComposeResult:
        """The line, and below it the effect of a rule."""
        yield LineInput(id="line")
        yield Static(id="effect", markup=False)

    @property
    def is_open(self) -> bool:
        """True while it takes text; before it is mounted its style does not hide it yet."""
        return self.is_mounted and self.display

    def open_rule(self, question: Question, folder: Path) -> None:
        """The rule that is offered, to be kept as it is or edited."""
        self._question, self._folder = question, folder
        self._open(question.rule, "tool(pattern)")

    def open_reason(self, placeholder: str, effect: str = REASON) -> None:
        """Ask for the reason of a refusal."""
        self._question = None
        self._open("", placeholder)
        self.query_one("#effect", Static).update(effect)

    def close(self) -> bool:
        """Put it away; False when it was not open."""
        was_open, self.display = self.is_open, False
        return was_open

    def action_keep_here(self) -> None:
        """Tab in a rule: for this conversation alone."""
        if self._question is None:
            raise SkipAction
        self._keep(ApprovalChoice.CONVERSATION, self.query_one("#line", LineInput).text.strip())

    def action_keep_everywhere(self) -> None:
        """Keep the rule in every project."""
        if self._question is None:
            raise SkipAction
        self._keep(ApprovalChoice.EVERYWHERE, self.query_one("#line", LineInput).text.strip())

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Show the effect of the rule, or the reason why it is invalid for this call."""
        event.stop()
        if self._question is not None:
            why, effect = rule_effect(self._question, self._rule(self._question, event.text_area.text), self._folder)
            self.set_class(bool(why), "-refused")
            self.query_one("#effect", Static).update(why or effect)

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        """The rule or the reason is written."""
        event.stop()
        if self._question is None:
            self.post_message(self.Written(ApprovalAnswer(ApprovalChoice.DENY, reason=event.text)))
        else:
            self._keep(ApprovalChoice.ALWAYS, event.text)

    def _rule(self, question: Question, text: str) -> str:
        """The offered rule for an unchanged line, also where the line cannot show it exactly; else the typed one."""
        return question.rule if text.strip() == clean_line(question.rule).strip() else text

    def _keep(self, choice: ApprovalChoice, text: str) -> None:
        """A rule that matches the call; another one stays in its line with the reason below it."""
        question = self._question
        if question is not None and self._gate.clock.monotonic() - self._since >= READING:
            rule = self._rule(question, text)
            if not rule_effect(question, rule, self._folder)[0]:
                self.post_message(self.Written(ApprovalAnswer(choice, rule=rule)))

    def _open(self, text: str, placeholder: str) -> None:
        self.display, self._since = True, self._gate.clock.monotonic()
        self.remove_class("-refused")
        self.query_one("#effect", Static).update("")
        line = self.query_one("#line", LineInput)
        line.placeholder = placeholder
        line.fill(text)
        self.screen.set_focus(line)
