"""Drawn messages: parts with their lines and, for those that were on screen, their strips."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from textual.strip import Strip

from phoenix_tui.markdown.lines import BLANK, StyledLine

if TYPE_CHECKING:
    from phoenix_tui.images.boxes import Box
    from phoenix_tui.markdown.code import CodeBlock
    from phoenix_tui.markdown.plain import LongText
    from phoenix_tui.markdown.stream import MarkdownStream
    from phoenix_tui.widgets.blocks.diff_colours import DiffColours


class PartKind(StrEnum):
    """Kind of a part; parts of kind `TOOL` follow each other without a blank row."""

    PROMPT = "prompt"
    ANSWER = "answer"
    THINKING = "thinking"
    TOOL = "tool"
    NOTE = "note"
    IMAGE = "image"


IN_RUNS: Final = frozenset({PartKind.TOOL, PartKind.NOTE})
"""Kinds whose rows belong together."""
ENDS: Final = frozenset({"stopped", "error"})
"""Keys of the parts about the end of a turn."""


class Part(Struct):
    """One block of a message, drawn for one width."""

    key: str
    """Names the part within the conversation: fold states and redrawing go by it."""
    kind: PartKind
    lines: list[StyledLine]
    foldable: bool = False
    dim: bool = False
    """Painted in quiet throughout: text that was not saved."""
    stream: MarkdownStream | LongText | None = None
    """Source of its lines, while code in it is still to be coloured or text to come."""
    colours: DiffColours | None = None
    """Uncoloured rest of a diff."""
    codes: Sequence[CodeBlock] = ()
    """The pieces of code in it, top down."""
    picture: Box | None = None
    """The stored image it shows, a row of cells for each of its lines."""
    gap: int = 0
    """Blank rows above it."""
    strips: list[Strip | None] = field(default_factory=list[Strip | None])

    @property
    def plain(self) -> MarkdownStream | LongText | DiffColours | None:
        """Owner of code in it that is still to be coloured."""
        painting = self.stream or self.colours
        return painting if painting is not None and painting.jobs else None

    def height(self) -> int:
        """Rows, the gap included."""
        return len(self.lines) + self.gap


class Drawn(Struct):
    """One message, drawn."""

    parts: list[Part]

    @property
    def height(self) -> int:
        """Rows of all parts."""
        return sum(part.height() for part in self.parts)

    def locate(self, row: int) -> tuple[Part, int] | None:
        """The part that holds a row and the line within it, -1 for its gap."""
        for part in self.parts:
            height = part.height()
            if row < height:
                return part, row - part.gap
            row -= height
        return None

    def line(self, row: int) -> StyledLine:
        """The line at a row."""
        found = self.locate(row)
        if found is None or found[1] < 0 or found[1] >= len(found[0].lines):
            return BLANK
        return found[0].lines[found[1]]

    def top_of(self, key: str) -> int | None:
        """The row at which a part begins, its gap left out."""
        row = 0
        for part in self.parts:
            if part.key == key:
                return row + part.gap
            row += part.height()
        return None


def located(rows: Iterable[tuple[int, int, Drawn | None]]) -> Iterator[tuple[Part, int] | None]:
    """`locate` for rows in their order, which passes over each part once."""
    before: Drawn | None = None
    number = top = 0
    for _, row, drawn in rows:
        if drawn is None:
            yield None
            continue
        if drawn is not before:
            before, number, top = drawn, 0, 0
        while number < len(drawn.parts) and row >= top + drawn.parts[number].height():
            top += drawn.parts[number].height()
            number += 1
        part = drawn.parts[number] if number < len(drawn.parts) else None
        yield None if part is None else (part, row - top - part.gap)


def with_gaps(parts: list[Part], before: PartKind | None) -> Drawn:
    """Parts with blank rows between them, none in a run of tool rows or of notes and above images.

    `before` is the kind above. The end of a turn is set apart.
    """
    for part in parts:
        goes_on = before is part.kind and part.kind in IN_RUNS and part.key not in ENDS
        part.gap = 0 if before is None or part.kind is PartKind.IMAGE or goes_on else 1
        before = part.kind
    return Drawn(parts)
