"""ask_user: asks the user up to four questions with options; the answers are its result."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.arguments import Arguments, object_schema
from tools.asked_questions import (
    LEAST_OPTIONS,
    MOST_OPTIONS,
    MOST_QUESTIONS,
    AskedOption,
    AskedQuestion,
    lines_of,
)
from tools.clean import clean, clean_line
from tools.contract import (
    JsonObject,
    PlainDisplay,
    ToolClass,
    ToolContext,
    ToolInputError,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)

NAME: Final = "ask_user"
LONGEST_QUESTION: Final = 1_000
LONGEST_HEADER: Final = 20
LONGEST_LABEL: Final = 120
LONGEST_DESCRIPTION: Final = 600
LONGEST_PREVIEW: Final = 4_000
LONGEST_CALL: Final = 32 * 1024
"""Characters of each text, and of all of them together: what a person can read while a run waits."""
NOBODY: Final = "There is no user to ask: decide by yourself and say what you assumed."
_OPTION: Final = object_schema(
    {
        "label": {"type": "string", "description": "The answer in one to five words."},
        "description": {"type": "string", "description": "What it means or leads to, in a sentence."},
        "preview": {"type": "string", "description": "A short sketch or code to compare, shown with the option."},
    },
    ["label", "description"],
)
_QUESTION: Final = object_schema(
    {
        "question": {"type": "string", "description": "The whole question, ending with a question mark."},
        "header": {"type": "string", "maxLength": LONGEST_HEADER, "description": "Its subject in one or two words."},
        "options": {"type": "array", "minItems": LEAST_OPTIONS, "maxItems": MOST_OPTIONS, "items": _OPTION},
        "multiSelect": {"type": "boolean", "description": "True where several options may be chosen."},
    },
    ["question", "header", "options"],
)
_SPEC: Final = ToolSpec(
    NAME,
    "Ask the user one to four questions, each with two to four options, when the work depends on what only the user "
    "can know or decide. The user may also answer in own words, so offer no option for that. Do not ask for what you "
    "can find out, nor for permission to use a tool.",
    object_schema(
        {
            "questions": {
                "type": "array",
                "minItems": 1,
                "maxItems": MOST_QUESTIONS,
                "items": _QUESTION,
            }
        },
        ["questions"],
    ),
    ToolClass.READ,
)


class AskUser(Struct, frozen=True):
    """The tool; the user's answer is its result, and it never runs."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema and class."""
        return _SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Carry the questions; the first one names the call."""
        asked = questions_of(args)
        names = [one.header if len(asked) > 1 else one.question for one in asked]
        return ToolRequest(summary=" · ".join(names), preview=PlainDisplay("\n".join(lines_of(asked))), questions=asked)

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Say that there is no user: a call that could ask never comes here."""
        return ToolOutput(NOBODY, is_error=True)


def questions_of(args: JsonObject) -> tuple[AskedQuestion, ...]:
    """The questions of a call, cleaned.

    Raises:
        ToolInputError: one of them is not as the schema says, or a text is too long.
    """
    given = Arguments(args, ("questions",)).objects("questions")
    if len(given) > MOST_QUESTIONS:
        raise ToolInputError(f"questions has {len(given):,} items; at most {MOST_QUESTIONS} are asked at once.")
    asked = tuple(_question(fields, f"questions[{place}].") for place, fields in enumerate(given))
    if len({one.question for one in asked}) < len(asked):
        raise ToolInputError("Two of the questions are the same: ask each one once.")
    size = sum(len(line) for line in lines_of(asked))
    size += sum(len(option.preview) for one in asked for option in one.options)
    if size > LONGEST_CALL:
        raise ToolInputError(
            f"The questions have {size:,} characters; at most {LONGEST_CALL:,} are shown: shorten them."
        )
    return asked


def _question(fields: JsonObject, where: str) -> AskedQuestion:
    read = Arguments(fields, ("question", "header", "options", "multiSelect"), where)
    question = _line(read, "question", where, LONGEST_QUESTION)
    header = _line(read, "header", where, LONGEST_HEADER)
    given = read.objects("options")
    if not LEAST_OPTIONS <= len(given) <= MOST_OPTIONS:
        raise ToolInputError(
            f"{where}options has {len(given):,} items; give {LEAST_OPTIONS} to {MOST_OPTIONS} different ones."
        )
    options = tuple(_option(one, f"{where}options[{place}].") for place, one in enumerate(given))
    if len({one.label for one in options}) < len(options):
        raise ToolInputError(f"{where}options has the same label twice: make each label different.")
    return AskedQuestion(question, header, options, read.flag("multiSelect"))


def _option(fields: JsonObject, where: str) -> AskedOption:
    read = Arguments(fields, ("label", "description", "preview"), where)
    label = _line(read, "label", where, LONGEST_LABEL)
    described = _text(read, "description", where, LONGEST_DESCRIPTION)
    return AskedOption(label, clean_line(described).strip(), clean(_text(read, "preview", where, LONGEST_PREVIEW)))


def _line(read: Arguments, name: str, where: str, most: int) -> str:
    """A text of one line that is not empty."""
    line = clean_line(_bounded(read.text(name), name, where, most)).strip()
    if not line:
        raise ToolInputError(f"{where}{name} is empty: write it.")
    return line


def _text(read: Arguments, name: str, where: str, most: int) -> str:
    return _bounded(read.text(name), name, where, most) if read.has(name) else ""


def _bounded(text: str, name: str, where: str, most: int) -> str:
    if len(text) > most:
        raise ToolInputError(f"{where}{name} has {len(text):,} characters; at most {most:,} are shown: shorten it.")
    return text
