"""A changed file as lines: one below or beside the other, coloured slice by slice, then what language servers found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, zip_longest
from operator import itemgetter
from pathlib import PurePath
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from phoenix_tui.markdown.code import colour_lines
from phoenix_tui.markdown.lines import (
    MARGIN,
    PLAIN,
    QUIET,
    TEXT_COLUMN,
    Span,
    StyledLine,
    Surface,
    TextStyle,
    TextTone,
    alter_look,
    cut_middle,
    spans_width,
    wrap,
)
from phoenix_tui.widgets.blocks.diff_rows import (
    GAP,
    LONGEST_COMPARED,
    MOST_ROWS,
    DiffPiece,
    DiffRow,
    MarkedRow,
    diff_rows,
    fold_rows,
    mark_runs,
)
from phoenix_tui.widgets.blocks.rows import bar_lines, bar_whole, column, draw_row
from tools.clean import clean, clean_line
from tools.contract import DiffDisplay
from tools.displays import EditCheck, check_row, problem_text
from tools.wording import pluralize

SPLIT_FROM: Final = 138
"""Columns from which before and after are side by side: a pane of 140 without its margin at the right."""
_LOOKS: Final = {"+": TextStyle(TextTone.GOOD, Surface.ADDED), "-": TextStyle(TextTone.BAD, Surface.REMOVED)}
_CHANGED: Final = {"+": Surface.ADDED_WORDS, "-": Surface.REMOVED_WORDS}
_BETWEEN: Final = Span(" │ ", QUIET)
Coloured: TypeAlias = Sequence[Span]
"""One source line in syntax colours; empty for a plain one."""


class DiffPair(NamedTuple):
    """Content of one place: one row of the diff, or side by side the old and the new row."""

    left: MarkedRow | None
    right: MarkedRow | None = None


class DiffLayout(Struct, frozen=True):
    """Layout of the rows of one diff."""

    digits: int
    """Cells of a line number."""
    room: int
    """Cells of a line's text."""
    is_open: bool
    """True to wrap long lines; else they are cut."""
    is_split: bool

    @classmethod
    def fitting(cls, rows: Sequence[DiffRow], width: int, *, is_open: bool) -> DiffLayout:
        """The layout of these rows on a screen of `width`; a file all new or all gone is never split."""
        digits = len(str(max((max(row.number, row.before) for row in rows), default=1)))
        if width >= SPLIT_FROM and len({row.sign for row in rows if row.sign != GAP}) > 1:
            half = min((width - MARGIN - spans_width((_BETWEEN,))) // 2, TEXT_COLUMN + digits)
            return cls(digits, half - digits - 3, is_open, True)
        return cls(digits, max(column(width) - MARGIN - digits - 3, 1), is_open, False)

    def pairs(self, rows: Sequence[DiffRow]) -> Iterator[DiffPair]:
        for old, new in mark_runs(rows):
            if not self.is_split or (old and old[0].row.sign == GAP):
                yield from (DiffPair(marked) for marked in chain(old, new))
                continue
            same = bool(old) and old[0].row.sign == " "
            yield from (DiffPair(left, right) for left, right in zip_longest(old, old if same else new))

    def lines(self, pair: DiffPair, left: Coloured = (), right: Coloured = ()) -> Iterator[StyledLine]:
        """The lines of one pair; whether in colours or plain, they are as many and say the same."""
        if pair.left is not None and pair.left.row.sign == GAP:
            yield StyledLine((_INDENT, Span(f"{' ' * self.digits} {GAP}", QUIET)))
        elif self.is_split:
            yield from self._beside(pair, left, right)
        elif pair.left is not None:
            margin = MARGIN + self.digits + 3
            for spans, joint in self._cells(pair.left, pair.left.row.number, left):
                yield StyledLine((_INDENT, *spans), joint, margin)

    def _beside(self, pair: DiffPair, left: Coloured, right: Coloured) -> Iterator[StyledLine]:
        """One line before and the one that took its place; either may be missing."""
        blank = ((Span(" " * (self.digits + 3 + self.room)),), None)
        before, after = pair
        befores = iter(()) if before is None else self._cells(before, before.row.before or before.row.number, left)
        afters = iter(()) if after is None else self._cells(after, after.row.number, right)
        for (old, joint), (new, other) in zip_longest(befores, afters, fillvalue=blank):
            first = len(_INDENT.text) + self.digits + 3
            middle = len(_INDENT.text) + sum(len(span.text) for span in old)
            second = middle + len(_BETWEEN.text) + self.digits + 3
            end = middle + len(_BETWEEN.text) + sum(len(span.text) for span in new)
            sides = ((first, middle), (second, end))
            yield StyledLine((_INDENT, *old, _BETWEEN, *new), joint if joint is not None else other, MARGIN, sides)

    def _cells(
        self, marked: MarkedRow, number: int, coloured: Coloured
    ) -> Iterator[tuple[tuple[Span, ...], str | None]]:
        """Number, sign and text of one line, filled to its width; more rows where it is open and longer."""
        sign, digits = marked.row.sign, self.digits
        look = _LOOKS.get(sign, PLAIN)
        spans = _spans(marked, look._replace(tone=TextTone.TEXT), coloured)
        rows = wrap(spans, self.room, hard=True)
        if not self.is_open and len(rows) > 1:
            first, _ = wrap(spans, max(self.room - 1, 1), hard=True)[0]
            rows = [((*first, Span("…", QUIET._replace(surface=spans[0].look.surface))), None)]
        for place, (row, joint) in enumerate(rows):
            lead = f"{number:>{digits}} " if place == 0 else " " * (digits + 1)
            fill = Span(" " * max(self.room - spans_width(row), 0), look)
            mark = Span(f"{sign if place == 0 else ' '} ", look)
            yield (Span(lead, look._replace(tone=TextTone.QUIET)), mark, *row, fill), joint


def _spans(marked: MarkedRow, plain: TextStyle, coloured: Coloured) -> tuple[Span, ...]:
    """The text of a row: colours show its syntax, backgrounds its change."""
    strong = alter_look(plain, surface=_CHANGED.get(marked.row.sign, plain.surface), bold=True)
    if "".join(span.text for span in coloured) != "".join(piece.text for piece in marked.pieces):
        return tuple(Span(piece.text, strong if piece.changed else plain) for piece in marked.pieces)
    pieces = (
        (_on(span.look, strong if changed else plain, changed=changed), text)
        for text, span, changed in _both(marked.pieces, coloured)
    )
    return tuple(Span("".join(text for _, text in same), look) for look, same in groupby(pieces, itemgetter(0)))


def _both(pieces: Sequence[DiffPiece], coloured: Coloured) -> Iterator[tuple[str, Span, bool]]:
    spans = iter(coloured)
    span, at = Span(""), 0
    for piece in pieces:
        rest = piece.text
        while rest:
            if at == len(span.text):
                span, at = next(spans), 0
                continue
            taken = span.text[at : at + len(rest)]
            yield taken, span, piece.changed
            at, rest = at + len(taken), rest[len(taken) :]


def _on(code: TextStyle, look: TextStyle, *, changed: bool) -> TextStyle:
    """A colour of code on the background of the diff; a quiet one could not be read on a mark."""
    tone = TextTone.TEXT if changed and code.tone is TextTone.QUIET else code.tone
    return alter_look(look, tone=tone, bold=code.bold, italic=code.italic)


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
        self._old = colour_lines(old, self._language) if old else iter(())
        self._new = colour_lines(new, self._language) if new else iter(())


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
    for left, right in pairs:
        if left is not None:
            yield left.row
        if right is not None and right is not left:
            yield right.row


def is_worth(rows: Iterable[DiffRow]) -> bool:
    left = MOST_COLOURED
    for row in rows:
        left -= len(row.text)
        if left < 0 or len(row.text) > LONGEST_COMPARED:
            return False
    return True


def colour_rows(rows: Sequence[DiffRow], language: str) -> list[Sequence[Span]]:
    """All rows in colours, in the order of the diff; call it from a thread."""
    sides = Sides(rows, language)
    return [sides.colours(row) for row in rows]


def _hunks(rows: Iterable[DiffRow]) -> Iterator[tuple[str, str]]:
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


FOLDED: Final = 3
"""Problems that a closed diff shows."""
_BAD: Final = TextStyle(TextTone.BAD)
_FAILED: Final = Span("✗", _BAD)
_PASSED: Final = Span("✓", QUIET)
_NOTED: Final = Span("·", QUIET)


def check_rows(checks: Sequence[EditCheck], width: int, *, is_open: bool, action: str = "") -> Iterator[StyledLine]:
    """All checks of one edit; servers that found nothing new share a row."""
    for check in checks:
        if check.errors:
            yield draw_row(_FAILED, "", clean_line(check_row(check)), "", width, action=action, look=_BAD)
            shown = check.problems if is_open else check.problems[:FOLDED]
            for problem in shown:
                text = clean_line(problem_text(problem))
                yield from bar_whole(text, width) if is_open else bar_lines((text,), width, PLAIN)
            if (hidden := check.errors - len(shown)) > 0:
                yield StyledLine((Span(" " * MARGIN), Span(f"  … +{pluralize(hidden, 'error')}", QUIET)))
    passed = [check for check in checks if not check.errors and not check.note]
    if passed:
        yield draw_row(_PASSED, "", _together(passed), "", width, action=action, look=QUIET)
    for check in checks:
        if check.note and not check.errors:
            yield draw_row(_NOTED, "", clean_line(check_row(check)), "", width, action=action, look=QUIET)


def _together(checks: Sequence[EditCheck]) -> str:
    """`pyright, ruff: no new errors`, with the warnings of all."""
    if len(checks) == 1:
        return clean_line(check_row(checks[0]))
    names = ", ".join(dict.fromkeys(clean_line(check.server) for check in checks))
    warnings = sum(check.warnings for check in checks)
    return f"{names}: no new errors" + (f", {pluralize(warnings, 'new warning')}" if warnings else "")


OPEN_ROWS: Final = 12
"""Rows of a diff that stay open (docs/decisions/looks.md)."""
_INDENT: Final = Span(" " * MARGIN)


class DiffBlock(NamedTuple):
    """A changed file as lines, and their uncoloured rest."""

    lines: list[StyledLine]
    colours: DiffColours


def diff_block(display: DiffDisplay, width: int, *, is_open: bool, action: str = "", right: str = "") -> DiffBlock:
    """The block of one changed file; lines that are too long are cut while it is folded and wrapped once it is open."""
    rows = list(diff_rows(clean(display.diff)))
    shown = rows[: MOST_ROWS - 1] if is_open and len(rows) > MOST_ROWS else rows
    if not is_open and len(rows) > OPEN_ROWS:
        shown = fold_rows(rows, OPEN_ROWS - 1)
    layout = DiffLayout.fitting(shown, width, is_open=is_open)
    lines = [_draw_heading(display, width, action, right)]
    pairs = list(layout.pairs(shown))
    colours = DiffColours(lines, layout, pairs, clean_line(display.path))
    for pair in pairs:
        lines.extend(layout.lines(pair))
    if hidden := _lines_in(rows) - _lines_in(shown):
        text = f"{' ' * layout.digits} … +{pluralize(hidden, 'line')}"
        lines.append(StyledLine((_INDENT, Span(text, QUIET, "" if is_open else action))))
    lines.extend(check_rows(display.checks, width, is_open=is_open, action=action))
    return DiffBlock(lines, colours)


def _lines_in(rows: Sequence[DiffRow]) -> int:
    return sum(row.sign != GAP for row in rows)


def _draw_heading(display: DiffDisplay, width: int, action: str, right: str) -> StyledLine:
    counts = (
        Span(f"+{display.added}", TextStyle(TextTone.GOOD)),
        Span(" "),
        Span(f"-{display.removed}", TextStyle(TextTone.BAD)),
    )
    note = "  new" if display.created else ""
    taken = MARGIN + 4 + sum(len(span.text) for span in counts) + len(note) + (len(right) + 2 if right else 0)
    path = cut_middle(clean_line(display.path), max(column(width) - taken, 1))
    spans = [
        _INDENT,
        Span("± ", TextStyle(TextTone.GOOD)),
        Span(path, TextStyle(bold=True)),
        Span("  "),
        *counts,
        Span(note, QUIET),
    ]
    line = StyledLine(tuple(spans))
    gap = column(width) - spans_width(spans) - len(right)
    if right and gap >= 2:
        line = StyledLine((*spans, Span(" " * gap), Span(right, QUIET)))
    return line._replace(spans=tuple(span._replace(action=action) for span in line.spans))
