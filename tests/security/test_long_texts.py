"""SECURITY V4: a text of a megabyte, or one line of it, was broken into rows in one step of 1 to 5 s."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.machine.messages import ToolStatus
from phoenix_tui.markdown.code import PIECE, ROWS_AT_ONCE, WORK_AT_ONCE, LongText, plain_rows
from phoenix_tui.markdown.lines import LOOKED_AT, Span, StyledLine, cells, ellipsize, wrap
from phoenix_tui.markdown.stream import MarkdownStream
from phoenix_tui.widgets.blocks import speech
from phoenix_tui.widgets.blocks.rows import ToolView
from phoenix_tui.widgets.blocks.tool_row import tool_block
from phoenix_tui.widgets.markdown_rows import markdown_rows
from phoenix_tui.widgets.transcript.model import NEWEST, LiveThinking
from tools.arguments import ToolFailure
from tools.clean_pieces import clean_words
from tools.files.content import MOST_COMPARED, FileEdit, Operation, apply_edits

SIZE = 500_001
UNITS = (
    "漢字", "a\n", "漢\n", "a b ", "x", "\t", "a\u0301", "\u0301", "👩\u200d", "🇩", "❤\ufe0f", "\x1b[31mx", "\x07",
    "\r", "กำ",
)  # fmt: skip
HOSTILE = {ascii(unit): unit * (SIZE // len(unit)) for unit in UNITS}
PIECES = st.sampled_from([
    "a", "word ", "漢字", "é", "👩\u200d💻", "\n", "  ", "\t", "-", "\u0301", "longer words here ",
])  # fmt: skip


def whole(text: str, width: int, *, hard: bool) -> list[tuple[str, str | None]]:
    """The rows of each line, broken as a whole."""
    rows = (
        row for line in clean_words(text).split("\n") for row in wrap((Span(line.expandtabs(4)),), width, hard=hard)
    )
    return [("".join(span.text for span in spans), joint) for spans, joint in rows]


@settings(max_examples=60)
@given(st.lists(PIECES, max_size=40).map("".join), st.integers(1, 400), st.integers(8, 60), st.booleans())
def test_rows_in_steps_are_those_of_the_whole(unit: str, times: int, width: int, hard: bool) -> None:
    text = (unit * times)[:12_000].replace("\t", "" if times > 3 else "\t")  # a long line's tabs count from its row
    longest = max(map(len, text.split("\n")))
    rows = [(row, joint) for _, row, joint in plain_rows(text, width, hard=hard)]
    if longest <= PIECE or "\u0301" not in text:
        assert rows == whole(text, width, hard=hard)
    assert "".join(row for row, _ in rows).replace(" ", "") == clean_words(text).replace("\n", "").replace(
        " ", ""
    ).replace("\t", "")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_step_lays_out_more_than_its_share(text: str) -> None:
    text = text[:60_000]
    lines = (StyledLine((Span(row),)) for _, row, _ in plain_rows(text, 100))
    long_text, steps, begun = LongText([], lines), 0, 0
    while True:
        new = long_text.lines[begun:]
        assert len(new) <= ROWS_AT_ONCE
        assert sum(len(line.text) for line in new) <= WORK_AT_ONCE + 2 * PIECE
        begun, steps = len(long_text.lines), steps + 1
        if not long_text.waiting:
            break
        long_text.more()
    assert (
        "".join(line.text for line in long_text.lines).split()
        == clean_words(text).replace("\n", "").expandtabs(4).split()
        or steps > 1
    )


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_every_block_gives_its_first_rows_of_a_long_text_without_reading_it_all(text: str) -> None:
    read = 0

    class Counted(str):
        """Counts what is cut out of it."""

        def __getitem__(self, key: object) -> str:
            nonlocal read
            piece = super().__getitem__(key)  # type: ignore[index]  # as it was asked for
            read += len(piece)
            return piece

        def strip(self, signs: str | None = None) -> Counted:
            return self

    counted = Counted(text)
    for rows in (
        speech.prompt_rows(speech.SpokenMessage(counted), 100, is_open=True, action=""),
        speech.thinking_rows(counted, 100),
        speech.notice_rows(counted, 100),
    ):
        read = 0
        list(islice(rows, 20))
        assert read <= (50 * PIECE if text[0] != "\x07" else len(text))
    closed = list(speech.prompt_rows(speech.SpokenMessage(text), 100, is_open=False, action=""))
    assert len(closed) <= speech.LONG_PROMPT + 3
    view = ToolView("1", "bash", text, ToolStatus.SUCCESS, text=text)
    assert len(tool_block(view, 100, is_open=False).lines) == 1
    assert len(list(islice(tool_block(view, 100, is_open=True).rows, 50))) <= 50


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_row_is_made_of_the_beginning_of_a_text(text: str) -> None:
    row = ellipsize(text, 40)
    assert len(row) <= LOOKED_AT + 1
    assert cells(row) <= 40 or "\x1b" in text


def test_a_look_inside_lays_out_no_more_than_its_share() -> None:
    for unit in ("[", "a\n", "> - ", "|a", "*"):
        assert markdown_rows(unit * (8_000 // len(unit)), 100)


def test_the_reasoning_under_way_is_read_once() -> None:
    thinking, text = LiveThinking(), "One word, and two.\nmore  of it "
    for letter in text * 2_000:
        thinking.add(letter)
    assert thinking.words == len((text * 2_000).split())
    assert len(thinking.newest) <= NEWEST
    assert thinking.newest_line == "more  of it"


def test_lines_of_the_same_letters_are_compared_in_bounded_work() -> None:
    """`difflib` compared each of 20,000 shuffled lines in cubic time: hours, only to say what is closest."""
    shuffled = random.Random(7)
    lines = ["".join(shuffled.sample("ab" * 200, 400)) for _ in range(3_000)]
    assert 400 * len(lines) > MOST_COMPARED
    with pytest.raises(ToolFailure, match="old is not in the file"):
        apply_edits("\n".join(lines), [FileEdit(Operation.REPLACE, "new", "".join(shuffled.sample("ab" * 200, 400)))])


def test_a_huge_piece_of_an_answer_is_laid_out_in_slices_too() -> None:
    """One event of 300 kB with short lines held the loop for half a minute; Esc did nothing."""
    text = "b\x07ig\n\n" * 3_000
    stream, answer = MarkdownStream(100), MarkdownStream(100)
    stream.add(text)
    assert stream.waiting
    assert len(stream.lines) < 1_500
    while stream.waiting:
        stream.more()
    stream.end("The end.")
    answer.feed(text + "The end.")
    answer.finish()
    assert stream.lines == answer.lines
