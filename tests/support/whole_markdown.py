"""The lines of a finished Markdown text, parsed as a whole: what a growing one has to come to."""

from __future__ import annotations

from phoenix_tui.markdown.layout import Gutter, Page, block_ranges, lay_block, make_parser, too_deep
from phoenix_tui.markdown.lines import BLANK, MARGIN, TEXT_COLUMN, Span, StyledLine
from tools.clean_pieces import clean_words

_MARGIN = (Span(" " * MARGIN),)
_parser = make_parser()


def markdown_lines(text: str, width: int, *, coloured: bool = True) -> list[StyledLine]:
    """All of it, in one step; `coloured` waits for the lexing process."""
    page = Page([], [], min(width, TEXT_COLUMN + MARGIN))
    cleaned = clean_words(text)
    tokens = _parser.parse(cleaned)
    for first, after in block_ranges(tokens, 0, len(tokens)):
        if page.lines:
            page.lines.append(BLANK)
        gutter = Gutter(_MARGIN, _MARGIN)
        if too_deep(tokens, first, after):
            begin, end = tokens[first].map or [0, 0]
            page.text([[Span(line)] for line in cleaned.split("\n")[begin:end]], gutter)
        else:
            lay_block(tokens, first, after, page, gutter)
    for job in page.jobs if coloured else ():
        while not job.done:
            job.work(page.lines, 100)
    return page.lines
