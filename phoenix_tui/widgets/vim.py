"""Vim's keys as a pure function: from a draft and a key to an edit, a place and the next state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from phoenix_tui.widgets import vim_motions as motions

MOST: Final = 9999
"""The highest count: a longer one is a slip, and would hold the keys up."""


class Mode(StrEnum):
    """Modes of the keys; the value is the word that is shown."""

    INSERT = "INSERT"
    NORMAL = "NORMAL"
    VISUAL = "VISUAL"
    LINES = "VISUAL LINE"


class Register(Struct, frozen=True):
    """Last deleted or yanked text."""

    text: str = ""
    lines: bool = False
    """True for whole lines."""


class VimState(Struct, frozen=True):
    """State between two keys."""

    mode: Mode = Mode.INSERT
    count: int = 0
    """Digits typed so far; 0 for none."""
    operator: str = ""
    """One of d c y that waits for a motion."""
    times: int = 0
    """The count before the operator."""
    prefix: str = ""
    """One of g r f F t T i a that waits for a sign."""
    keys: str = ""
    """Keys of an incomplete command."""
    change: str = ""
    """The keys of the last command that changed the text, or began to."""
    anchor: int = 0
    """Start of the selection."""
    found: motions.CharSearch | None = None
    register: Register = Register()

    @property
    def is_waiting(self) -> bool:
        """True while Esc can cancel an unfinished command."""
        return bool(self.count or self.operator or self.prefix)

    @property
    def number(self) -> int:
        """The count before an operator times the one behind it; 0 where there is none."""
        return min((self.times or 1) * (self.count or 1), MOST) if self.times or self.count else 0

    def rest(self, mode: Mode = Mode.NORMAL) -> VimState:
        """State without a pending command, in this mode."""
        return replace(self, mode=mode, count=0, operator="", times=0, prefix="", keys="")


class Draft(Struct, frozen=True):
    """The text, the offset of the cursor in it, and the places of its units (folded pastes)."""

    text: str
    at: int
    marks: Sequence[tuple[int, int]] = ()

    def whole(self, start: int, end: int) -> tuple[int, int]:
        cut = [mark for mark in self.marks if mark[0] < end and start < mark[1]]
        return min([start, *(left for left, _ in cut)]), max([end, *(right for _, right in cut)])


class VimEdit(Struct, frozen=True):
    """A range and its replacement."""

    start: int
    end: int
    text: str = ""

    def apply(self, text: str) -> str:
        return text[: self.start] + self.text + text[self.end :]


VimRequest: TypeAlias = Literal["", "undo", "repeat", "older", "newer"]


class VimStep(Struct, frozen=True):
    """Effect of a key: an edit first, then the cursor; `request` is a request to the owner of the text."""

    state: VimState
    at: int
    edit: VimEdit | None = None
    request: VimRequest = ""


BEGINNINGS: Final = frozenset("/!@")
"""Signs that begin something on an empty line: they type themselves."""
MOST_PUT: Final = 1_000_000
"""Signs that one key puts at most: a count with many digits is a slip."""


def operate(state: VimState, draft: Draft, start: int, end: int, *, lines: bool = False) -> VimStep:
    """Delete, change or yank the range, or its whole lines."""
    text = draft.text
    if lines:
        start, end = motions.line_start(text, start), motions.line_end(text, end)
    start, end = draft.whole(start, end)
    if start == end and not lines:
        return VimStep(state.rest(Mode.INSERT if state.operator == "c" else Mode.NORMAL), draft.at)
    state = replace(state, register=Register(text[start:end], lines))
    match state.operator:
        case "y":
            return VimStep(state.rest(), draft.at if lines and motions.line_start(text, draft.at) == start else start)
        case "c":
            return VimStep(state.rest(Mode.INSERT), start, VimEdit(start, end))
        case _:
            return _delete(state.rest(), draft, start, end, lines=lines)


def _delete(state: VimState, draft: Draft, start: int, end: int, *, lines: bool) -> VimStep:
    """Whole lines go with a line break: their own, else the one before."""
    if lines and end < len(draft.text):
        end += 1
    elif lines and start:
        start -= 1
    edit = VimEdit(start, end)
    after = edit.apply(draft.text)
    return VimStep(state, motions.on_a_sign(after, motions.first_sign(after, start) if lines else start), edit)


def overwritten(state: VimState, draft: Draft, change: Callable[[str], str], *, goes_on: bool = False) -> VimStep:
    """Change `state.number` signs of the line in place; refused for a folded paste."""
    count, line = state.number or 1, motions.line_end(draft.text, draft.at)
    end = min(draft.at + count, line) if goes_on else draft.at + count
    if end > line or end == draft.at or any(left < end and draft.at < right for left, right in draft.marks):
        return VimStep(state.rest(), draft.at)
    edit = VimEdit(draft.at, end, change(draft.text[draft.at : end]))
    return VimStep(state.rest(), motions.on_a_sign(edit.apply(draft.text), end if goes_on else end - 1), edit)


def command(state: VimState, key: str, draft: Draft) -> VimStep:
    """One of the single keys of NORMAL; another drops an unfinished command."""
    match key:
        case "p" | "P":
            return _put(state, draft, behind=key == "p")
        case "J":
            return _join(state, draft)
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
    start, end = motions.line_start(text, at), motions.line_end(text, at)
    match key:
        case "i":
            return VimStep(typing, at)
        case "a":
            return VimStep(typing, min(at + 1, end))
        case "I":
            return VimStep(typing, motions.first_sign(text, at))
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
        place = min(at + behind, motions.line_end(text, at))
        edit = VimEdit(place, place, register.text * count)
        return VimStep(state.rest(), motions.on_a_sign(edit.apply(text), place + len(edit.text) - 1), edit)
    lines = "\n".join([register.text] * count)
    place = motions.line_end(text, at) if behind else motions.line_start(text, at)
    edit = VimEdit(place, place, f"\n{lines}" if behind else f"{lines}\n")
    after = edit.apply(text)
    return VimStep(state.rest(), motions.on_a_sign(after, motions.first_sign(after, place + behind)), edit)


def _join(state: VimState, draft: Draft) -> VimStep:
    """Join this line and the next ones, a blank between."""
    text, end = draft.text, motions.line_end(draft.text, draft.at)
    joined, place = text[motions.line_start(text, end) : end], end
    start = end - len(joined)
    for _ in range(max((state.number or 2) - 1, 1)):
        if end == len(text):
            break
        behind = motions.line_end(text, end + 1)
        line, end = text[end + 1 : behind].lstrip(), behind
        blank = " " if line and joined and not joined[-1].isspace() and line[0] != ")" else ""
        place = start + len(joined)
        joined += blank + line
    if end == motions.line_end(text, draft.at):
        return VimStep(state.rest(), draft.at)
    edit = VimEdit(start, end, joined)
    return VimStep(state.rest(), motions.on_a_sign(edit.apply(text), place), edit)


OPERATORS: Final = "dcy"
SHORT: Final = {"x": ("d", "l"), "X": ("d", "h"), "D": ("d", "$"), "C": ("c", "$")} | {
    "Y": ("y", "y"),
    "s": ("c", "l"),
    "S": ("c", "c"),
}
"""Keys that are an operator with its motion."""
SELECTING: Final = {"v": Mode.VISUAL, "V": Mode.LINES}
"""Keys that begin to select; in their own mode they end it."""
VISUAL: Final = {"x": "d", "s": "c"}
"""Keys that are an operator on the selection."""


def press(state: VimState, key: str, draft: Draft) -> VimStep:
    """One key in NORMAL or VISUAL; a key without meaning drops an unfinished command."""
    keys = state.keys + key
    step = _press(state, key, replace(draft, at=motions.on_a_sign(draft.text, draft.at)))
    if step.state.is_waiting:
        return replace(step, state=replace(step.state, keys=keys))
    is_change = state.mode is Mode.NORMAL and (step.edit is not None or step.state.mode is Mode.INSERT)
    return replace(step, state=replace(step.state, keys="", change=keys if is_change else state.change))


def _press(state: VimState, key: str, draft: Draft) -> VimStep:
    if state.prefix:
        return _after_prefix(state, key, draft)
    if key in "123456789" or (key == "0" and state.count):
        return VimStep(replace(state, count=min(state.count * 10 + int(key), MOST)), draft.at)
    takes_objects = state.operator or state.mode is not Mode.NORMAL
    if key in "fFtTg" or key in ("ia" if takes_objects else "r"):
        return VimStep(replace(state, prefix=key), draft.at)
    if key in ";,":
        # The sign that was looked for last, once more or the other way.
        if state.found is None:
            return VimStep(state.rest(state.mode), draft.at)
        found = state.found if key == ";" else state.found.other_way
        target = motions.find(draft.text, draft.at, found, state.number or 1, again=True)
        return _go(state, draft, target, _kind_of(found))
    if state.mode is not Mode.NORMAL and VISUAL.get(key, key) in OPERATORS:
        start, end = sorted((state.anchor, draft.at))
        lines = state.mode is Mode.LINES
        state = replace(state, operator=VISUAL.get(key, key))
        return operate(state, draft, start, min(end + 1, len(draft.text)), lines=lines)
    if key in OPERATORS:
        return _operator(state, key, draft)
    if key in motions.MOTIONS:
        return _motion(state, key, draft)
    return VimStep(state.rest(state.mode), draft.at) if state.operator else _other(state, key, draft)


def _other(state: VimState, key: str, draft: Draft) -> VimStep:
    if state.mode is not Mode.NORMAL:
        wanted = SELECTING.get(key, state.mode)
        return VimStep(state.rest(Mode.NORMAL if key in SELECTING and wanted is state.mode else wanted), draft.at)
    if key in SHORT:
        operator, motion = SHORT[key]
        return press(press(state, operator, draft).state, motion, draft)
    return command(state, key, draft)


def _after_prefix(state: VimState, key: str, draft: Draft) -> VimStep:
    prefix, state = state.prefix, replace(state, prefix="")
    if prefix == "g":
        return _motion(state, "gg", draft) if key == "g" else VimStep(state.rest(state.mode), draft.at)
    if prefix == "r":
        return overwritten(state, draft, lambda old: key * len(old))
    if prefix in "ia":
        return _object(state, key, draft, whole=prefix == "a")
    found = motions.CharSearch(prefix, key)
    target = motions.find(draft.text, draft.at, found, state.number or 1)
    return _go(replace(state, found=found), draft, target, _kind_of(found))


def _object(state: VimState, key: str, draft: Draft, *, whole: bool) -> VimStep:
    """Taken by the operator that waits, else selected."""
    place = draft.at if state.operator else max(draft.at, state.anchor)
    span = motions.around(draft.text, place, key, state.number or 1, whole=whole)
    if span is None:
        return VimStep(state.rest(state.mode), draft.at)
    if state.operator:
        return operate(state, draft, *span, lines=key == "p")
    return VimStep(replace(state.rest(state.mode), anchor=span[0]), max(span[1] - 1, span[0]))


def _kind_of(found: motions.CharSearch) -> motions.MotionKind:
    return motions.MotionKind.WITH if found.how in "ft" else motions.MotionKind.BEFORE


def _operator(state: VimState, key: str, draft: Draft) -> VimStep:
    """The first time it waits; twice it takes whole lines."""
    if not state.operator:
        return VimStep(replace(state, operator=key, times=state.count, count=0), draft.at)
    if state.operator != key:
        return VimStep(state.rest(), draft.at)
    last = motions.row(draft.text, draft.at, state.number - 1) if state.number > 1 else None
    return operate(state, draft, draft.at, draft.at if last is None else last, lines=True)


def _motion(state: VimState, key: str, draft: Draft) -> VimStep:
    motion, kind = motions.MOTIONS[key]
    count = state.number
    if state.operator and key in "wW":
        is_word = draft.text[draft.at : draft.at + 1].strip() != ""
        pattern = motions.WORD if key == "w" else motions.BIG_WORD
        if state.operator == "c" and is_word:  # as vim: the blanks behind the word stay
            last = motions.word_last(draft.text, draft.at - 1, count or 1, pattern)
            return _go(state, draft, last, motions.MotionKind.WITH)
        return _go(state, draft, motions.take_word(draft.text, draft.at, count or 1, pattern), kind)
    target = motion(draft.text, draft.at, count)
    if target is None and key in "jk" and not state.operator and state.mode is Mode.NORMAL:
        return VimStep(state.rest(), draft.at, request="newer" if key == "j" else "older")
    return _go(state, draft, target, kind)


def _go(state: VimState, draft: Draft, target: int | None, kind: motions.MotionKind) -> VimStep:
    """Move, or apply the waiting operator to the range between."""
    if target is None:
        return VimStep(state.rest(state.mode), draft.at)
    if not state.operator:
        return VimStep(state.rest(state.mode), motions.on_a_sign(draft.text, target))
    start, end = sorted((draft.at, target))
    return operate(state, draft, start, end + (kind is motions.MotionKind.WITH), lines=kind is motions.MotionKind.LINES)
