"""Tools without effects outside of the conversation: questions, the todo list, the plan, thoughts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.arguments import Arguments, object_schema
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
from tools.displays import (
    LEAST_OPTIONS,
    LONGEST_ACTIVE_FORM,
    LONGEST_CONTENT,
    MOST_ITEMS,
    MOST_OPTIONS,
    MOST_QUESTIONS,
    AskedOption,
    AskedQuestion,
    TodoItem,
    TodoList,
    TodoStatus,
    lines_of,
    one_item_line,
    question_lines,
)
from tools.wording import pluralize

ASK_USER: Final = "ask_user"
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
_ASK_USER_SPEC: Final = ToolSpec(
    ASK_USER,
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

    spec: ToolSpec = _ASK_USER_SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Carry the questions; the first one names the call."""
        asked = questions_of(args)
        names = [one.header if len(asked) > 1 else one.question for one in asked]
        return ToolRequest(
            summary=" · ".join(names), preview=PlainDisplay("\n".join(question_lines(asked))), questions=asked
        )

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
    size = sum(len(line) for line in question_lines(asked))
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
    line = clean_line(_check_length(read.text(name), name, where, most)).strip()
    if not line:
        raise ToolInputError(f"{where}{name} is empty: write it.")
    return line


def _text(read: Arguments, name: str, where: str, most: int) -> str:
    return _check_length(read.text(name), name, where, most) if read.has(name) else ""


def _check_length(text: str, name: str, where: str, most: int) -> str:
    if len(text) > most:
        raise ToolInputError(f"{where}{name} has {len(text):,} characters; at most {most:,} are shown: shorten it.")
    return text


TODO_WRITE: Final = "todo_write"
FIELDS: Final = ("content", "status", "activeForm")
CLEARED: Final = "The todo list is empty now."
_TODO_WRITE_SPEC: Final = ToolSpec(
    TODO_WRITE,
    "Keep a list of what is to be done, which the user sees and may change. Each call replaces the whole list. Use it "
    "for work of three or more steps: have one item in progress, and mark it completed as soon as it is.",
    object_schema(
        {
            "todos": {
                "type": "array",
                "maxItems": MOST_ITEMS,
                "items": object_schema(
                    {
                        "content": {"type": "string", "description": "What to do, on one line."},
                        "status": {"type": "string", "enum": list(TodoStatus)},
                        "activeForm": {"type": "string", "description": "The same while it is done: Running the tests"},
                    },
                    ["content", "status"],
                ),
            }
        },
        ["todos"],
    ),
    ToolClass.READ,
)


class TodoWrite(Struct, frozen=True):
    """The tool; the list is stored with its result."""

    spec: ToolSpec = _TODO_WRITE_SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Show how far the work is."""
        return ToolRequest(summary=TodoList(items_of(args)).summary)

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Hand the list over, to be stored in the move of this result."""
        items = items_of(args)
        return ToolOutput(result_text(items), display=PlainDisplay("\n".join(lines_of(items))), todos=items)


def items_of(args: JsonObject) -> tuple[TodoItem, ...]:
    """The items of a call.

    Raises:
        ToolInputError: one of them, or the list, is not as the schema says.
    """
    Arguments(args, ("todos",))
    given = args.get("todos")
    if not isinstance(given, list):
        raise ToolInputError("The argument todos is missing: give the whole list, or [] to clear it.")
    if len(given) > MOST_ITEMS:
        raise ToolInputError(f"todos has {len(given):,} items; at most {MOST_ITEMS} are kept: join some of them.")
    found = Arguments(args, ("todos",)).objects("todos") if given else []
    return tuple(_item(fields, f"todos[{place}].") for place, fields in enumerate(found))


def _item(fields: JsonObject, where: str) -> TodoItem:
    read = Arguments(fields, FIELDS, where)
    content = _count_line(read, "content", where, LONGEST_CONTENT)
    if not content:
        raise ToolInputError(f"{where}content is empty: say what is to be done.")
    word = read.text("status")
    if word not in set(TodoStatus):
        raise ToolInputError(f"{where}status must be one of {', '.join(TodoStatus)}.")
    active = _count_line(read, "activeForm", where, LONGEST_ACTIVE_FORM) if read.has("activeForm") else ""
    return TodoItem(content, TodoStatus(word), active)


def _count_line(read: Arguments, name: str, where: str, most: int) -> str:
    text = read.text(name)
    if len(text) > most:
        raise ToolInputError(f"{where}{name} has {len(text):,} characters; at most {most} are kept: shorten it.")
    return one_item_line(text)


def result_text(items: tuple[TodoItem, ...]) -> str:
    """The result as the model reads it."""
    if not items:
        return CLEARED
    numbers = Counter(item.status for item in items)
    parts = [f"{numbers[status]} {status.value.replace('_', ' ')}" for status in TodoStatus if numbers[status]]
    text = f"The todo list is kept: {pluralize(len(items), 'item')}, {', '.join(parts)}."
    running = numbers[TodoStatus.IN_PROGRESS]
    return f"{text} {running} items are in progress: have one in progress at a time." if running > 1 else text


EXIT_PLAN: Final = "exit_plan"
LONGEST_PLAN: Final = 32 * 1024
"""Bytes of a plan."""
NOT_PLANNING: Final = "Plan mode is off, so this plan needs no approval. Go on with the work."
EMPTY: Final = "The plan is empty: write what you will do, step by step."
_EXIT_PLAN_SPEC: Final = ToolSpec(
    EXIT_PLAN,
    "End plan mode's reading: hand your finished plan to the user, who approves it, changes it or asks for another "
    "one. Call it once you know enough, with the whole plan.",
    object_schema({"plan": {"type": "string", "description": "The plan as Markdown, at most 32 KB."}}, ["plan"]),
    ToolClass.READ,
)


class ExitPlan(Struct, frozen=True):
    """The tool; in plan mode the user's answer is its result, and it never runs."""

    spec: ToolSpec = _EXIT_PLAN_SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Show the plan; its first line names it."""
        plan = Arguments(args, ("plan",)).text("plan")
        if why := why_no_plan(plan):
            raise ToolInputError(why)
        return ToolRequest(summary=heading_of(plan), preview=PlainDisplay(plan), plan=plan)

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Acknowledge a plan that needs no approval."""
        return ToolOutput(NOT_PLANNING, display=PlainDisplay(Arguments(args, ("plan",)).text("plan")))


def why_no_plan(plan: str) -> str:
    """Reason why a text cannot be a plan; empty when it can."""
    if not plan.strip():
        return EMPTY
    size = len(plan.encode("utf-8", "replace"))
    if size > LONGEST_PLAN:
        return f"The plan has {size:,} bytes; at most {LONGEST_PLAN:,} are taken: leave out details."
    return ""


def heading_of(plan: str) -> str:
    """The first line with words, without the signs of a heading."""
    lines = (clean_line(line).strip().lstrip("#").strip() for line in plan.splitlines())
    return next((line for line in lines if line), "")


_THINK_SPEC = ToolSpec(
    "think",
    "Write down a thought: a plan, a doubt, what a result means. Nothing happens.",
    object_schema({"thoughts": {"type": "string"}}, ["thoughts"]),
    ToolClass.READ,
)


class Think(Struct, frozen=True):
    """The tool."""

    spec: ToolSpec = _THINK_SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Show how the thought begins."""
        return ToolRequest(summary=clean_line(_thoughts(args)).strip())

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Do nothing."""
        return ToolOutput("ok", display=PlainDisplay(_thoughts(args)))


def _thoughts(args: JsonObject) -> str:
    return Arguments(args, ("thoughts",)).text("thoughts")
