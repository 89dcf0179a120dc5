"""The Markdown parser with bounded work: parts that cost more than honest text stay as written."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, cast

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

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
    """The work of parsing `text`, in characters of plain prose."""
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
            token.children = _as_written(text)
            continue
        env[_LEFT] = STEPS_EACH * len(text)
        token.children = []
        state.md.inline.parse(text, state.md, state.env, token.children)


def _as_written(text: str) -> list[Token]:
    children: list[Token] = []
    for line in text.split("\n"):
        if children:
            children.append(Token("softbreak", "br", 0))
        children.append(Token("text", "", 0, content=line))
    return children
