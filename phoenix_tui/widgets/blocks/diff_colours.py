"""Syntax colours of a diff, put slice by slice into existing lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Final

from phoenix_tui.markdown.code import coloured_lines
from phoenix_tui.markdown.lines import Span, StyledLine
from phoenix_tui.widgets.blocks.diff_layout import Coloured, DiffLayout, DiffPair
from phoenix_tui.widgets.blocks.diff_rows import GAP, LONGEST_COMPARED, DiffRow

MOST_COLOURED: Final = 200_000
"""Characters of a diff above which it stays plain, as does one with a line longer than `LONGEST_COMPARED`: lexers take
some milliseconds for each such line, and minified code is unreadable anyway.
"""
_NAMES: Final = {"dockerfile": "docker", "makefile": "make", "gnumakefile": "make", "cmakelists.txt": "cmake"}
_SUFFIXES: Final = {
    "h": "c",
    "cc": "cpp",
    "cxx": "cpp",
    "hh": "cpp",
    "hpp": "cpp",
    "hxx": "cpp",
    "cfg": "ini",
    "conf": "ini",
    "ini": "ini",
    "diff": "",
    "patch": "",
    "txt": "",
    "htm": "html",
    "cjs": "javascript",
    "jsx": "javascript",
    "mjs": "javascript",
    "tsx": "typescript",
    "cts": "typescript",
    "mts": "typescript",
    "jsonl": "json",
    "kt": "kotlin",
    "kts": "kotlin",
    "mk": "make",
    "ml": "ocaml",
    "py": "python",
    "pyi": "python",
    "pyw": "python",
    "sh": "bash",
    "svg": "xml",
    "tcss": "css",
    "yml": "yaml",
}
"""Ends of names that no lexer is called by, or that are loaded under another name; the others are looked up as they
are."""


def language_of(path: str) -> str:
    """The language of a file by its name, as a fence would call it; empty where there is none to guess by."""
    name = PurePath(path).name.lower()
    suffix = PurePath(name).suffix.removeprefix(".")
    return _NAMES.get(name) or _SUFFIXES.get(suffix, suffix)


class Sides:
    """The colours of a diff's rows in their order: before and after are two texts, each hunk restarts."""

    def __init__(self, rows: Iterable[DiffRow], language: str) -> None:
        self._hunks = _hunks(rows)
        self._language = language
        self._old: Iterator[Coloured] = iter(())
        self._new: Iterator[Coloured] = iter(())
        self._next_hunk()

    def colours(self, row: DiffRow | None) -> Coloured:
        """The next row of its side in colours; empty for an unknown language."""
        match row.sign if row is not None else "":
            case "-":
                return next(self._old, ())
            case "+":
                return next(self._new, ())
            case " ":
                next(self._old, ())
                return next(self._new, ())
            case sign:
                if sign == GAP:
                    self._next_hunk()
                return ()

    def _next_hunk(self) -> None:
        old, new = next(self._hunks, ("", ""))
        self._old = coloured_lines(old, self._language) if old else iter(())
        self._new = coloured_lines(new, self._language) if new else iter(())


class DiffJob:
    """A diff in plain lines that is still to be coloured."""

    def __init__(self, layout: DiffLayout, pairs: Sequence[DiffPair], language: str) -> None:
        self.language = language
        self.done = False
        self._layout = layout
        self._pairs = pairs
        self._place = 0
        self._line = 1
        """Line of the next pair: the first line is the heading."""
        self._colours: list[tuple[Coloured, Coloured]] | None = None
        """Colours of each pair."""

    @property
    def is_lexed(self) -> bool:
        """True when it can be coloured without waiting for the lexing process."""
        return self._colours is not None

    def lex(self) -> None:
        """Ask for its colours; blocks: call it from a thread."""
        sides = Sides(rows_of(self._pairs), self.language)
        colours: list[tuple[Coloured, Coloured]] = []
        for pair in self._pairs:
            left = sides.colours(pair.left.row if pair.left is not None else None)
            same = pair.right is pair.left
            colours.append((left, left if same else sides.colours(pair.right.row if pair.right is not None else None)))
        self._colours = colours

    def work(self, lines: list[StyledLine], limit: int) -> tuple[int, int]:
        """Colour up to `limit` more source lines in place; returns the first line changed and the one after the last.

        A pair is two of them, and laying it out again costs as much as lexing it.
        """
        limit = max(limit // 2, 1)
        if self._colours is None:
            self.lex()  # the caller has lexed it in a thread before
        colours = (self._colours or [])[self._place : self._place + limit]
        start = self._line
        for pair, (left, right) in zip(self._pairs[self._place : self._place + limit], colours, strict=True):
            made = list(self._layout.lines(pair, left, right))
            lines[self._line : self._line + len(made)] = made
            self._line += len(made)
        self._place += limit
        self.done = self._place >= len(self._pairs)
        return start, self._line


class DiffColours:
    """The lines of a diff, and the work that is left on them; `jobs` is empty when there is none."""

    def __init__(self, lines: list[StyledLine], layout: DiffLayout, pairs: Sequence[DiffPair], path: str) -> None:
        self._lines = lines
        language = language_of(path)
        self.jobs: list[DiffJob] = []
        if language and is_worth(rows_of(pairs)):
            self.jobs.append(DiffJob(layout, pairs, language))

    def colour(self, limit: int) -> tuple[int, int] | None:
        """Colour up to `limit` source lines; returns the range of lines changed, None when all is done."""
        if not self.jobs:
            return None
        changed = self.jobs[0].work(self._lines, limit)
        if self.jobs[0].done:
            self.jobs.clear()
        return changed


def rows_of(pairs: Iterable[DiffPair]) -> Iterator[DiffRow]:
    """Each row once, in the order of its side."""
    for left, right in pairs:
        if left is not None:
            yield left.row
        if right is not None and right is not left:
            yield right.row


def is_worth(rows: Iterable[DiffRow]) -> bool:
    """True when a diff is short enough to be coloured."""
    left = MOST_COLOURED
    for row in rows:
        left -= len(row.text)
        if left < 0 or len(row.text) > LONGEST_COMPARED:
            return False
    return True


def coloured_rows(rows: Sequence[DiffRow], language: str) -> list[Sequence[Span]]:
    """All rows in colours, in the order of the diff; call it from a thread."""
    sides = Sides(rows, language)
    return [sides.colours(row) for row in rows]


def _hunks(rows: Iterable[DiffRow]) -> Iterator[tuple[str, str]]:
    """The text of each hunk before and after."""
    old, new = list[str](), list[str]()
    for row in rows:
        if row.sign == GAP:
            yield "\n".join(old), "\n".join(new)
            old, new = [], []
        if row.sign in "- ":
            old.append(row.text)
        if row.sign in "+ ":
            new.append(row.text)
    yield "\n".join(old), "\n".join(new)
