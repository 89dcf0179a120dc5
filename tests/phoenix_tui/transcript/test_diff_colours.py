"""Syntax colours in diffs: the text stays what it was, the marks stay where they were, long ones stay plain."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.geometry import Region

from engine.codec import encode_display
from engine.machine.messages import ToolStatus, ToolUseBlock
from phoenix_tui.markdown.lines import StyledLine, Surface, TextTone
from phoenix_tui.widgets.blocks.diff import MOST_COLOURED, SPLIT_FROM, diff_block, language_of
from tests.support.screens import TranscriptApp, answered, call_record, said, snapshot
from tests.support.waiting import poll
from tools.contract import DiffDisplay

DIFF = """\
@@ -7,4 +7,4 @@
 def delay(n):
-    return 2**n  # doubled
+    return min(60, 2**n)  # doubled
     x = "a"
@@ -40 +40,2 @@
 '''open
+still = "said"'''"""
MARKS = {Surface.ADDED_WORDS, Surface.REMOVED_WORDS}


def display(diff: str = DIFF, path: str = "a.py") -> DiffDisplay:
    return DiffDisplay(path, diff, 2, 1)


def coloured(shown: DiffDisplay, width: int, *, is_open: bool = False, slice_of: int = 40) -> list[StyledLine]:
    block = diff_block(shown, width, is_open=is_open)
    while block.colours.jobs:
        block.colours.colour(slice_of)
    return block.lines


def toned(line: StyledLine) -> list[tuple[str, TextTone]]:
    return [(span.text, span.look.tone) for span in line.spans[3:] if span.text.strip()]


def test_a_line_has_the_colours_of_its_language_under_its_marks() -> None:
    lines = coloured(display(), 80)
    assert ("def", TextTone.KEYWORD) in toned(lines[1])
    assert ("delay", TextTone.NAME) in toned(lines[1])
    added = toned(lines[3])
    assert ("return", TextTone.KEYWORD) in added
    assert ("60", TextTone.NUMBER) in added
    assert ("# doubled", TextTone.QUIET) in added
    plain = diff_block(display(), 80, is_open=False).lines
    for before, after in zip(plain, lines, strict=True):
        marked = ["".join(s.text for s in line.spans if s.look.surface in MARKS) for line in (before, after)]
        assert marked[0] == marked[1]
    assert {span.look.surface for span in lines[3].spans[2:]} == {Surface.ADDED, Surface.ADDED_WORDS}


def test_each_side_and_each_hunk_is_a_text_of_its_own() -> None:
    lines = coloured(display(), SPLIT_FROM)
    assert ("still = \"said\"'''", TextTone.STRING) in toned(lines[-1])
    assert toned(lines[3]).count(('"a"', TextTone.STRING)) == 2
    assert [text for text, tone in toned(lines[1]) if tone is TextTone.KEYWORD] == ["def", "def"]


def test_a_comment_on_a_marked_word_is_not_quiet() -> None:
    change = display("@@ -1 +1 @@\n-x = 1  # one day\n+x = 1  # two days")
    spans = [span for line in coloured(change, 80) for span in line.spans if span.look.surface in MARKS]
    assert spans
    assert all(span.look.tone is not TextTone.QUIET for span in spans)


@pytest.mark.parametrize(
    "change",
    [
        display(path="a.unknown"),
        display(path="notes.txt"),
        display("@@ -0,0 +1 @@\n+" + "x = 1;" * 500, "a.js"),
        display("@@ -0,0 +1,9999 @@\n" + "\n".join("+" + "x" * 900 for _ in range(MOST_COLOURED // 900 + 1))),
    ],
    ids=["unknown", "no language", "minified", "huge"],
)
def test_what_no_colours_help_stays_plain(change: DiffDisplay) -> None:
    assert coloured(change, 80, is_open=True) == diff_block(change, 80, is_open=True).lines


def test_languages_are_known_by_the_name_of_the_file() -> None:
    names = ["a.py", "x/B.TSX", "Dockerfile", "Makefile", "k.yml", "c.h", "r.rs", ".gitignore", "README", "x.patch"]
    found = [language_of(name) for name in names]
    assert found == ["python", "typescript", "docker", "make", "yaml", "c", "rs", "", "", ""]


SOURCE = st.lists(
    st.sampled_from(["def f():", "\treturn '''", 'x = "a" # b', "'''", "", "  世界 = 1", "%s" % ("y" * 200), "\x0c{"]),
    max_size=14,
)


@settings(max_examples=120, deadline=None)
@given(
    SOURCE,
    SOURCE,
    st.sampled_from([30, 80, SPLIT_FROM, 200]),
    st.booleans(),
    st.integers(1, 7),
    st.sampled_from(["a.py", "a.js", "a.html", "a.md", "a.sh", "a.yaml"]),
)
def test_colours_change_no_character_and_no_row(
    old: list[str], new: list[str], width: int, is_open: bool, size: int, path: str
) -> None:
    change = display("\n".join(list(difflib.unified_diff(old, new, lineterm=""))[2:]), path)
    plain = diff_block(change, width, is_open=is_open).lines
    painted = coloured(change, width, is_open=is_open, slice_of=size)
    assert [(line.text, line.joint, line.margin, line.sides) for line in painted] == [
        (line.text, line.joint, line.margin, line.sides) for line in plain
    ]


async def test_a_diff_in_sight_gets_its_colours_and_nothing_moves() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(80, 20)) as pilot:
        call = call_record("p1", "patch", "{}", ToolStatus.SUCCESS, display=encode_display(display()))
        app.view.show(snapshot([said(1, "go"), answered(2, ToolUseBlock("p1", "patch", "{}"))], [call]))
        await pilot.pause()
        before = app.shown()

        def keyword() -> str:
            row = next(place for place, text in enumerate(app.shown()) if "def delay" in text)
            strip = app.view.render_lines(Region(0, row, 80, 1))[0]
            return next(str(each.style.color) for each in strip if each.text == "def" and each.style is not None)

        def has_colours() -> bool:
            return any(each.text == "def" for strip in app.view.render_lines(Region(0, 0, 80, 20)) for each in strip)

        assert await poll(has_colours)
        await pilot.pause()
        assert app.shown() == before
        dark = keyword()
        app.theme = "phoenix-light"
        await pilot.pause()
        assert await poll(lambda: keyword() != dark)
        assert not app.view.canvas.has_plain_code()
