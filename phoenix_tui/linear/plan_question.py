"""A plan that waits for an answer as lines, and its answers."""

from __future__ import annotations

from typing import Final, Protocol

from msgspec.structs import replace

from engine.executor.requests import ApprovalAnswer
from engine.updates import Question
from phoenix_tui.linear.message_lines import AnswerLines
from phoenix_tui.text.labels import EDITS_PLAN, PLAN_LETTERS, PLAN_WORDS, plan_answer
from phoenix_tui.text.request_text import odd_in
from tools.clean import clean_line

REMARKS: Final = "What should be different"
EDIT: Final = "e"
EDIT_NUMBER: Final = str(len(PLAN_LETTERS) + 1)
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
    return bool(question.request.plan) and text.strip().lower() in {EDIT, EDIT_NUMBER}


def plan_lines(question: Question, who: str = "") -> list[str]:
    """The whole plan and its answers; `who` is the asker, where it is not the conversation itself."""
    plan = AnswerLines(begun=True)
    lines = [f"A plan waits for your answer{f', from {clean_line(who)}' if who else ''}."]
    lines += [*plan.add(question.request.plan), *plan.end(), "End of the plan."]
    lines += [f"Note: it {words}." for words in odd_in(question)]
    answers = (f"{place} or {letter} {PLAN_WORDS[letter]}" for place, letter in enumerate(PLAN_LETTERS, 1))
    return [*lines, f"{'; '.join(answers)}; {EDIT_NUMBER} or {EDIT} {EDITS_PLAN}."]


async def plan_answer_of(ask: LineQuestions, text: str, plan: str = "") -> ApprovalAnswer | None:
    """The answer of a number or letter; None for any other line, and for a wish without words.

    `plan` is the text as the user changed it, empty where it is the agent's own.
    """
    letter = text.strip().lower()
    if letter.isdecimal() and len(letter) == 1 and 1 <= int(letter) <= len(PLAN_LETTERS):
        letter = PLAN_LETTERS[int(letter) - 1]
    return plan_answer(letter, plan, remarks=await ask.ask_line(REMARKS) if letter == "r" else "")
