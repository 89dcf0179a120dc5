"""Vim's keys: a pure function from a draft and a key to an edit, and their use in a text area; loaded on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace
from textual import events
from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from phoenix_tui.widgets import vim_motions as motions
from phoenix_tui.widgets.pasting import PasteStore
from phoenix_tui.widgets.readline import DraftText
from phoenix_tui.widgets.vim_motions import line_end, line_start

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


class VimChanges:
    """Groups the edits of a text area, which keeps them in smaller pieces."""

    def __init__(self, area: TextArea) -> None:
        self._area = area
        self._depths: list[int] = []
        """Number of pieces that could be undone when each change began."""
        self._undone: list[int] = []
        """Number of pieces that each undo took back."""

    def begin(self) -> None:
        self._area.history.checkpoint()
        self._depths.append(self._depth())

    def forget(self) -> None:
        """Forget the changes of another text: earlier ones are undone piece by piece."""
        self._depths.clear()

    def undo(self) -> None:
        depth = self._depth()
        while self._depths and self._depths[-1] >= depth:
            self._depths.pop()  # it changed nothing, or was undone in another way
        wanted = self._depths.pop() if self._depths else max(depth - 1, 0)
        if not self._area.history.redo_stack:
            self._undone.clear()
        self._undone.append(depth - wanted)
        for _ in range(depth - wanted):
            self._area.action_undo()

    def redo(self) -> None:
        if not self._area.history.redo_stack:
            return
        self._depths.append(self._depth())
        for _ in range(self._undone.pop() if self._undone else 1):
            self._area.action_redo()

    def _depth(self) -> int:
        return len(self._area.history.undo_stack)


def find_written(before: Draft, text: str) -> str | None:
    """Text inserted at one place of a draft; None when more has changed than that."""
    head, tail = before.text[: before.at], before.text[before.at :]
    longer = len(text) >= len(before.text)
    inside = longer and text.startswith(head) and text.endswith(tail)
    return text[before.at : len(text) - len(tail)] if inside else None


TO_NORMAL: Final = "to normal"
DROPS: Final = "cancels the command"
NAMED: Final = {"left": "h", "right": "l", "backspace": "h", "delete": "x"}
"""Keys without a letter and the letter that does the same."""


class VimKeys:
    """Keeps the mode. In INSERT every key is the text area's."""

    def __init__(self, area: TextArea, bulk: PasteStore, draft: DraftText, show_mode: Callable[[], object]) -> None:
        self._area = area
        self._show_mode = show_mode
        self._bulk = bulk
        self._whole = draft
        self.state = VimState()
        self._before: Draft | None = None
        """The text and the place where INSERT was begun by a command; None where it was not."""
        self._written = ""
        """Text written there last."""
        self._changes = VimChanges(area)

    @property
    def mode(self) -> Mode:
        return self.state.mode

    @property
    def takes_escape(self) -> bool:
        """True when Esc leaves a mode or an unfinished command."""
        return self.mode is not Mode.NORMAL or self.state.is_waiting

    @property
    def esc_hint(self) -> str:
        """Action of Esc here before any other; empty for none."""
        if self.mode is not Mode.NORMAL:
            return TO_NORMAL
        return DROPS if self.state.is_waiting else ""

    @property
    def words(self) -> str:
        return f"{self.mode.value} {self.state.keys}" if self.state.is_waiting else self.mode.value

    def take(self, event: events.Key) -> bool:
        key = NAMED.get(event.key) or (event.character if event.is_printable else None)
        if self.mode is Mode.INSERT or key is None:
            return False
        self._do(press(self.state, key, self._draft()))
        return True

    def escape(self) -> bool:
        """Esc: from INSERT and VISUAL to NORMAL, and out of an unfinished command; False where there is none."""
        if not self.takes_escape:
            return False
        mode = self.mode
        row, column = self._area.cursor_location
        self._enter(self.state.rest())
        if self._before is not None:
            # A change in which the cursor moved elsewhere is not repeated.
            text, self._before = find_written(self._before, self._draft().text), None
            if text is None:
                self.state = replace(self.state, change="")
            else:
                self._written = text
        self._area.move_cursor((row, max(column - (mode is Mode.INSERT), 0)))
        return True

    def redo(self) -> bool:
        if self.mode is Mode.INSERT:
            return False
        self._changes.redo()
        self._enter(self.state.rest())
        self._onto_sign()
        return True

    def begin(self) -> None:
        self._changes.forget()
        self._before = None
        self._enter(self.state.rest(Mode.INSERT))

    def _do(self, step: VimStep) -> None:
        begins = step.state.mode is Mode.INSERT and self.mode is not Mode.INSERT
        if step.edit is not None or begins:
            self._changes.begin()
        if step.edit is not None:
            self._area.replace(step.edit.text, self._place(step.edit.start), self._place(step.edit.end))
        self._enter(step.state)
        if step.state.mode in {Mode.VISUAL, Mode.LINES}:
            # Show the range of an operator; the cursor is on the last sign.
            anchor = step.state.anchor
            at = step.at
            text = self._draft().text
            if step.state.mode is Mode.LINES:
                first, last = sorted((anchor, at))
                ends = line_start(text, first), max(line_end(text, last) - 1, 0)
                anchor, at = ends if anchor <= at else ends[::-1]
            self._area.selection = Selection(self._place(anchor + (anchor > at)), self._place(at))
        else:
            self._area.move_cursor(self._place(step.at))
        if begins:
            self._before = self._draft()
        self._carry_out(step.request)

    def _carry_out(self, request: VimRequest) -> None:
        match request:
            case "undo":
                self._changes.undo()
            case "repeat":
                again = self._written
                for key in self.state.change:
                    self._do(press(self.state, key, self._draft()))
                if self.mode is Mode.INSERT:
                    self._area.insert(again)
                    self.escape()
            case "older":
                self._whole.walk(-1)
            case "newer":
                self._whole.walk(1)
            case "":
                return
        self._onto_sign()

    def _onto_sign(self) -> None:
        """Move the cursor of NORMAL from the end of a line onto its last sign."""
        row, column = self._area.cursor_location
        last = len(self._area.document.get_line(row)) - 1
        if column > last >= 0:
            self._area.move_cursor((row, last))

    def _enter(self, state: VimState) -> None:
        before, self.state = self.state, state
        if (before.mode, before.is_waiting, before.keys) != (state.mode, state.is_waiting, state.keys):
            self._show_mode()

    def _draft(self) -> Draft:
        document = self._area.document
        lines = [document.get_line(each) for each in range(document.line_count)]
        marks = [
            (self._offset((row, left)), self._offset((row, right)))
            for row, line in enumerate(lines)
            for left, right in self._bulk.marks(line)
        ]
        return Draft("\n".join(lines), self._offset(self._area.cursor_location), marks)

    def _offset(self, place: tuple[int, int]) -> int:
        row, column = place
        return sum(len(self._area.document.get_line(each)) + 1 for each in range(row)) + column

    def _place(self, offset: int) -> tuple[int, int]:
        row = 0
        while row + 1 < self._area.document.line_count and offset > len(self._area.document.get_line(row)):
            offset -= len(self._area.document.get_line(row)) + 1
            row += 1
        return row, min(offset, len(self._area.document.get_line(row)))
