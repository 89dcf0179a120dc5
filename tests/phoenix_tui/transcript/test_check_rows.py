"""Rows below a diff about language servers: errors in red, a few while it is folded, and all else quiet."""

from __future__ import annotations

from engine.codec import decode_display, encode_display
from phoenix_tui.markdown.lines import StyledLine, TextTone, spans_width
from phoenix_tui.widgets.blocks.check_rows import check_rows
from phoenix_tui.widgets.blocks.diff import diff_block
from tools.contract import DiffDisplay
from tools.edit_checks import CodeProblem, EditCheck

PROBLEMS = tuple(CodeProblem(number, 5, f"name{number} is not defined", "Ruff", "F821") for number in range(1, 11))
FAILED = EditCheck("ruff", "a.py", PROBLEMS, 12, 1)


def texts(lines: list[StyledLine]) -> list[str]:
    return [line.text.rstrip() for line in lines]


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
