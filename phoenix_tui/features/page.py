"""A page: rows and what can be done with them, made by a use case and shown by each front end in its own way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

TAKE: Final = "sheet_take"
"""Name of the key that does the first action of a row."""


class Confirmation(NamedTuple):
    """Question before an action, and the words of both answers."""

    text: str
    yes: str
    no: str


class PageAction(Struct, frozen=True):
    """One action on a row, or on the whole page."""

    run: Callable[[], Awaitable[str]]
    """Does it and returns the outcome in words, or an empty text. Raises an error of `ENGINE_ERRORS`."""
    keys: str = ""
    """Names of its keys in the keymap, separated by blanks; empty: only lines have it."""
    words: str = ""
    """Words of its row in a menu of lines; empty: not in a menu."""
    argument: str = ""
    """Argument of the command that does it in lines, such as `undo`."""
    progress: str = ""
    """Words in place of the outcome while it runs."""
    question: Confirmation | None = None
    closes: bool = False
    """True to close the sheet first; the page is not made again."""
    repeats: bool = False
    """True to offer the menu again in lines."""


class PageRow(Struct, frozen=True):
    """One row: its words, their meaning, and a remark at the right; `section` heads its group."""

    section: str
    key: str
    words: str
    meaning: str
    remark: str = ""
    argument: str = ""
    """Argument in a separate column."""
    about: tuple[str, ...] = ()
    """Lines below the rows while it is the chosen one."""
    spoken: str = ""
    """The row in lines."""
    name: str = ""
    """Heading of its menu in lines; a single action is done without one."""
    is_bad: bool = False
    """True for a row in the colour of faults."""
    actions: tuple[PageAction, ...] = ()


class ListPage(Struct, frozen=True):
    """Rows with actions as they are now; each action makes the page again."""

    title: str
    rows: tuple[PageRow, ...]
    hints: tuple[tuple[str, str], ...]
    """Keys in the heading with a word each; the last ones go first where there is little room."""
    empty: str = ""
    """Text in place of rows."""
    notes: tuple[str, ...] = ()
    """Sentences about the whole page."""
    outcome: Literal["alone", "for notes", "last"] = "alone"
    """Place of an outcome on the screen: for all lines below the rows, for the notes, or after them. As the last line
    it stays until the next one.
    """
    actions: tuple[PageAction, ...] = ()
    """Actions that need no row."""
    current: str = ""
    """Key of the row that is chosen first, and when another one takes its place."""
    menu: str = ""
    """Heading of the actions without a row in lines, where there are no notes."""
    follows: bool = False
    """True to make the page again each second."""
    name_cells: int = 0
    """Cells of the column of words; 0: as wide as the longest."""
    cut: str = ""
    """Words about the key that shows the lines of `about` that do not fit; empty: all lines are shown."""


PageReader: TypeAlias = Callable[[], Awaitable[ListPage]]
"""Makes the page; called again after each action. Raises an error of `ENGINE_ERRORS`."""


class UndoSteps:
    """Inverses of the changes on a page, since it was opened on the screen, or of the session in lines."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], Awaitable[str]]] = []

    def add(self, inverse: Callable[[], Awaitable[str]]) -> None:
        """Keep the inverse of a change that was made."""
        self._steps.append(inverse)

    async def undo(self) -> str:
        """Undo the last change; the outcome in words. A step that fails is kept."""
        if not self._steps:
            return "There is nothing to undo."
        step = self._steps[-1]
        outcome = await step()
        self._steps.remove(step)
        return outcome
