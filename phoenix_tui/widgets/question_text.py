"""Text of a question: the whole request with nothing hidden, place, reason, answers (docs/decisions/looks.md)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from textual.content import Content

from engine.machine.texts import OUTSIDE
from engine.updates import Question
from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.text.ask_form import LEFT_OPEN, NO_APPROVAL
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.plan_text import EDITS_PLAN, PLAN_LETTERS, PLAN_WORDS, PROPOSES
from phoenix_tui.text.rule_text import one_line, rule_grant
from phoenix_tui.text.shown_paths import short_path
from tools.call_titles import tool_label
from tools.clean import clean_line
from tools.contract import DiffDisplay

GAPS: Final = (4, 2)
"""Cells between two answers: as many as fit all of them on one row, else the fewer."""
GUARDED: Final = "·"
"""Replacement of a letter that is not taken yet."""
TOOL_WORDS: Final = {
    "bash": "run a command",
    "read_file": "read a file",
    "read_image": "read an image",
    "list_files": "list files",
    "search": "search files",
    "web_fetch": "read a web page",
    "web_search": "search the web",
    "spawn_agents": "start sub-agents",
    "spawn_task": "start a sub-agent",
}
"""Description of a call by the name of its tool; any other tool is named."""


def what_text(question: Question) -> Content:
    """The tool that would run; of a change also the file and how much of it."""
    if question.request.plan:
        return Content(PROPOSES)
    if asked := question.request.questions:
        asks = f" asks you {len(asked)} questions" if len(asked) > 1 else " asks you"
        return Content(asks if question.server else f"{asks} · {NO_APPROVAL}")
    name = clean_line(tool_label(question.call.name))
    change = question.request.preview
    if not isinstance(change, DiffDisplay):
        return Content(f" wants to {TOOL_WORDS.get(question.call.name, f'use {name}')}")
    return Content.assemble(
        f" wants to {'create' if change.created else 'edit'} ",
        (one_line(change.path), "bold"),
        (f"  +{change.added}", Tone.GOOD.value),
        (f" -{change.removed}", Tone.BAD.value),
    )


def where_text(question: Question, folder: Path) -> str:
    """The folder, the paths outside it, and why it asks."""
    if question.left_open:
        return LEFT_OPEN
    outside = [path for path in question.request.paths if not path.is_relative_to(folder)]
    parts = [f"in {one_line(short_path(folder))}"]
    if outside:
        parts.append("outside it: " + ", ".join(one_line(str(path)) for path in outside))
    if question.reason and not (outside and question.reason.startswith(OUTSIDE)):
        parts.append(one_line(question.reason))
    return " · ".join(parts)


def letters_of(question: Question) -> str:
    """The letters of the answers there are, in the order of their numbers."""
    if question.request.plan:
        return PLAN_LETTERS
    return "ysanr" if question.rule else "ynr"


def answer_rows(question: Question, width: int, *, guarded: bool = False, chosen: int = -1) -> list[Content]:
    """Numbers and letters and their actions; those that keep a rule say what it allows. No answer is torn off.

    Without the keys, `guarded`, they keep their places. `chosen` is the index of the one that Enter gives.
    """
    grant = rule_grant(question)
    words = {
        "y": ("answer_once", "once"),
        "s": ("answer_conversation", f"this conversation: {grant}"),
        "a": ("answer_always", f"always in this project: {grant} …"),
        "n": ("answer_no", "no"),
        "r": ("answer_reason", "no, because…"),
    }
    if question.request.plan:
        words = {letter: (name, PLAN_WORDS[letter]) for letter, (name, _) in words.items()}
    answers: list[Content] = []
    for place, letter in enumerate(letters_of(question)):
        name, does = words[letter]
        keys = " ".join(one for one in (key(f"answer_{place + 1}"), key(name)) if one)
        answer = _answer(GUARDED * len(keys) if guarded else keys, does)
        answers.append(answer.stylize("reverse") if place == chosen else answer)
    if question.request.plan:
        edit = key("answer_edit")
        answers.append(_answer(GUARDED * len(edit) if guarded else edit, EDITS_PLAN))
    for gap in GAPS:
        rows = _laid_out(answers, gap, width)
        if len(rows) == 1:
            return rows
    return _laid_out(answers, GAPS[0], width)


def rule_effect(question: Question, rule: str, folder: Path) -> tuple[str, str]:
    """Reason why this rule cannot be kept for the call, else its effect and the keys that keep it."""
    from engine.permissions.rules import RuledCall, meaning, refusal  # noqa: PLC0415 - 1.5 ms of the first frame

    call = RuledCall(question.call.name, question.tool_class, question.request, folder)
    if why := refusal(rule, call):
        return why, ""
    keeps = hint("Enter allows in this project", ("rule_everywhere", "everywhere"), "Tab in this conversation")
    return "", f"{meaning(rule, call)}\n{keeps}"


def _answer(letter: str, words: str) -> Content:
    style = Tone.QUIET.value if letter.startswith(GUARDED) else f"bold {Tone.NEEDS_YOU.value}"
    return Content.assemble((letter, style), f"  {words}")


def _laid_out(answers: Sequence[Content], gap: int, width: int) -> list[Content]:
    rows: list[Content] = []
    for answer in answers:
        if rows and rows[-1].cell_length + gap + answer.cell_length <= width:
            rows[-1] = Content.assemble(rows[-1], " " * gap, answer)
        else:
            rows += answer.wrap(width)
    return rows
