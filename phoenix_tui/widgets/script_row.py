"""The row of the user's own status line: the first line of a program's output, with no sequences but colours."""

from __future__ import annotations

import re
from typing import Final

from rich.text import Text
from textual.content import Content
from textual.widget import Widget

from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import Still
from tools.clean import clean_line

LONGEST: Final = 4096
"""Characters of a line that are looked at."""
_COLOURING: Final = re.compile(r"\x1b\[([0-9;]{0,64})m")
_PLAIN: Final = frozenset({0, 1, 2, 22, 39, 49, *range(30, 38), *range(40, 48), *range(90, 98), *range(100, 108)})
"""Reset, bold, dim and colours; no blinking, reversed or hidden text."""
_EXTENDED: Final = frozenset({38, 48})
_ARGUMENTS: Final = {5: 1, 2: 3}
"""Numbers behind 38 or 48: an index of the palette, or red, green and blue."""
_MOST: Final = 255


def first_line(output: bytes) -> Content:
    """The first line; empty where there is none."""
    line = output[: LONGEST * 4].decode("utf-8", "replace").lstrip("\r\n").partition("\n")[0][:LONGEST]
    pieces = _COLOURING.split(line)
    kept = [clean_line(piece) if place % 2 == 0 else _colours(piece) for place, piece in enumerate(pieces)]
    return Content.from_rich_text(Text.from_ansi("".join(kept), end=""))


def _colours(numbers: str) -> str:
    """The part of a sequence that sets colours; empty where there is none."""
    values = [min(int(one or 0), 9999) for one in numbers.split(";")]
    kept: list[int] = []
    while values:
        value = values.pop(0)
        if value in _EXTENDED:
            count = _ARGUMENTS.get(values[0], 0) if values else 0
            behind, values = values[: count + 1], values[count + 1 :]
            if count and len(behind) == count + 1 and max(behind) <= _MOST:
                kept += [value, *behind]
        elif value in _PLAIN:
            kept.append(value)
    return f"\x1b[{';'.join(map(str, kept))}m" if kept else ""


FAILING = "! "


class ScriptRow(Still, Widget):
    """One row: the last good text, cut to the width, with a mark while the program fails."""

    DEFAULT_CSS = """
    ScriptRow { height: 1; width: 1fr; background: $background; color: $foreground; padding: 0 1; }
    """

    def __init__(self, padding: int) -> None:
        super().__init__()
        self._padding = padding
        self._shown: tuple[Content, bool] = Content(""), False

    def show(self, text: Content | None, *, failing: bool) -> None:
        shown = (self._shown[0] if text is None else text), failing
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render(self) -> Content:
        text, failing = self._shown
        mark = (FAILING if failing else "", Tone.BAD.value)
        return Content.assemble(" " * self._padding, mark, text).truncate(max(self.size.width, 1), ellipsis=True)
