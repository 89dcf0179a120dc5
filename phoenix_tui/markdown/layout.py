"""Markdown tokens as lines, parsed with bounded work: paragraphs, headings, lists, quotes, code, tables, rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Final, cast
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from msgspec import Struct, field

from phoenix_tui.markdown.code import CodeBlock, CodeJob, code_rows, plain_code
from phoenix_tui.markdown.lines import (
    PLAIN,
    QUIET,
    Span,
    StyledLine,
    Surface,
    TextStyle,
    TextTone,
    alter_look,
    cells,
    spans_width,
    wrap,
)

SCHEMES: Final = frozenset({"http", "https", "mailto"})
"""Schemes of addresses that a click may open (FAULTS 58)."""
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"'`{}|\\^\[\]]*[^\s<>\"'`{}|\\^\[\].,;:!?)*_~]")
_NEVER: Final = re.compile(r"(?!)")


def link_action(target: str) -> str:
    """The click action that opens `target`, empty unless it is an address a person may open.

    Outside text enters an action string through `repr` alone.
    """
    try:
        scheme = urlsplit(target).scheme
    except ValueError:
        return ""
    return f"open_link({target!r})" if scheme in SCHEMES and target.isprintable() else ""


class Inline:
    """Collects the spans of one paragraph, a list per source line."""

    def __init__(self, look: TextStyle) -> None:
        self.lines: list[list[Span]] = [[]]
        self._looks = [look]
        self._targets: list[tuple[str, str, int, int]] = []

    def add(self, token: Token) -> None:
        look = self._looks[-1]
        match token.type:
            case "text":
                self._text(token.content, look)
            case "code_inline":
                self._put(token.content, alter_look(look, surface=Surface.CODE))
            case "softbreak" | "hardbreak":
                self.lines.append([])
            case "link_open":
                target = str(token.attrs.get("href", ""))
                action = link_action(target)
                self._targets.append((target, action, len(self.lines) - 1, len(self.lines[-1])))
                self._looks.append(alter_look(look, tone=TextTone.YOU, underline=True) if action else look)
            case "link_close":
                self._close_link()
            case "image":
                self._put(f"[image: {token.content}]", alter_look(look, tone=TextTone.QUIET))
                self._put(f" ({token.attrs.get('src', '')})", QUIET)
            case "strong_open" | "em_open" | "s_open" as mark:
                emphasis = alter_look(
                    look, bold=mark == "strong_open", italic=mark == "em_open", strike=mark == "s_open"
                )
                self._looks.append(emphasis)
            case "strong_close" | "em_close" | "s_close":
                self._looks.pop()
            case _:
                self._put(token.content, look)

    def _put(self, text: str, look: TextStyle, action: str = "") -> None:
        if not text:
            return
        action = action or (self._targets[-1][1] if self._targets else "")
        # A tab has no width of its own; in prose it is a blank.
        self.lines[-1].append(Span(text.replace("\t", " "), look, action))

    def _text(self, text: str, look: TextStyle) -> None:
        """Text, in which bare addresses are links too."""
        position = 0
        for match in (_NEVER if self._targets or "://" not in text else _ADDRESS).finditer(text):
            self._put(text[position : match.start()], look)
            self._put(match.group(), alter_look(look, tone=TextTone.YOU, underline=True), link_action(match.group()))
            position = match.end()
        self._put(text[position:], look)

    def _close_link(self) -> None:
        """End a link; its real target is shown wherever the text does not already say it."""
        target, action, line, first = self._targets.pop()
        self._looks.pop()
        shown = "".join(span.text for span in self.lines[line][first:])
        if shown not in {target, target.removeprefix("mailto:")}:
            self.lines[-1].append(Span(f" ({target})", QUIET, action))


def inline_lines(tokens: Sequence[Token], look: TextStyle = PLAIN) -> list[list[Span]]:
    inline = Inline(look)
    for token in tokens:
        inline.add(token)
    return inline.lines


Cell = list[Span]
_GAP: Final = 2
_NUMBER: Final = re.compile(r"[-+−~≈<>≤≥$€£]?\d[\d.,  _]*\s?(%|[a-zA-Zµ]{1,3})?")


DECIDING: Final = 100
"""Rows that decide the widths and sides of the columns: a longer table continues to stream without moving them."""


_SLACK: Final = 3
"""Cells by which the columns of a long table are wider where there is room: its later numbers have more digits."""


class Table(Struct, frozen=True):
    """The cells of a table, and which columns end flush."""

    header: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    alignments: tuple[str, ...]


def read_table(tokens: Sequence[Token]) -> Table:
    """The tokens from `table_open` to `table_close` as cells."""
    rows: list[list[Cell]] = []
    alignments: list[str] = []
    for position, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in {"th_open", "td_open"}:
            head = token.type == "th_open"
            if head:
                alignments.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))
            content = tokens[position + 1].children or []
            look = alter_look(PLAIN, bold=True) if head else PLAIN
            rows[-1].append([span for line in inline_lines(content, look) for span in line])
    body = tuple(tuple(row) for row in rows[1:])
    deciding = body[:DECIDING]
    return Table(tuple(rows[0]), body, tuple(_alignment(deciding, column, a) for column, a in enumerate(alignments)))


def _alignment(rows: Sequence[Sequence[Cell]], column: int, wanted: str) -> str:
    if wanted:
        return wanted
    texts = [text for row in rows if (text := "".join(span.text for span in row[column]).strip())]
    return "right" if texts and all(_NUMBER.fullmatch(text) for text in texts) else "left"


def table_lines(table: Table, width: int) -> Iterator[tuple[Span, ...]]:
    """The rows of a table in at most `width` cells; cells that do not fit are wrapped."""
    widths = column_widths(table, width)
    yield from _row_lines(table.header, widths, table.alignments)
    yield (Span("─" * min(sum(widths) + _GAP * (len(widths) - 1), width), QUIET),)
    yield from body_lines(table.rows, widths, table.alignments)


def body_lines(
    rows: Sequence[Sequence[Cell]], widths: Sequence[int], alignments: Sequence[str]
) -> Iterator[tuple[Span, ...]]:
    """Rows below the header in columns that are settled."""
    for row in rows:
        yield from _row_lines(row, widths, alignments)


def column_widths(table: Table, width: int) -> list[int]:
    """Natural widths, the widest narrowed until all fit."""
    widths = [
        max(1, *(spans_width(row[column]) for row in (table.header, *table.rows[:DECIDING])))
        for column in range(len(table.header))
    ]
    room = max(width - _GAP * (len(widths) - 1), len(widths))
    excess = sum(widths) - room
    if len(table.rows) > DECIDING:
        slack = max(min(-excess // len(widths), _SLACK), 0)
        return [size + slack for size in widths] if excess <= 0 else _narrow(widths, excess)
    return _narrow(widths, excess)


def _narrow(widths: list[int], excess: int) -> list[int]:
    while excess > 0:
        widest = max(widths)
        second = max((size for size in widths if size < widest), default=1)
        columns = [column for column, size in enumerate(widths) if size == widest]
        step = max(1, min(widest - second, excess // len(columns)))
        if widest == 1:
            break
        for column in columns:
            if excess > 0:
                widths[column] -= step
                excess -= step
    return widths


def _row_lines(row: Sequence[Cell], widths: Sequence[int], alignments: Sequence[str]) -> Iterator[tuple[Span, ...]]:
    columns = [[spans for spans, _ in wrap(cell, size)] for cell, size in zip(row, widths, strict=True)]
    for level in range(max(len(column) for column in columns)):
        spans: list[Span] = []
        for position, (column, size) in enumerate(zip(columns, widths, strict=True)):
            cell = column[level] if level < len(column) else ()
            last = position == len(columns) - 1
            spans.extend(_align(cell, size, alignments[position], trailing=not last))
            if not last:
                spans.append(Span(" " * _GAP))
        yield tuple(spans)


def _align(cell: tuple[Span, ...], size: int, alignment: str, *, trailing: bool) -> list[Span]:
    room = size - spans_width(cell)
    before = room if alignment == "right" else room // 2 if alignment == "center" else 0
    after = room - before if trailing else 0
    padded = [Span(" " * before)] if before > 0 else []
    padded.extend(cell)
    if after > 0:
        padded.append(Span(" " * after))
    return padded


DEEPEST: Final = 40
"""Nested blocks up to which the parser goes; deeper ones are left out (a list counts as two)."""
STEPS_EACH: Final = 6
"""Steps that looking for the ends of links may take, for each character of a paragraph; a bracket that is never
closed takes one for each word and mark after it. Beyond, brackets are text: honest paragraphs take less than one.
Ten thousand steps take about 2 ms."""
MARKS: Final = 2_000
"""Marks of emphasis up to which a paragraph has any: 500 bold words. Formulas and data with more show as written."""
_HEAVY: Final = {"\n": 40, "|": 20} | dict.fromkeys("[]<", 20) | dict.fromkeys("*_~`&\\", 6)
"""Characters of prose that take as long as one of these: a line is tried by every rule of every block around it."""
_SMALL: Final = 500
"""Characters that are never too many for one step."""
# The module, which its function of the same name hides. Rows that lack cells get them:
# 65,536 otherwise, a second for 2 kB.
vars(import_module("markdown_it.rules_block.table"))["MAX_AUTOCOMPLETED_CELLS"] = 2_000
_LEFT: Final = "steps_left"


def heft(text: str) -> int:
    return len(text) + sum(weight * text.count(mark) for mark, weight in _HEAVY.items())


def piece_end(text: str, most: int) -> int:
    """Number of characters from the start of `text` that are at most this much work."""
    end = min(len(text), most)
    while end > _SMALL and heft(text[:end]) > most:
        end //= 2
    return end


def last_piece(text: str, most: int) -> str:
    """The end of `text` that is at most this much work."""
    start = max(len(text) - most, 0)
    while len(text) - start > _SMALL and heft(text[start:]) > most:
        start = (start + len(text) + 1) // 2
    return text[start:]


def make_parser() -> MarkdownIt:
    """A CommonMark parser with tables and strikethrough, without HTML, whose work grows with its input alone.

    Reference definitions are off: they may come after their use, so a settled block could change.
    """
    options = {"html": False, "maxNesting": DEEPEST}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"]).disable("reference")
    parser.core.ruler.at("inline", _inline)
    skip = parser.inline.skipToken

    def skip_token(state: StateInline) -> None:
        left = cast("int", state.env.get(_LEFT, 0))
        if left <= 0:
            state.pos = state.posMax
            return
        state.env[_LEFT] = left - 1
        skip(state)

    parser.inline.skipToken = skip_token  # type: ignore[method-assign] # the parser's one loop over what follows
    return parser


def _inline(state: StateCore) -> None:
    """Parse each paragraph, heading and cell in separate steps, so that its surroundings change nothing."""
    env = cast("dict[str, Any]", state.env)
    for token in state.tokens:
        if token.type != "inline":
            continue
        text = token.content
        if sum(map(text.count, "*_~")) > MARKS:
            token.children = []
            for line in text.split("\n"):
                token.children += [Token("softbreak", "br", 0)] if token.children else []
                token.children.append(Token("text", "", 0, content=line))
            continue
        env[_LEFT] = STEPS_EACH * len(text)
        token.children = []
        state.md.inline.parse(text, state.md, state.env, token.children)


_BULLETS: Final = "•◦▪"
_QUOTE: Final = Span("│ ", QUIET)
MINIMUM_WIDTH: Final = 8
"""Cells a text column keeps however deep it is nested."""


def too_deep(tokens: Sequence[Token], start: int, end: int) -> bool:
    """True when the parser has left something out of a block, so that only its source shows all of it."""
    return any(
        token.level == DEEPEST - 1 and token.nesting == 1 and token.type != "paragraph_open"
        for token in tokens[start:end]
    )


class Gutter:
    """Prefix of a block: the first form once (a bullet), then the other (its hanging indent)."""

    def __init__(self, first: tuple[Span, ...], rest: tuple[Span, ...], parent: Gutter | None = None) -> None:
        self._first: tuple[Span, ...] | None = first
        self._rest = rest
        self._parent = parent

    def take(self) -> tuple[Span, ...]:
        own, self._first = (self._rest if self._first is None else self._first), None
        return own if self._parent is None else (*self._parent.take(), *own)

    @property
    def width(self) -> int:
        return spans_width(self._rest) + (0 if self._parent is None else self._parent.width)

    @property
    def lead(self) -> int:
        return len(self._rest) + (0 if self._parent is None else self._parent.lead)


class Page(Struct, frozen=True):
    """Destination of lines: `width` counts all cells, gutters included."""

    lines: list[StyledLine]
    jobs: list[CodeJob]
    width: int
    codes: list[CodeBlock] = field(default_factory=list[CodeBlock])

    def room(self, gutter: Gutter) -> int:
        return max(self.width - gutter.width, MINIMUM_WIDTH)

    def text(self, source_lines: Sequence[Sequence[Span]], gutter: Gutter) -> None:
        for source in source_lines:
            for row, joint in wrap(source, self.room(gutter)):
                self.lines.append(StyledLine((*gutter.take(), *row), joint))

    def code(self, sources: Sequence[str], language: str, gutter: Gutter) -> None:
        first, width = len(self.lines), self.room(gutter)
        for source in sources or [""]:
            self.code_line(source, gutter)
        if sources:
            self.codes.append(CodeBlock(first, len(self.lines), "\n".join(sources), language))
        if language:
            self.jobs.append(CodeJob(first, sources, language, gutter.lead, width))

    def code_line(self, source: str, gutter: Gutter) -> None:
        spans = plain_code(source)
        rows = len(wrap(spans, max(self.room(gutter) - 2, 1), hard=True))
        gutters = [gutter.take() for _ in range(rows)]
        for index, own in enumerate(gutters):
            self.lines.append(code_rows(spans, own, self.room(gutter))[index])


def block_ranges(tokens: Sequence[Token], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The blocks directly within `tokens[start:end]`, each as first token and the one after its last."""
    position = start
    while position < end:
        token = tokens[position]
        after = position + 1
        if token.nesting == 1:
            while not (tokens[after].level == token.level and tokens[after].nesting == -1):
                after += 1
            after += 1
        yield position, after
        position = after


def code_sources(content: str) -> list[str]:
    """The lines of a code block without blank ones at its end."""
    sources = content.split("\n")
    while sources and not sources[-1].strip():
        sources.pop()
    return sources


def fence_language(info: str) -> str:
    """The language an info string names, empty when none."""
    return info.split(maxsplit=1)[0].strip("{}.").lower() if info.strip() else ""


def lay_block(tokens: Sequence[Token], start: int, end: int, page: Page, gutter: Gutter, depth: int = 0) -> None:
    token = tokens[start]
    match token.type:
        case "paragraph_open":
            page.text(inline_lines(tokens[start + 1].children or []), gutter)
        case "heading_open":
            look = alter_look(PLAIN, tone=TextTone.YOU, bold=True, underline=token.tag == "h1", italic=token.tag > "h2")
            page.text(inline_lines(tokens[start + 1].children or [], look), gutter)
        case "fence":
            page.code(code_sources(token.content), fence_language(token.info), gutter)
        case "code_block":
            page.code(code_sources(token.content), "", gutter)
        case "hr":
            page.lines.append(StyledLine((*gutter.take(), Span("─" * page.room(gutter), QUIET))))
        case "blockquote_open":
            lay_blocks(tokens, start + 1, end - 1, page, Gutter((_QUOTE,), (_QUOTE,), gutter), depth)
        case "bullet_list_open" | "ordered_list_open":
            items = list(block_ranges(tokens, start + 1, end - 1))
            lay_items(tokens, items, page, gutter, first_number(token), depth)
        case "table_open":
            for spans in table_lines(read_table(tokens[start:end]), page.room(gutter)):
                page.lines.append(StyledLine((*gutter.take(), *spans)))
        case _:
            page.text([[Span(token.content, PLAIN)]], gutter)


def first_number(token: Token) -> int | None:
    return int(token.attrs.get("start", 1)) if token.type == "ordered_list_open" else None


def lay_items(
    tokens: Sequence[Token],
    items: Sequence[tuple[int, int]],
    page: Page,
    gutter: Gutter,
    number: int | None,
    depth: int = 0,
) -> None:
    """Put list items without blank lines between them; `number` is the first one's."""
    for offset, (start, end) in enumerate(items):
        mark = f"{_BULLETS[depth % len(_BULLETS)]} " if number is None else f"{number + offset}. "
        item = tokens[start + 1 : end - 1]
        if number is None and (box := box_of(item)):
            mark, item = f"{box} ", without_box(item)
        hanging = Gutter((Span(mark, QUIET),), (Span(" " * cells(mark)),), gutter)
        if end - start == 2:
            page.lines.append(StyledLine(hanging.take()))
        lay_blocks(item, 0, len(item), page, hanging, depth + 1)


BOXES: Final = {"[ ] ": "☐", "[x] ": "☑", "[X] ": "☑"}
"""Beginnings of an item of a task list, and the signs that they are shown as."""
BOX: Final = 4
"""Characters of such a beginning."""


def box_of(item: Sequence[Token]) -> str:
    """The sign of an item of a task list; empty for any other."""
    children = (item[1].children or ()) if len(item) > 1 else ()
    return BOXES.get(children[0].content[:BOX], "") if children and children[0].type == "text" else ""


def without_box(item: Sequence[Token]) -> Sequence[Token]:
    children = list(item[1].children or ())
    children[0] = children[0].copy(content=children[0].content[BOX:])
    return [item[0], item[1].copy(children=children), *item[2:]]


def lay_blocks(tokens: Sequence[Token], start: int, end: int, page: Page, gutter: Gutter, depth: int = 0) -> None:
    """Put blocks one below the other; a list hugs the paragraph it belongs to."""
    before = ""
    for first, after in block_ranges(tokens, start, end):
        kind = tokens[first].type
        if before and not (depth and kind.endswith("list_open") and before == "paragraph_open"):
            page.lines.append(StyledLine(gutter.take()))
        lay_block(tokens, first, after, page, gutter, depth)
        before = kind
