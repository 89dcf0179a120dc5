"""The docked question: what wants to run, in full, and the five answers (LOOK.md 7)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, assert_never

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
from phoenix_tui.widgets.line_input import LineInput
from tools.clean import clean_line, reveal
from tools.contract import DiffDisplay, Display, ImageDisplay, PlainDisplay, TerminalDisplay

ROWS_BESIDE: Final = 11
"""Rows of the screen that the body of a question never takes: title, answers, composer, status, some context."""
LEAST_ROWS: Final = 3
TIED: Final = "\u00a0"
"""A blank at which no line is broken: an answer stays beside its letter."""


class QuestionPanel(Vertical):
    """Shows one question and posts the answer; knows no engine."""

    can_focus = True
    DEFAULT_CSS = """
    QuestionPanel {
        height: auto; display: none; padding: 0 0 0 1;
        & > #asker { height: auto; }
        & > #asked { height: auto; border-left: heavy $warning; padding: 0 0 0 1; scrollbar-size-vertical: 1; }
        & > #asked > Static { height: auto; }
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

    @dataclass
    class Answered(Message):
        """The user decided on the call `call_id`."""

        call_id: str
        answer: Answer

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
            yield Static(id="request", markup=False)
        yield Static(id="where", markup=False)
        yield Static(id="answers", markup=False)
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
        self.query_one("#request", Static).update(request_text(question))
        self.query_one("#where", Static).update(Content(where_text(question, folder)))
        self.query_one("#answers", Static).update(answers_text(question))
        asked = self.query_one("#asked", VerticalScroll)
        asked.styles.max_height = max(self.screen.size.height - ROWS_BESIDE, LEAST_ROWS)
        asked.scroll_home(animate=False)

    def _asker(self, question: Question, place: str) -> Content:
        return Content.assemble(
            (f"{ASKING.mark(self._plain)} ", ASKING.tone.value),
            (clean_line(question.asker) or "This conversation", "bold"),
            f" wants to run {clean_line(question.call.name)}",
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


def request_text(question: Question) -> Content:
    """The whole command or the whole change, every hidden character spelled out."""
    return _shown(question.request.preview) if question.request.preview else Content(reveal(question.request.summary))


def _shown(preview: Display) -> Content:
    match preview:
        case PlainDisplay(text=text):
            return Content(reveal(text))
        case TerminalDisplay(output=output):
            return Content(reveal(output))
        case DiffDisplay():
            return _diff(preview)
        case ImageDisplay(name=name, width=width, height=height):
            return Content(f"{reveal(name)} {width}×{height}")
        case _:
            assert_never(preview)


def _diff(change: DiffDisplay) -> Content:
    new = " (new file)" if change.created else ""
    parts: list[tuple[str, str]] = [(f"{reveal(change.path)}  +{change.added} -{change.removed}{new}\n", "bold")]
    for line in reveal(change.diff).split("\n"):
        style = Tone.GOOD.value if line.startswith("+") else Tone.BAD.value if line.startswith("-") else ""
        parts.append((line + "\n", style))
    return Content.assemble(*parts).rstrip()


def where_text(question: Question, folder: Path) -> str:
    """The folder, the paths outside it, and why it asks."""
    outside = [path for path in question.request.paths if not path.is_relative_to(folder)]
    parts = [f"in {reveal(short_path(folder))}"]
    if outside:
        parts.append("outside it: " + ", ".join(reveal(str(path)) for path in outside))
    if question.reason:
        parts.append(f"why: {reveal(question.reason)}")
    return " · ".join(parts)


def answers_text(question: Question) -> Content:
    """The letters and what they do; "always" names its rule."""
    rule = f"always: {reveal(question.rule)} …" if question.rule else ""
    choices = (("y", "once"), ("s", "this conversation"), ("a", rule), ("n", "no"), ("r", "no, because…"))
    return Content.assemble(
        *(
            piece
            for letter, words in choices
            if words
            for piece in ((f"{letter}{TIED}{TIED}", f"bold {Tone.NEEDS_YOU.value}"), f"{words.replace(' ', TIED)}    ")
        )
    )


def short_path(path: Path) -> str:
    """A folder with the home folder as `~`."""
    home = Path.home()
    return f"~/{path.relative_to(home)}".removesuffix("/.") if path.is_relative_to(home) else str(path)
