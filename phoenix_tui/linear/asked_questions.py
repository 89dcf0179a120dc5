"""Questions of the model as lines: numbered options, and one line of the user for each question."""

from __future__ import annotations

from typing import Final, Protocol

from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.updates import Question
from phoenix_tui.text.request_text import LEFT_OPEN, NO_APPROVAL, AskForm, numbers_in
from tools.asked_questions import AskedQuestion
from tools.clean import clean_line
from tools.wording import counted

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


def asked_lines(question: Question, who: str = "") -> list[str]:
    """The first question and its options; the others are read out in their turn."""
    asked = question.request.questions
    count = f", {counted(len(asked), 'question')}" if len(asked) > 1 else ""
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
