"""A plan that waits for an answer as lines, and its answers."""

from __future__ import annotations

from typing import Final, Protocol

from engine.executor.requests import ApprovalAnswer
from engine.updates import Question
from phoenix_tui.linear.message_lines import AnswerLines
from phoenix_tui.text.plan_text import PLAN_LETTERS, PLAN_WORDS, plan_answer
from phoenix_tui.text.request_summary import odd_in
from tools.clean import clean_line

REMARKS: Final = "What should be different"


class LineQuestions(Protocol):
    """Front end that can ask for one line."""

    async def ask_line(self, heading: str, text: str = "") -> str:
        """Ask for one line, with `text` to be changed."""
        ...


def plan_lines(question: Question, who: str = "") -> list[str]:
    """The whole plan and its answers; `who` is the asker, where it is not the conversation itself."""
    plan = AnswerLines(begun=True)
    lines = [f"A plan waits for your answer{f', from {clean_line(who)}' if who else ''}."]
    lines += [*plan.add(question.request.plan), *plan.end(), "End of the plan."]
    lines += [f"Note: it {words}." for words in odd_in(question)]
    answers = (f"{place} or {letter} {PLAN_WORDS[letter]}" for place, letter in enumerate(PLAN_LETTERS, 1))
    return [*lines, f"{'; '.join(answers)}."]


async def plan_answer_of(ask: LineQuestions, text: str) -> ApprovalAnswer | None:
    """The answer of a number or letter; None for any other line, and for a wish without words."""
    letter = text.strip().lower()
    if letter.isdecimal() and len(letter) == 1 and 1 <= int(letter) <= len(PLAN_LETTERS):
        letter = PLAN_LETTERS[int(letter) - 1]
    return plan_answer(letter, remarks=await ask.ask_line(REMARKS) if letter == "r" else "")
