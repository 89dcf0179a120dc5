"""The lines of the list of models: a heading that stays, rows in columns, and details of the chosen one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from textual.content import Content

from engine.ports import ModelInfo
from phoenix_tui.features.model_rows import ModelRow
from phoenix_tui.markdown.lines import cut_middle
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.model_text import ModelColumn, columns_within, price_text, width_of, window_text
from tools.clean import clean_line

SIGN: Final = 2
"""Cells before a name."""
IN_USE: Final = " · in use"
MARK: Final = " *"
NOT_LISTED: Final = "  not in a list"
HEADING: Final = f"bold {Tone.YOU.value}"


class ModelLines:
    """Draws rows for one width; a list of any length costs what is seen of it."""

    def __init__(self, cells: int, now: str, favourites: Sequence[str]) -> None:
        self._cells = cells
        self._now = now
        self._favourites = frozenset(favourites)
        self._columns = columns_within(cells - SIGN)
        self._name_cells = max(cells - SIGN - width_of(self._columns), 1)

    def window(self, rows: Sequence[ModelRow], chosen: int, room: int) -> Content:
        """At most `room` lines around the chosen row; the first one heads the rows below it and names the columns."""
        first = max(0, min(chosen - room // 2, len(rows) - room + 1))
        while True:
            lines, last = self._lines_from(rows, first, chosen, room)
            if chosen <= last or first >= chosen:
                return Content("\n").join(lines)
            first += 1

    def _lines_from(self, rows: Sequence[ModelRow], first: int, chosen: int, room: int) -> tuple[list[Content], int]:
        """Lines from a row on, and the place of the last row among them."""
        lines = [self._heading(rows[first].section, heads=rows[first].offer is None)]
        last = first - 1
        for place in range(first, len(rows)):
            begins = place > first and rows[place].section != rows[place - 1].section
            if len(lines) + 1 + begins > max(room, 2):
                break
            if begins:
                lines.append(self._heading(rows[place].section))
            lines.append(self._row(rows[place], chosen=place == chosen))
            last = place
        return lines, last

    def _heading(self, section: str, *, heads: bool = False) -> Content:
        words = clean_line(section)
        if not heads:
            return Content.styled(cut_middle(words, self._cells), HEADING)
        room = min(SIGN + self._name_cells, self._cells)
        named = Content.styled(cut_middle(words, room), HEADING)
        gap = " " * max(room - named.cell_length, 0)
        titles = "".join(" " * column.gap + column.head.center(column.cells) for column in self._columns)
        return Content.assemble(named, gap, (titles.rstrip(), Tone.QUIET.value))

    def _row(self, row: ModelRow, *, chosen: bool) -> Content:
        sign = "› " if chosen else "  "
        if row.offer is not None:
            line = Content.assemble(sign, (cut_end(clean_line(row.name), self._cells - SIGN), Tone.QUIET.value))
        else:
            name, facts = self._name(row), self._facts(row.info)
            gap = " " * max(self._name_cells - cell_len(name), 0)
            line = Content.assemble(
                sign, (name, "bold" if row.key == self._now else ""), gap, (facts, Tone.QUIET.value)
            )
        if not chosen:
            return line.truncate(self._cells)
        return Content(line.plain).truncate(self._cells, pad=True).stylize("reverse")

    def _name(self, row: ModelRow) -> str:
        name, mark = clean_line(row.name), MARK * (row.key in self._favourites)
        used = IN_USE * (row.key == self._now)
        if cell_len(f"{name}{mark}{used}") <= self._name_cells:
            return f"{name}{mark}{used}"
        return f"{cut_middle(name, max(self._name_cells - len(mark), 1))}{mark}"

    def _facts(self, info: ModelInfo | None) -> str:
        if info is None:
            return NOT_LISTED
        return "".join(" " * column.gap + _cell(column, info) for column in self._columns).rstrip()


def detail(row: ModelRow | None, now: str) -> str:
    """All that is known about a model, what the columns leave out first; the state of a provider without models."""
    if row is None:
        return ""
    if row.offer is not None:
        words = f": {row.offer.words}" if row.offer.words else ""
        return clean_line(f"{row.offer.name} · {row.offer.state.value}{words}")
    parts = [row.key] + ["in use"] * (row.key == now)
    if (info := row.info) is not None:
        price = price_text(info)
        parts += filter(None, (info.note, "on this machine" if info.local else ""))
        parts += [f"answers to {info.max_output:,}"] if info.max_output else []
        parts += [
            f"window {window_text(info)}",
            price if price == "free" else f"${price}" if price else "price unknown",
        ]
    return clean_line(" · ".join(parts))


def cut_end(text: str, cells: int) -> str:
    """The text within so many cells, its end cut off."""
    return Content(text).truncate(max(cells, 0), ellipsis=True).plain


def _cell(column: ModelColumn, info: ModelInfo) -> str:
    return column.text(info).center(column.cells)
