"""Questions that a model asks the user: their structure, and the text of the answers for the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from tools.clean import clean
from tools.wording import counted

MOST_QUESTIONS: Final = 4
LEAST_OPTIONS: Final = 2
MOST_OPTIONS: Final = 4
"""Options of one question; "Other" comes with each of them (SPEC REQ-ASK)."""
LONGEST_ANSWER: Final = 4_000
"""Characters of an answer in the user's own words."""
NOT_ANSWERED: Final = "not answered"

Answers: TypeAlias = tuple[tuple[str, ...], ...]
"""Labels or own words for each question, in order; nothing for a question that was skipped."""


class AskedOption(Struct, frozen=True):
    """One option; label and description are cleaned lines, the preview is cleaned text."""

    label: str
    description: str = ""
    preview: str = ""


class AskedQuestion(Struct, frozen=True):
    """One question with its options."""

    question: str
    header: str
    options: tuple[AskedOption, ...]
    multi: bool = False
    """True where several options may be chosen."""
    only_options: bool = False
    """True where own words are no answer."""
    details: str = ""
    """Cleaned text that the question is about, shown below the options."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in order."""
        return tuple(option.label for option in self.options)


def answered_text(questions: Sequence[AskedQuestion], answers: Answers) -> str:
    """The answers as the model reads them, a line each (SPEC REQ-ASK)."""
    pairs = zip(questions, answers, strict=True)
    return "\n".join(f'"{one.question}"="{", ".join(chosen) or NOT_ANSWERED}"' for one, chosen in pairs)


def cleaned_answers(answers: Answers) -> Answers:
    """The answers without control characters, empty ones left out."""
    return tuple(tuple(text for one in chosen if (text := clean(one).strip())) for chosen in answers)


def why_no_answers(questions: Sequence[AskedQuestion], answers: Answers) -> str:
    """Reason why these cannot be the answers; empty when they can."""
    if len(answers) != len(questions):
        return f"There are {counted(len(questions), 'question')} and {counted(len(answers), 'answer')}."
    for asked, chosen in zip(questions, answers, strict=True):
        if len(chosen) > (len(asked.options) + 1 if asked.multi else 1):
            return f"“{asked.header}” takes fewer answers: choose again."
        if any(len(one) > LONGEST_ANSWER for one in chosen):
            return f"The answer to “{asked.header}” is longer than {LONGEST_ANSWER:,} characters: shorten it."
    return ""


def lines_of(questions: Sequence[AskedQuestion]) -> list[str]:
    """The questions and their numbered options as plain lines."""
    lines: list[str] = []
    for asked in questions:
        lines.append(f"{asked.header}: {asked.question}")
        for number, option in enumerate(asked.options, 1):
            lines.append(f"  {number} {option.label}{f' - {option.description}' if option.description else ''}")
        lines += asked.details.splitlines()
    return lines
