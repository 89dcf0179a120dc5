"""SECURITY V4: brackets, nested lists and short table rows held the Markdown parser for seconds, on the loop."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.markdown.layout import STEPS_EACH, heft, make_parser, piece_end
from phoenix_tui.markdown.stream import SLICE, MarkdownStream
from tests.support.whole_markdown import markdown_lines

SIZE = 9_000
UNITS = [
    "[", "![", "![[", "[a", "[a](", "[a\n", "[[a]](b)", "*", "*a ", "_a", "~~a", "`a\n", "<a", "&#", "a|b\n",
    "> - ",
]  # fmt: skip
NESTED = "".join("  " * depth + "- a\n" for depth in range(19))
HOSTILE = {
    **{f"many {unit!r}": unit * (SIZE // len(unit)) for unit in UNITS},
    "nested images": "![" * (SIZE // 6) + "](a)" * (SIZE // 6),
    "nested labels": "[a" * (SIZE // 4) + "]b" * (SIZE // 4),
    "lazy lines of a deep list": NESTED + "b\n" * (SIZE // 2),
    "rows without cells": "a|" * 1_000 + "\n" + "-|" * 1_000 + "\n" + "a\n" * 8_000,
    "columns": "|a" * 2_400 + "|\n" + "|-" * 2_400 + "|\n" + "|b|\n" * 2_400,
}
PIECES = st.sampled_from([
    "[", "![", "](", "]", ")", "*", "_", "**", "~~", "`", "<", ">", "&", "a", " ", "\n", "|", "- ",
])  # fmt: skip


def steps(text: str) -> int:
    """Number of places that the parser skips."""
    parser, taken = make_parser(), 0
    skip = parser.inline.skipToken

    def counted(state: object) -> None:
        nonlocal taken
        taken += state.env["steps_left"] > 0  # type: ignore[attr-defined] # its type is the library's own
        skip(state)  # type: ignore[arg-type] # the same

    parser.inline.skipToken = counted  # type: ignore[method-assign] # to count
    parser.parse(text)
    return taken


@given(st.lists(PIECES, min_size=1, max_size=5).map("".join), st.lists(PIECES, max_size=3).map("".join))
def test_looking_for_the_ends_of_links_takes_steps_by_the_character(opening: str, closing: str) -> None:
    text = opening * (900 // len(opening)) + closing * 100
    assert steps(text) <= STEPS_EACH * len(text)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_step_of_laying_out_takes_more_than_its_share(text: str) -> None:
    stream = MarkdownStream(100)
    stream.begin(text)
    while stream.waiting:
        before = stream.waiting
        stream.more()
        taken = before[: len(before) - len(stream.waiting)]
        assert taken
        assert len(taken) <= 500 or heft(taken) <= SLICE
    shown = "".join(line.text for line in stream.lines)
    assert sum(map(shown.count, "ab[")) or not sum(map(text.count, "ab"))


@given(st.text(alphabet="a\n|[*`", max_size=3_000), st.integers(500, 5_000))
def test_a_piece_is_never_empty_and_never_too_much(text: str, most: int) -> None:
    end = piece_end(text, most)
    assert bool(end) == bool(text)
    assert end <= 500 or heft(text[:end]) <= most


def shown(text: str) -> str:
    return "\n".join(line.text for line in markdown_lines(text, 100, coloured=False))


def test_honest_texts_keep_their_looks() -> None:
    links = " ".join(f"[page {number}](https://example.org/{number})" for number in range(300))
    assert shown(links).count("](") == 0, "three hundred links in one paragraph are links"
    badges = " ".join(f"[![b](https://e.org/{n}.svg)](https://e.org/{n})" for n in range(60))
    assert "![" not in shown(badges)
    bold = "\n".join(f"**Key {number}:** value" for number in range(500))
    assert "**" not in shown(bold)
    table = "| a | b | c |\n|---|---|---|\n" + "".join(
        f"| {n} | `x{n}` | [y](https://e.org/{n}) |\n" for n in range(500)
    )
    stream = MarkdownStream(100)
    stream.begin(table)
    while stream.waiting:
        stream.more()
    assert not any("|" in line.text for line in stream.lines)
    assert "x499" in "".join(line.text for line in stream.lines)
    citations = "Open [0, 1) and [2, 3) intervals " * 10 + "then [a link](https://example.org)."
    assert "[a link]" not in shown(citations)
    data = json.dumps([{"a_b": [1, [2, 3]]} for _ in range(1_500)], separators=(",", ":"))
    assert data in shown(data).replace("\n", "").replace(" ", "")


CONTROLS = ("\x07", "\u200d", "\r", "\x1b[31m", "\x9d", "\x1b]0;", "\ud800", "\u202e")


@pytest.mark.parametrize("control", CONTROLS, ids=ascii)
def test_a_control_character_lets_nothing_be_laid_out_twice(control: str) -> None:
    """One of them made every later piece of an answer lay out the whole again: 5 minutes for 200,000 characters."""
    stream, again = MarkdownStream(100), 0
    stream.feed(f"Begin{control}.\n\n")
    for number in range(2_000):
        before = stream.settled
        first = stream.feed(f"One short paragraph, number {number}, with one{control if number % 50 == 0 else ''}.\n\n")
        assert first >= before, "a settled line is laid out once"
        again = max(again, len(stream.lines) - first)
    stream.finish()
    assert again <= 200, "of a string that never ends 4,096 characters are waited for"
    assert "number 1999" in "".join(line.text for line in stream.lines[-3:])
