"""State of vim's keys, their input and their effects: values alone."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from phoenix_tui.widgets.vim_motions import CharSearch

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
    found: CharSearch | None = None
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
        """The range with every mark that it cuts through in it."""
        cut = [mark for mark in self.marks if mark[0] < end and start < mark[1]]
        return min([start, *(left for left, _ in cut)]), max([end, *(right for _, right in cut)])


class VimEdit(Struct, frozen=True):
    """A range and its replacement."""

    start: int
    end: int
    text: str = ""

    def applied(self, text: str) -> str:
        """The text behind it."""
        return text[: self.start] + self.text + text[self.end :]


VimRequest: TypeAlias = Literal["", "undo", "repeat", "older", "newer"]


class VimStep(Struct, frozen=True):
    """Effect of a key: an edit first, then the cursor; `request` is a request to the owner of the text."""

    state: VimState
    at: int
    edit: VimEdit | None = None
    request: VimRequest = ""
