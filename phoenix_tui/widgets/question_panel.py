"""The docked question: the request, the answers, and the line for a rule or a reason (docs/decisions/looks.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from msgspec.structs import replace
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea

from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.updates import Question
from phoenix_tui.keys.active_keys import BACK, hint, key
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.text.labels import ASKING, Tone
from phoenix_tui.text.request_text import LineFor, find_answer, list_answers, odd_in
from phoenix_tui.widgets.answer_gate import GRACE, AnswerGate
from phoenix_tui.widgets.bases import Flowing, Opened
from phoenix_tui.widgets.blocks.diff_rows import diff_rows
from phoenix_tui.widgets.line_input import LineInput
from phoenix_tui.widgets.question_text import (
    NONE,
    Paint,
    answer_rows,
    heading_rows,
    mode_note,
    rule_effect,
    what_text,
    where_text,
)
from phoenix_tui.widgets.request_view import RequestReading
from tools.clean import clean_line
from tools.contract import DiffDisplay
from tools.wording import one_line

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
        yield LineInput(id="line")
        yield Static(id="effect", markup=False)

    @property
    def is_open(self) -> bool:
        """True while it takes text; before it is mounted its style does not hide it yet."""
        return self.is_mounted and self.display

    def open_rule(self, question: Question, folder: Path) -> None:
        self._question, self._folder = question, folder
        self._open(question.rule, "tool(pattern)")

    def open_reason(self, placeholder: str, effect: str = REASON) -> None:
        self._question = None
        self._open("", placeholder)
        self.query_one("#effect", Static).update(effect)

    def close(self) -> bool:
        was_open, self.display = self.is_open, False
        return was_open

    def action_keep_here(self) -> None:
        """Tab in a rule: for this conversation alone."""
        if self._question is None:
            raise SkipAction
        self._keep(ApprovalChoice.CONVERSATION, self.query_one("#line", LineInput).text.strip())

    def action_keep_everywhere(self) -> None:
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


ROWS_BESIDE: Final = 13
"""Rows of the screen that the body of a question never takes: title, answers, composer, status, some context."""
ANSWER_ROWS: Final = 5
"""Rows for the reason and the answers among them; more take their rows from the body, so that all stay visible."""
BORDER: Final = 2
"""Cells beside the text of where and why."""
SCROLLBAR: Final = 1
LEAST_ROWS: Final = 3
ROOMY: Final = 24
"""Rows of the screen from which a blank row separates the question from the messages."""
MOST_TITLES: Final = 200
"""Characters of the titles of other conversations that ask."""


def goes_on(question: Question | None, shown: Question | None) -> bool:
    """True for the visible question, perhaps with another reason: a mode was changed that asks too."""
    return question is not None and shown is not None and replace(question, reason=shown.reason) == shown


class QuestionPanel(RequestReading):
    """Shows one question and posts the answer; knows no engine."""

    can_focus = True
    DEFAULT_CSS = """
    QuestionPanel {
        height: auto; display: none; padding: 0 1;
        & > #asker { height: auto; }
        & > #asked { height: auto; border-left: heavy $warning; padding: 0 0 0 1; scrollbar-size-vertical: 1; }
        & > #tail { height: auto; border-left: heavy $warning; padding: 0 1 0 1; display: none; }
        & > #odd { height: auto; border-left: heavy $warning; padding: 0 0 0 1; color: $warning; display: none; }
        & > #where { height: auto; border-left: heavy $warning; padding: 0 0 0 1; color: $text-muted; }
        & > #answers { height: auto; }
        & > AnswerLine { margin: 0 0 0 2; }
        & > #more { height: auto; padding: 0 0 0 2; color: $text-muted; display: none; }
        & > #more.-refused { color: $warning; text-style: bold; }
        &:focus > #asker { text-style: bold; }
        &:focus > #asked, &:focus > #tail, &:focus > #odd, &:focus > #where { border-left: heavy $accent; }
        &.-filling > #answers { display: none; }
        &.-roomy { padding: 1 1 0 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.QUESTION)
    HELP = "y once, s for this conversation, a always, n no, r no with a reason; or choose with the arrows and Enter."

    class Answered(Message):
        """The user decided on the call `call_id`."""

        def __init__(self, call_id: str, answer: ApprovalAnswer) -> None:
            super().__init__()
            self.call_id = call_id
            self.answer = answer

    class Left(Message):
        """The focus belongs to the composer again; `upwards` when Up went beyond the first answer."""

        def __init__(self, *, upwards: bool = False) -> None:
            super().__init__()
            self.upwards = upwards

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__()
        self._plain = plain
        self._question: Question | None = None
        self._folder = Path()
        self._lit = 0
        """The place of the answer that Enter gives."""
        self.lights = True
        """False where Enter belongs to the widget around it: no answer is lit."""
        self._is_elsewhere = False
        """True where the question is about another folder than that of the conversation in view."""
        self._guarded = False
        """True while letters are not taken yet."""
        self.line = AnswerLine(self.gate)
        self.others: Sequence[str] = ()
        """Titles of the other conversations that ask; set by the workspace."""
        self.way_on = ""
        """The keys that scroll the request, where others than those of the workspace do."""
        self.room = 0
        """Rows of its pane; 0 for the whole screen."""

    def compose(self) -> ComposeResult:
        yield Flowing(id="asker")
        with VerticalScroll(id="asked", can_focus=False):
            yield Flowing(id="request")
        yield Flowing(id="tail")
        yield Static(id="odd", markup=False)
        yield Static(id="where", markup=False)
        yield Flowing(id="answers")
        yield self.line
        yield Static(id="more", markup=False)

    def show(
        self, question: Question | None, folder: Path, place: str, *, own: bool = True, is_elsewhere: bool = False
    ) -> None:
        """Show a question, or none; `own`: of the conversation in view, `is_elsewhere`: in another folder than its."""
        if question is None and self._question is None:
            return  # still hidden: an unnecessary layout of the whole screen
        if question == self._question:
            return  # repeated: an open line and the position in a long text stay
        if question is not None and goes_on(question, self._question):
            self._question = question
            self._say_reason(question, place, own=own)
            self.fit()
            return
        self._question, self._folder, self._lit = question, folder, 0
        self._is_elsewhere = is_elsewhere
        self.gate.begin()
        self.remove_class("-filling")
        self.line.close()
        self.display = question is not None
        if question is None:
            return
        self.request.show(question)
        self.query_one("#request", Flowing).flow(self.request.body)
        self.query_one("#tail", Flowing).flow(self.request.tail)
        self._remarks = "\n".join(odd_in(question))
        odd = self.query_one("#odd", Static)
        odd.display = bool(self._remarks)
        odd.update(self._remarks)
        self.query_one("#tail").display = False
        self.run_worker(self._colour(question), group="colour")  # if exclusive, one could end before it began
        self._say_reason(question, place, own=own)
        self._offer(question, guarded=True)
        self.set_timer(GRACE, partial(self._offer, question, guarded=False))
        self.query_one("#asked", VerticalScroll).scroll_home(animate=False)
        self.fit()
        self.call_after_refresh(self._show_change, question)

    def _say_reason(self, question: Question, place: str, *, own: bool) -> None:
        """Show the question with what the mode says of it, and any other reason below the request."""
        sign = Content.styled(f"{ASKING.mark(self._plain)} ", ASKING.tone.value)
        what = Content.assemble(what_text(question, own=own), (f"  {place}" if place else "", Tone.QUIET.value))
        self.query_one("#asker", Flowing).flow(partial(heading_rows, sign, what, mode_note(question)))
        where = self.query_one("#where", Static)
        where.update(Content(self._where))
        where.display = bool(self._where) and not bool(question.request.questions and not question.left_open)

    @property
    def _where(self) -> str:
        if self._question is None:
            return ""
        return where_text(self._question, self._folder, is_elsewhere=self._is_elsewhere)

    async def _colour(self, question: Question) -> None:
        """Put the colours of its code into a change; its rows stay where they are."""
        preview = question.request.preview
        if not isinstance(preview, DiffDisplay):
            return
        # After the first frame, with the first question about a change.
        from phoenix_tui.widgets.question_text import (  # noqa: PLC0415 - as said
            code_styles,
            colour_change,
            find_changed_words,
            in_colours,
            with_words,
        )

        changed = list(diff_rows(preview.diff))
        lines = await asyncio.to_thread(colour_change, changed, preview.path)
        words = await asyncio.to_thread(find_changed_words, changed)
        if question is not self._question:
            return

        def colours() -> tuple[Hashable, Paint]:
            styles = code_styles(self.app.theme_variables)

            def paint(place: int, text: Content) -> Content:
                coloured = in_colours(text, lines[place], styles) if lines else text
                return with_words(coloured, changed[place], words[place])

            return tuple(styles.items()), paint

        self.request.colour(colours)
        self.query_one("#request", Flowing).flow(self.request.body)

    def _offer(self, question: Question, *, guarded: bool) -> None:
        """The answers; without their letters while none is taken."""
        if question is self._question:
            self._guarded = guarded
            self._draw_answers()

    def _draw_answers(self) -> None:
        if self._question is not None:
            rows = partial(
                answer_rows,
                self._question,
                guarded=self._guarded,
                lit=self._lit if self.lights else NONE,
                chosen=self.has_focus_within,
            )
            self.query_one("#answers", Flowing).flow(rows)

    @property
    def question(self) -> Question | None:
        """The question that is shown."""
        return self._question

    @property
    def is_asking(self) -> bool:
        return self._question is not None

    def enter(self, *, from_below: bool) -> None:
        """Light the last answer, or the one after the first, which is lit before the question has the focus."""
        self._lit = len(list_answers(self._question)) - 1 if from_below and self._question is not None else 1
        self._draw_answers()

    def on_blur(self) -> None:
        self.clear_choice()

    def on_focus(self) -> None:
        self._draw_answers()

    def clear_choice(self) -> None:
        self._lit = 0
        self._draw_answers()

    def on_mount(self) -> None:
        for changing in ("scroll_y", "virtual_size"):
            self.watch(self.query_one("#asked"), changing, self.say_more, init=False)

    def on_resize(self) -> None:
        self.fit()
        self.call_after_refresh(self.say_more)

    def say_more(self) -> None:
        """Show what is not visible: rows of the request, and the questions of other conversations."""
        if self._question is None or not self.is_mounted:
            return
        more = self.query_one("#more", Static)
        parts = [self.gate.refusal] if self.gate.refusal else []
        if words := self._look():
            way_on = self.way_on or f"Up then {hint(('page_down', 'scrolls'))}"
            parts.append(f"{words}, {way_on}")
        if titles := self.others:
            waiting = f"{len(titles)} more {'wait' if len(titles) > 1 else 'waits'}: {', '.join(titles)}"
            parts.append(hint(one_line(waiting, MOST_TITLES), key("approvals")))
        more.display = bool(parts)
        more.set_class(bool(self.gate.refusal), "-refused")
        more.update(Content(" · ".join(parts)))

    def fit(self) -> None:
        room = self.room or self.screen.size.height
        self.set_class(not self.room and room >= ROOMY, "-roomy")
        rows = max(room - ROWS_BESIDE - self._rows_over(), LEAST_ROWS)
        width, was = self.content_size.width - BORDER - SCROLLBAR, self.request.pinned
        if self._question is not None and width > 0:
            rows = self.request.pin(width, rows)
        self.query_one("#asked").styles.max_height = rows
        if self.request.pinned is not was:
            self.query_one("#tail").display = self.request.pinned
            self.query_one("#request", Flowing).flow(self.request.body)
            self.query_one("#tail", Flowing).flow(self.request.tail)
            self.call_after_refresh(self.say_more)

    def _rows_over(self) -> int:
        """Rows that reason, odd letters and answers take beyond theirs, at the width there is."""
        width = self.content_size.width - BORDER
        if self._question is None or width <= 0:
            return 0
        odd = len(Content(self._remarks).wrap(width)) if self._remarks else 0
        where = len(Content(self._where).wrap(width)) if self._where else 0
        answers = 1 if self._question.request.questions else len(answer_rows(self._question, width))
        return odd + where + answers - ANSWER_ROWS

    def _show_change(self, question: Question) -> None:
        asked, request = self.query_one("#asked", VerticalScroll), self.query_one("#request", Flowing)
        if self._question is question and asked.max_scroll_y > 0 and not asked.scroll_y:
            asked.scroll_to(y=self.request.first_change(request.size.width), animate=False)
        self.say_more()

    def press(self, key: str) -> bool:
        """Give the answer of a letter or number, or open its line; False where it has none, or a yes counts not yet."""
        question = self._question
        answer = find_answer(question, key) if question is not None else None
        if question is None or answer is None or (answer.approves and self.refuses()):
            return False
        match answer.line:
            case LineFor.RULE:
                self._fill()
                self.line.open_rule(question, self._folder)
            case LineFor.REASON if question.request.plan:
                self.ask_reason("What should be different …", REMARKS)
            case LineFor.REASON:
                self.ask_reason("No, because …")
            case LineFor.PLAN:
                self.call_later(self.run_action, "screen.command('plan edit')")
            case LineFor.NOTHING:
                self._answer(replace(answer.effect, plan=self.request.edited if answer.approves else ""))
        return True

    def take_lit(self) -> bool:
        """Enter on an empty composer: give the lit answer; False where no question takes one."""
        question = self._question
        if question is None or self.line.is_open or not self.gate.is_open:
            return False
        return self.press(list_answers(question)[self._lit].letter)

    def light(self, letter: str) -> None:
        """Make the answer of a letter or number the one that Enter gives."""
        answer = find_answer(self._question, letter) if self._question is not None else None
        if self._question is not None and answer is not None:
            self._lit = list_answers(self._question).index(answer)
            self._draw_answers()

    def answer_words(self, letter: str) -> str:
        """The words of an answer, as its row has them."""
        answer = find_answer(self._question, letter) if self._question is not None else None
        return answer.words if answer is not None else ""

    def change_plan(self, call_id: str, plan: str) -> None:
        """Show the plan of this call as the user changed it; its answer carries it."""
        if self._question is None or self._question.call.id != call_id:
            return
        self.request.change(self._question, plan)
        self.query_one("#request", Flowing).flow(self.request.body)
        self.fit()

    def ask_reason(self, placeholder: str, effect: str = REASON) -> None:
        self._fill()
        self.line.open_reason(placeholder, effect)

    def _fill(self) -> None:
        self.add_class("-filling")
        self.post_message(Opened(BACK))

    def close_line(self) -> bool:
        """Close the line for a rule or a reason; False when none was open."""
        self.remove_class("-filling")
        if not self.line.close():
            return False
        self.post_message(Opened(""))
        self.post_message(self.Left())
        return True

    def action_answer(self, key: str) -> None:
        """A letter while the question has the focus, but not one that was typed as it appeared."""
        if self.gate.is_open:
            self.press(key)

    def action_choose(self, by: int) -> None:
        """Light another answer; beyond the last go back to the composer, beyond the first to the widget above."""
        place = self._lit + by
        if self._question is not None and 0 <= place < len(list_answers(self._question)):
            self._lit = place
            self._draw_answers()
        else:
            self.post_message(self.Left(upwards=by < 0))

    def action_take(self) -> None:
        self.take_lit()

    def refuse(self, reason: str) -> bool:
        if self._question is None or self.line.is_open:
            return False
        self._answer(ApprovalAnswer(ApprovalChoice.DENY, reason=reason))
        return True

    def action_scroll_asked(self, by: int) -> None:
        """Move through a request that is taller than its room."""
        self.gate.forget()
        self._look()
        asked = self.query_one("#asked", VerticalScroll)
        page = max(asked.size.height - 1, 1)  # a page skips no unread row
        asked.scroll_relative(y=max(-page, min(by, page)), animate=False)

    def on_answer_line_written(self, event: AnswerLine.Written) -> None:
        event.stop()
        self.take_line(event.answer)

    def take_line(self, answer: ApprovalAnswer) -> None:
        self._answer(answer)

    def _answer(self, answer: ApprovalAnswer) -> None:
        if self._question is not None:
            self.post_message(self.Answered(self._question.call.id, answer))
            self.close_line()
