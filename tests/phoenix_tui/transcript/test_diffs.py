"""Diffs in the transcript: lines, colours, sizes."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.geometry import Region

from engine.codec import decode_display, encode_display
from engine.machine.messages import ToolStatus, ToolUseBlock
from phoenix_tui.markdown.lines import StyledLine, Surface, TextTone, spans_width
from phoenix_tui.widgets.blocks.diff import MOST_COLOURED, SPLIT_FROM, check_rows, diff_block, language_of
from phoenix_tui.widgets.blocks.diff_rows import GAP, MOST_ROWS, MOST_STEPS, compare_lines, diff_rows, fold_rows, runs
from tests.support.screens import TranscriptApp, answered, call_record, said, snapshot
from tests.support.waiting import poll
from tools.comparing import Steps
from tools.contract import DiffDisplay
from tools.displays import CodeProblem, EditCheck

DIFF = """\
@@ -7,3 +7,3 @@
 def delay(n):
-    return base * 2**n
+    return min(LIMIT, base * 2**n)
     # end
@@ -40 +40,2 @@
 x
+y"""


def display(diff: str = DIFF) -> DiffDisplay:
    return DiffDisplay("a.py", diff, 2, 1)


def texts(lines: list[StyledLine]) -> list[str]:
    return [line.text.rstrip() for line in lines]


def marked(line: StyledLine) -> list[str]:
    return [span.text for span in line.spans if span.look.surface in {Surface.ADDED_WORDS, Surface.REMOVED_WORDS}]


def test_a_narrow_pane_shows_what_went_above_what_came() -> None:
    lines = diff_block(display(), 80, is_open=False).lines
    assert texts(lines) == [
        "  ± a.py  +2 -1",
        "   7   def delay(n):",
        "   8 -     return base * 2**n",
        "   8 +     return min(LIMIT, base * 2**n)",
        "   9       # end",
        "     ⋯",
        "  40   x",
        "  41 + y",
    ]
    assert marked(lines[3]) == ["min(LIMIT, ", ")"]
    assert all(not marked(line) for line in lines[4:])


def test_a_wide_pane_shows_them_side_by_side_with_both_numbers() -> None:
    lines = texts(diff_block(display(), SPLIT_FROM, is_open=False).lines)
    halves = [[half.rstrip() for half in line.split(" │ ")] for line in lines[1:5]]
    assert halves == [
        ["   7   def delay(n):", " 7   def delay(n):"],
        ["   8 -     return base * 2**n", " 8 +     return min(LIMIT, base * 2**n)"],
        ["   9       # end", " 9       # end"],
        ["     ⋯"],
    ]
    assert lines[-1].split("│")[0].strip() == ""
    assert {spans_width(line.spans) for line in diff_block(display(), SPLIT_FROM, is_open=False).lines[1:4]} == {137}


@pytest.mark.parametrize("width", [40, 80, 139, 140, 200])
def test_a_long_line_is_cut_while_folded_and_wrapped_once_open_and_no_row_is_too_wide(width: int) -> None:
    long = display("@@ -1 +1 @@\n-" + "a" * 900 + "\n+" + "世界" * 400)
    folded, opened = (diff_block(long, width, is_open=is_open).lines for is_open in (False, True))
    assert len(folded) <= 3
    assert len(opened) > 5
    assert all(spans_width(line.spans) <= width for line in [*folded, *opened])
    assert "".join(line.text for line in opened).count("a") == 900 + len("a.py") - 3


def test_a_huge_diff_stays_folded_and_even_open_never_lays_out_more_than_its_limit() -> None:
    huge = display("@@ -1,0 +1,50000 @@\n" + "\n".join(f"+{n}" for n in range(50_000)))
    folded, opened = (diff_block(huge, 80, is_open=is_open, action="fold").lines for is_open in (False, True))
    assert texts(folded)[-1].endswith("… +49,989 lines")
    assert texts(opened)[-1].endswith("… +48,001 lines")
    assert len(opened) == MOST_ROWS + 1


def test_lines_with_little_in_common_are_not_marked() -> None:
    assert compare_lines("return base", "for x in range(9): print(x)", Steps(MOST_STEPS)) is None
    assert compare_lines("", "new", Steps(MOST_STEPS)) is None
    assert compare_lines("a" * 5_000, "a" * 5_001, Steps(MOST_STEPS)) is None


@settings(max_examples=150, deadline=None)
@given(
    old=st.lists(st.text("ab \t(", max_size=9), max_size=12), new=st.lists(st.text("ab \t(", max_size=9), max_size=12)
)
def test_every_line_of_a_diff_is_shown_once_with_all_its_text(old: list[str], new: list[str]) -> None:
    diff = "\n".join(list(difflib.unified_diff(old, new, lineterm=""))[2:])
    rows = list(diff_rows(diff))
    assert [row for before, after in runs(rows) for row in (*before, *after)] == rows
    assert [row.text for row in rows if row.sign == "+"] == [line[1:] for line in diff.split("\n") if line[:1] == "+"]
    for row in rows:
        pieces = compare_lines(row.text, row.text + " b", Steps(MOST_STEPS))
        if pieces is not None:
            assert "".join(piece.text for piece in pieces[0]) == row.text
            assert "".join(piece.text for piece in pieces[1]) == row.text + " b"


async def test_copying_from_two_sides_takes_one_of_them_without_numbers_and_signs() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(160, 20)) as pilot:
        call = call_record("p1", "patch", "{}", ToolStatus.SUCCESS, display=encode_display(display()))
        app.view.show(snapshot([said(1, "go"), answered(2, ToolUseBlock("p1", "patch", "{}"))], [call]))
        await pilot.pause()
        rows = app.shown()
        first = next(place for place, row in enumerate(rows) if "def delay" in row)
        right = rows[first].rindex("def")
        for column, text in (
            (7, "def delay(n):\n    return base * 2**n"),
            (right, "def delay(n):\n    return min(LIMIT, base * 2**n)"),
        ):
            await pilot.mouse_down(offset=(column, first))
            await pilot.hover(offset=(column + 60, first + 1))
            await pilot.mouse_up(offset=(column + 60, first + 1))
            assert app.screen.get_selected_text() == text


def test_a_folded_diff_shows_what_changed_before_the_lines_around_it() -> None:
    context = "\n".join(f" line {number}" for number in range(1, 13))
    lines = texts(diff_block(display(f"@@ -1,12 +1,14 @@\n{context}\n+new\n+newer"), 80, is_open=False).lines)
    assert lines[1] == "   4   line 4"
    assert lines[-3:] == ["  13 + new", "  14 + newer", "     … +3 lines"]


def test_a_folded_diff_shows_both_sides_of_a_change_and_each_change() -> None:
    rewritten = "\n".join(f"{sign}line {number}" for sign in "-+" for number in range(20))
    lines = texts(diff_block(display(f"@@ -1,20 +1,20 @@\n{rewritten}"), 80, is_open=False).lines)
    assert lines[1:7] == [f"  {number + 1} - line {number}" for number in range(6)]
    assert lines[7:] == [*(f"  {number + 1} + line {number}" for number in range(5)), "    … +29 lines"]
    hunks = "".join(f"@@ -{at},3 +{at},3 @@\n a\n-b\n+c\n" for at in (1, 11, 21))
    lines = texts(diff_block(display(hunks), 80, is_open=False).lines)
    assert lines[1:] == [
        "   1   a",
        "   2 - b",
        "   2 + c",
        "     ⋯",
        "  11   a",
        "  12 - b",
        "  12 + c",
        "     ⋯",
        "  21   a",
        "  22 - b",
        "  22 + c",
    ]


@given(st.lists(st.tuples(st.sampled_from(" -+"), st.text("ab", max_size=2)), min_size=12, max_size=60))
def test_a_folded_diff_is_a_part_of_the_whole_with_the_first_change_in_it(rows: list[tuple[str, str]]) -> None:
    before = sum(sign != "+" for sign, _ in rows)
    after = sum(sign != "-" for sign, _ in rows)
    whole = list(diff_rows("\n".join([f"@@ -1,{before} +1,{after} @@", *(f"{sign}{text}" for sign, text in rows)])))
    shown = fold_rows(whole, 11)
    assert len(shown) <= 11
    rest = iter(whole)
    assert all(any(row is other for other in rest) for row in shown if row.sign != GAP)
    changed = [row for row in whole if row.sign in "+-"]
    assert not changed or any(row is changed[0] for row in shown)
    if len(changed) <= 5:  # with a sign between each two they have room
        assert all(any(row is one for row in shown) for one in changed)


PROBLEMS = tuple(CodeProblem(number, 5, f"name{number} is not defined", "Ruff", "F821") for number in range(1, 11))
FAILED = EditCheck("ruff", "a.py", PROBLEMS, 12, 1)


def rows(*checks: EditCheck, width: int = 80, is_open: bool = False) -> list[StyledLine]:
    return list(check_rows(checks, width, is_open=is_open))


def test_new_errors_are_red_and_the_first_three_are_shown() -> None:
    shown = rows(FAILED)
    assert texts(shown) == [
        "  ✗ ruff: 12 new errors, 1 new warning",
        "  │ 1:5 name1 is not defined [F821]",
        "  │ 2:5 name2 is not defined [F821]",
        "  │ 3:5 name3 is not defined [F821]",
        "    … +9 errors",
    ]
    assert {span.look.tone for span in shown[0].spans if span.text.strip()} == {TextTone.BAD}


def test_an_open_diff_shows_all_that_the_model_read_with_nothing_cut() -> None:
    long = CodeProblem(3, 1, "x" * 150)
    shown = texts(rows(EditCheck("ruff", "a.py", (long, *PROBLEMS), 11), is_open=True))
    assert sum(line.count("x") for line in shown) == 150
    assert shown[-1] == "  │ 10:5 name10 is not defined [F821]"


def test_servers_without_new_errors_share_one_quiet_row_and_notes_have_theirs() -> None:
    shown = rows(
        EditCheck("pyright", "a.py"),
        EditCheck("mine", "a.py", note="it has ended: no licence found"),
        EditCheck("ruff", "a.py", warnings=2),
    )
    assert texts(shown) == [
        "  ✓ pyright, ruff: no new errors, 2 new warnings",
        "  · mine: it has ended: no licence found",
    ]
    assert {span.look.tone for line in shown for span in line.spans if span.text.strip()} == {TextTone.QUIET}


def test_a_check_of_an_earlier_edit_names_its_file() -> None:
    late = EditCheck("ruff", "b\n.py", PROBLEMS[:1], 1, is_late=True)
    assert texts(rows(late))[0] == "  ✗ ruff about an earlier edit of b␊.py: 1 new error"


def test_hostile_words_neither_act_nor_leave_their_row() -> None:
    wild = EditCheck("x\x1b[2J", "a", (CodeProblem(1, 1, "a\nb\x1b]0;t\x07" + "長" * 300, code="\u202e"),), 1)
    for is_open in (False, True):
        shown = rows(wild, width=40, is_open=is_open)
        assert not {"\x1b", "\n", "\x07", "\u202e"} & set("".join(texts(shown)))
        assert all(spans_width(line.spans) <= 40 for line in shown)


def test_the_rows_stand_below_the_diff_and_survive_the_database() -> None:
    display = DiffDisplay("a.py", "@@ -1 +1 @@\n-a\n+b", 1, 1, checks=(EditCheck("ruff", "a.py"),))
    assert decode_display(encode_display(display)) == display
    assert texts(diff_block(display, 80, is_open=False).lines) == [
        "  ± a.py  +1 -1",
        "  1 - a",
        "  1 + b",
        "  ✓ ruff: no new errors",
    ]


CODE_DIFF = """\
@@ -7,4 +7,4 @@
 def delay(n):
-    return 2**n  # doubled
+    return min(60, 2**n)  # doubled
     x = "a"
@@ -40 +40,2 @@
 '''open
+still = "said"'''"""
MARKS = {Surface.ADDED_WORDS, Surface.REMOVED_WORDS}


def display_code(diff: str = CODE_DIFF, path: str = "a.py") -> DiffDisplay:
    return DiffDisplay(path, diff, 2, 1)


def coloured(shown: DiffDisplay, width: int, *, is_open: bool = False, slice_of: int = 40) -> list[StyledLine]:
    block = diff_block(shown, width, is_open=is_open)
    while block.colours.jobs:
        block.colours.colour(slice_of)
    return block.lines


def toned(line: StyledLine) -> list[tuple[str, TextTone]]:
    return [(span.text, span.look.tone) for span in line.spans[3:] if span.text.strip()]


def test_a_line_has_the_colours_of_its_language_under_its_marks() -> None:
    lines = coloured(display_code(), 80)
    assert ("def", TextTone.KEYWORD) in toned(lines[1])
    assert ("delay", TextTone.NAME) in toned(lines[1])
    added = toned(lines[3])
    assert ("return", TextTone.KEYWORD) in added
    assert ("60", TextTone.NUMBER) in added
    assert ("# doubled", TextTone.QUIET) in added
    plain = diff_block(display_code(), 80, is_open=False).lines
    for before, after in zip(plain, lines, strict=True):
        marked = ["".join(s.text for s in line.spans if s.look.surface in MARKS) for line in (before, after)]
        assert marked[0] == marked[1]
    assert {span.look.surface for span in lines[3].spans[2:]} == {Surface.ADDED, Surface.ADDED_WORDS}


def test_each_side_and_each_hunk_is_a_text_of_its_own() -> None:
    lines = coloured(display_code(), SPLIT_FROM)
    assert ("still = \"said\"'''", TextTone.STRING) in toned(lines[-1])
    assert toned(lines[3]).count(('"a"', TextTone.STRING)) == 2
    assert [text for text, tone in toned(lines[1]) if tone is TextTone.KEYWORD] == ["def", "def"]


def test_a_comment_on_a_marked_word_is_not_quiet() -> None:
    change = display_code("@@ -1 +1 @@\n-x = 1  # one day\n+x = 1  # two days")
    spans = [span for line in coloured(change, 80) for span in line.spans if span.look.surface in MARKS]
    assert spans
    assert all(span.look.tone is not TextTone.QUIET for span in spans)


@pytest.mark.parametrize(
    "change",
    [
        display_code(path="a.unknown"),
        display_code(path="notes.txt"),
        display_code("@@ -0,0 +1 @@\n+" + "x = 1;" * 500, "a.js"),
        display_code("@@ -0,0 +1,9999 @@\n" + "\n".join("+" + "x" * 900 for _ in range(MOST_COLOURED // 900 + 1))),
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
    change = display_code("\n".join(list(difflib.unified_diff(old, new, lineterm=""))[2:]), path)
    plain = diff_block(change, width, is_open=is_open).lines
    painted = coloured(change, width, is_open=is_open, slice_of=size)
    assert [(line.text, line.joint, line.margin, line.sides) for line in painted] == [
        (line.text, line.joint, line.margin, line.sides) for line in plain
    ]


async def test_a_diff_in_sight_gets_its_colours_and_nothing_moves() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(80, 20)) as pilot:
        call = call_record("p1", "patch", "{}", ToolStatus.SUCCESS, display=encode_display(display_code()))
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
