"""Questions to the user as lines: approvals, plans, and questions of the model."""

from __future__ import annotations

from typing import Final, Protocol

from msgspec.structs import replace

from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.updates import Question
from phoenix_tui.linear.transcript import AnswerLines
from phoenix_tui.text.request_text import (
    LEFT_OPEN,
    NO_APPROVAL,
    AskForm,
    LineFor,
    find_answer,
    fold_blanks,
    list_answers,
    numbers_in,
    odd_in,
    one_line,
    sentence_of,
)
from phoenix_tui.widgets.blocks.diff_rows import GAP, DiffRow, diff_rows
from tools.call_titles import SERVER_TOOL
from tools.clean import clean_line, reveal
from tools.contract import DiffDisplay, PlainDisplay, TerminalDisplay
from tools.displays import AskedQuestion
from tools.look_alikes import in_order
from tools.wording import pluralize

DECLINE: Final = "n"
HOW: Final = "Answer with a number or in your own words; n declines."
HOW_ONLY: Final = "Answer with a number; n declines."
SKIPS: Final = "Answer, or Enter to skip"
HOW_SEVERAL: Final = "Several numbers are possible, as in 1,3."


class LineForm(Protocol):
    """Front end that can say lines and ask for one."""

    def say(self, *lines: str) -> None:
        """Append lines."""
        ...

    async def ask_line(self, heading: str, text: str = "") -> str:
        """Ask for one line, with `text` to be changed."""
        ...


def takes_line(question: Question, text: str) -> bool:
    """True where a line is an answer: behind a question whose run has ended only its numbers are."""
    asked = question.request.questions
    return not question.left_open or text.lower() == DECLINE or bool(numbers_in(text, asked[0]))


def format_question(question: Question, who: str = "") -> list[str]:
    """The first question and its options; the others are read out in their turn."""
    asked = question.request.questions
    count = f", {pluralize(len(asked), 'question')}" if len(asked) > 1 else ""
    asker = clean_line(question.asker) if question.server else "The agent"
    lines = [f"{asker} asks you{f', for {clean_line(who)}' if who else ''}{count}."]
    lines += [] if question.server else [f"Note: {NO_APPROVAL}."]
    lines += [f"Note: {LEFT_OPEN}."] if question.left_open else []
    return [*lines, *(row for one in asked[:1] for row in _one(one, 1, len(asked)))]


async def form_answer(ask: LineForm, question: Question, text: str) -> ApprovalAnswer:
    """The answers, the first of which is `text`; the user is asked for each of the others."""
    asked = question.request.questions
    if text.strip().lower() == DECLINE:
        return ApprovalAnswer(ApprovalChoice.DENY)
    form = AskForm(asked)
    for at, one in enumerate(asked):
        form.at = at
        if at:
            ask.say(*_one(one, at + 1, len(asked)))
            text = await ask.ask_line(SKIPS)
        form.write(text)
    return form.answer


def _one(asked: AskedQuestion, number: int, count: int) -> list[str]:
    place_of = f"Question {number} of {count}, {asked.header}: " if count > 1 else ""
    lines = f"{place_of}{asked.question}".splitlines()
    lines += [f"   {row}" for row in asked.details.splitlines()]
    for place, option in enumerate(asked.options, 1):
        lines.append(f"{place}. {option.label}{f': {option.description}' if option.description else ''}")
        lines += [f"   {row}" for row in option.preview.splitlines()]
    how = HOW_ONLY if asked.only_options else HOW
    return [*lines, f"{how} {HOW_SEVERAL}" if asked.multi else how]


REMARKS: Final = "What should be different"
WHY: Final = "Reason"
MOST_CHANGED: Final = 8
"""Changed plans that are kept: the newest, each at most as long as a plan may be."""


class LineQuestions(Protocol):
    """Front end that can ask for one line."""

    async def ask_line(self, heading: str, text: str = "") -> str:
        """Ask for one line, with `text` to be changed."""
        ...


class ChangedPlans:
    """Plans that wait for an answer, as the user has changed them."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, float, str], str] = {}

    def of(self, question: Question) -> Question:
        """The question with its plan as it is now."""
        text = self._texts.get(_identity(question))
        return question if text is None else replace(question, request=replace(question.request, plan=text))

    def text_of(self, question: Question) -> str:
        """The changed plan; empty where it is as the agent wrote it."""
        return self._texts.get(_identity(question), "")

    def put(self, question: Question, text: str) -> None:
        """Keep a change."""
        self._texts[_identity(question)] = text
        if len(self._texts) > MOST_CHANGED:
            del self._texts[next(iter(self._texts))]


def _identity(question: Question) -> tuple[str, float, str]:
    """Tell a question from others: ids of calls alone are the model's, and come again in other conversations."""
    return question.call.id, question.asked, question.request.plan


def wants_edit(question: Question, text: str) -> bool:
    """True when a typed line asks to change the plan of the question."""
    answer = find_answer(question, text) if question.request.plan else None
    return answer is not None and answer.line is LineFor.PLAN


def plan_lines(question: Question, who: str = "") -> list[str]:
    """The whole plan and its answers; `who` is the asker, where it is not the conversation itself."""
    plan = AnswerLines(begun=True)
    lines = [f"A plan waits for your answer{f', from {clean_line(who)}' if who else ''}."]
    lines += [*plan.add(question.request.plan), *plan.end(), "End of the plan."]
    lines += [f"Note: it {words}." for words in odd_in(question)]
    return [*lines, sentence_of(question), *answer_lines(question)]


def answer_lines(question: Question) -> list[str]:
    """One answer a line: its number and letter, and its words."""
    return [f"{place} or {answer.letter}: {answer.words}" for place, answer in enumerate(list_answers(question), 1)]


async def answer_call(ask: LineQuestions, question: Question, text: str, plan: str = "") -> ApprovalAnswer | None:
    """The answer of a number or letter; None for any other line, and for a wish about a plan without words.

    `plan` is the text as the user changed it, empty where it is the agent's own. `e` keeps the rule everywhere.
    """
    if text.strip().lower() == "e" and question.rule:
        return ApprovalAnswer(ApprovalChoice.EVERYWHERE)
    answer = find_answer(question, text)
    if answer is None or answer.line is LineFor.PLAN:
        return None
    if answer.line is LineFor.REASON:
        is_plan = bool(question.request.plan)
        reason = await ask.ask_line(REMARKS if is_plan else WHY)
        return None if is_plan and not reason.strip() else replace(answer.effect, reason=reason)
    return replace(answer.effect, plan=plan if answer.approves else "")


RUNS: Final = "It would run"


def question_lines(question: Question, who: str = "") -> list[str]:
    """A question with nothing hidden, and its answers; `who` is the asker, where it is not the conversation itself."""
    if question.request.plan:
        return plan_lines(question, who)
    if question.request.questions:
        return format_question(question, who)
    preview = question.request.preview
    lines = [f"{clean_line(who)}: {sentence_of(question)}" if who else sentence_of(question)]
    match preview:
        case DiffDisplay(path=path, added=added, removed=removed, diff=diff):
            lines.append(f"It would change {one_line(path)}: {pluralize(added, 'line')} added, {removed} removed.")
            lines += [_format_row(row) for row in diff_rows(diff)] or [reveal(row) for row in diff.splitlines()]
        case PlainDisplay(text=text):
            lines += _command(text, "It would get" if question.call.name.startswith(SERVER_TOOL) else RUNS)
        case TerminalDisplay(output=text):
            lines += _command(text)
        case _:
            lines += _command(question.request.summary)  # revealed already, and revealing twice changes nothing
    lines += [f"Note: it {words}." for words in odd_in(question)]
    if question.reason:
        lines.append(f"Reason: {one_line(question.reason)}")
    if question.rule:
        lines.append(f"Rule for s and a: {one_line(question.rule)}; e keeps it everywhere.")
    return [*lines, *answer_lines(question)]


def _command(text: str, does: str = RUNS) -> list[str]:
    first, *rest = in_order(fold_blanks(reveal(text))).split("\n")
    return [f"{does}: {first}", *(f"  {row}" for row in rest)]


def _format_row(row: DiffRow) -> str:
    if row.sign == GAP:
        return "Unchanged lines are left out."
    words = {"+": "Added", "-": "Removed"}.get(row.sign, "Same")
    return f"{words}: {reveal(row.text)}"
