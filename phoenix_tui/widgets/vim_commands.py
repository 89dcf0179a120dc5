"""Effects of vim's operators and single keys on a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from phoenix_tui.widgets.vim_motions import first_sign, line_end, line_start, on_a_sign
from phoenix_tui.widgets.vim_state import Draft, Mode, Register, VimEdit, VimState, VimStep

BEGINNINGS: Final = frozenset("/!@")
"""Signs that begin something on an empty line: they type themselves."""
MOST_PUT: Final = 1_000_000
"""Signs that one key puts at most: a count with many digits is a slip."""


def operate(state: VimState, draft: Draft, start: int, end: int, *, lines: bool = False) -> VimStep:
    """Delete, change or yank the range, or its whole lines."""
    text = draft.text
    if lines:
        start, end = line_start(text, start), line_end(text, end)
    start, end = draft.whole(start, end)
    if start == end and not lines:
        return VimStep(state.rest(Mode.INSERT if state.operator == "c" else Mode.NORMAL), draft.at)
    state = replace(state, register=Register(text[start:end], lines))
    match state.operator:
        case "y":
            return VimStep(state.rest(), draft.at if lines and line_start(text, draft.at) == start else start)
        case "c":
            return VimStep(state.rest(Mode.INSERT), start, VimEdit(start, end))
        case _:
            return _deleted(state.rest(), draft, start, end, lines=lines)


def _deleted(state: VimState, draft: Draft, start: int, end: int, *, lines: bool) -> VimStep:
    """Whole lines go with a line break: their own, else the one before."""
    if lines and end < len(draft.text):
        end += 1
    elif lines and start:
        start -= 1
    edit = VimEdit(start, end)
    after = edit.applied(draft.text)
    return VimStep(state, on_a_sign(after, first_sign(after, start) if lines else start), edit)


def overwritten(state: VimState, draft: Draft, change: Callable[[str], str], *, goes_on: bool = False) -> VimStep:
    """Change `state.number` signs of the line in place; refused for a folded paste."""
    count, line = state.number or 1, line_end(draft.text, draft.at)
    end = min(draft.at + count, line) if goes_on else draft.at + count
    if end > line or end == draft.at or _in_mark(draft, end):
        return VimStep(state.rest(), draft.at)
    edit = VimEdit(draft.at, end, change(draft.text[draft.at : end]))
    return VimStep(state.rest(), on_a_sign(edit.applied(draft.text), end if goes_on else end - 1), edit)


def _in_mark(draft: Draft, end: int) -> bool:
    return any(left < end and draft.at < right for left, right in draft.marks)


def command(state: VimState, key: str, draft: Draft) -> VimStep:
    """One of the single keys of NORMAL; another drops an unfinished command."""
    match key:
        case "p" | "P":
            return _put(state, draft, behind=key == "p")
        case "J":
            return _joined(state, draft)
        case "~":
            return overwritten(state, draft, str.swapcase, goes_on=True)
        case "u":
            return VimStep(state.rest(), draft.at, request="undo")
        case ".":
            return VimStep(state.rest(), draft.at, request="repeat")
        case "v" | "V":
            mode = Mode.VISUAL if key == "v" else Mode.LINES
            return VimStep(replace(state.rest(mode), anchor=draft.at), draft.at)
        case _ if key in BEGINNINGS and not draft.text:
            return VimStep(state.rest(Mode.INSERT), 1, VimEdit(0, 0, key))
        case _:
            return _insert(state, key, draft)


def _insert(state: VimState, key: str, draft: Draft) -> VimStep:
    """The keys that begin to write, each at its place."""
    text, at = draft.text, draft.at
    typing = state.rest(Mode.INSERT)
    start, end = line_start(text, at), line_end(text, at)
    match key:
        case "i":
            return VimStep(typing, at)
        case "a":
            return VimStep(typing, min(at + 1, end))
        case "I":
            return VimStep(typing, first_sign(text, at))
        case "A":
            return VimStep(typing, end)
        case "o":
            return VimStep(typing, end + 1, VimEdit(end, end, "\n"))
        case "O":
            return VimStep(typing, start, VimEdit(start, start, "\n"))
        case _:
            return VimStep(state.rest(), at)


def _put(state: VimState, draft: Draft, *, behind: bool) -> VimStep:
    """Put the register: lines as lines, else beside the cursor."""
    text, at, register = draft.text, draft.at, state.register
    count = min(state.number or 1, MOST_PUT // max(len(register.text), 1) or 1)
    if not (register.text or register.lines):
        return VimStep(state.rest(), at)
    if not register.lines:
        place = min(at + behind, line_end(text, at))
        edit = VimEdit(place, place, register.text * count)
        return VimStep(state.rest(), on_a_sign(edit.applied(text), place + len(edit.text) - 1), edit)
    lines = "\n".join([register.text] * count)
    place = line_end(text, at) if behind else line_start(text, at)
    edit = VimEdit(place, place, f"\n{lines}" if behind else f"{lines}\n")
    after = edit.applied(text)
    return VimStep(state.rest(), on_a_sign(after, first_sign(after, place + behind)), edit)


def _joined(state: VimState, draft: Draft) -> VimStep:
    """Join this line and the next ones, a blank between."""
    text, end = draft.text, line_end(draft.text, draft.at)
    joined, place = text[line_start(text, end) : end], end
    start = end - len(joined)
    for _ in range(max((state.number or 2) - 1, 1)):
        if end == len(text):
            break
        behind = line_end(text, end + 1)
        line, end = text[end + 1 : behind].lstrip(), behind
        blank = " " if line and joined and not joined[-1].isspace() and line[0] != ")" else ""
        place = start + len(joined)
        joined += blank + line
    if end == line_end(text, draft.at):
        return VimStep(state.rest(), draft.at)
    edit = VimEdit(start, end, joined)
    return VimStep(state.rest(), on_a_sign(edit.applied(text), place), edit)
