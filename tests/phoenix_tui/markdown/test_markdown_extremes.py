"""Texts of unusual shape: nothing of them is lost, and what has settled is never laid out again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phoenix_tui.markdown import stream as stream_module
from phoenix_tui.markdown.layout import DECIDING
from phoenix_tui.markdown.stream import MarkdownStream
from tests.support.whole_markdown import markdown_lines

HEAD = "| name | count |\n|---|---:|\n"


def texts(stream: MarkdownStream) -> list[str]:
    return [line.text.rstrip() for line in stream.lines]


def fed(*pieces: str, width: int = 60) -> MarkdownStream:
    stream = MarkdownStream(width)
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    return stream


class Counting:
    """The parser, and how many characters it was given."""

    def __init__(self) -> None:
        self.parser = stream_module._parser
        self.characters: list[int] = []

    def parse(self, text: str) -> object:
        self.characters.append(len(text))
        return self.parser.parse(text)


def test_the_rows_of_a_long_table_are_parsed_once_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting()
    monkeypatch.setattr(stream_module, "_parser", counting)
    stream = MarkdownStream(60)
    stream.feed(HEAD)
    for number in range(5_000):
        stream.feed(f"| row {number} | {number} |\n")
    assert max(counting.characters[2 * DECIDING :]) < 200
    assert stream.settled == 5_002
    assert texts(stream)[-1].split() == ["row", "4999", "4999"]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(DECIDING - 3, DECIDING + 30),
    size=st.integers(150, 2_000),
    words=st.lists(
        st.sampled_from(["a", "some words", "漢字", "a much longer cell than that", "12", "`x`"]), min_size=1
    ),
    after=st.sampled_from([
        "",
        "\n",
        "\nAfter.",
        "\n\n| a | b |\n",
        "> quoted\n\nAfter",
        "```\ncode\n```\n",
        "- one\n",
    ]),
    before=st.sampled_from(["", "Before.\n\n", "- item\n\n", "Before.\n"]),
    width=st.integers(12, 70),
)
def test_a_long_table_in_any_pieces_gives_the_lines_of_the_whole(
    rows: int, size: int, words: list[str], after: str, before: str, width: int
) -> None:
    body = "".join(f"| {words[number % len(words)]} | {number} |\n" for number in range(rows))
    text = f"{before}{HEAD}{body}{after}"
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    stream = fed(*pieces, width=width)
    while stream.colour(100) is not None:
        pass
    assert stream.lines == markdown_lines(text, width)


@pytest.mark.parametrize(
    "text",
    [
        "> " * 2_000 + "the end",
        "".join("  " * depth + f"- item {depth}\n" for depth in range(120)) + "  " * 120 + "the end",
        "- " * 300 + "the end",
        "> - " * 300 + "the end",
    ],
    ids=["quotes", "lists", "bullets", "both"],
)
def test_what_lies_deeper_than_the_parser_goes_is_shown_as_it_was_written(text: str) -> None:
    shown = "".join(texts(fed(text)))
    assert "the end" in " ".join(shown.split())
    assert "the end" in " ".join("".join(line.text for line in markdown_lines(text, 60)).split())


def test_a_fence_of_many_thousand_lines_is_never_laid_out_again() -> None:
    stream = MarkdownStream(60)
    stream.feed("```python\nx = 0\n")
    lines = 2
    for number in range(10):
        first = stream.feed("".join(f"x = {number}{line}\n" for line in range(2_000)))
        assert first >= lines - 2
        lines = len(stream.lines)
    assert stream.settled >= 20_000
