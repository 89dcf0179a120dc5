"""Rows of sheets: as wide as they may be and no wider, their columns below one another."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace
from rich.cells import cell_len

from engine.records import SearchHit
from engine.search import Speaker
from phoenix_tui.features.front_end import PageRow
from phoenix_tui.modals.base import MEASURE
from phoenix_tui.modals.rows_sheet import PickerRow, PickerSheet, RowsSheet
from phoenix_tui.modals.search_sheet import hit_rows
from phoenix_tui.widgets.line_input import LineInput
from tests.phoenix_tui.shell.conftest import OpenShell

COMMANDS = (("permissions", "MODE"), ("resume", "TITLE|ID"), ("new", ""))
NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC).timestamp()


def hit(snippet: str, moment: float) -> SearchHit:
    return SearchHit("c", "title", Path("/src"), 1, Speaker.ASSISTANT, snippet, moment)


async def test_rows_without_remarks_are_not_cut_where_they_fit(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        choices = [PickerRow("a", "x" * 70), PickerRow("b", "short"), PickerRow("c", "日本語" * 20)]
        shell.app.push_screen(PickerSheet("Turns", choices))
        await shell.until(lambda: "x" * 70 in shell.text and "short" in shell.text)
        rows = [row for row in shell.text.split("\n") if "x" * 70 in row or "short" in row]
        assert [row for row in rows if "…" in row] == []
        assert sum("…" in row for row in shell.text.split("\n") if "日本語" in row) == 1


async def test_words_take_the_room_that_short_remarks_leave(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        choices = [PickerRow("a", "x" * 60, "run"), PickerRow("b", "short", "yours")]
        shell.app.push_screen(PickerSheet("Hooks", choices))
        await shell.until(lambda: "yours" in shell.text)
        (long,) = [row for row in shell.text.split("\n") if "xxx" in row]
        assert f"{'x' * 60}  run" in long


def test_the_speakers_of_hits_stand_below_one_another_whatever_their_dates() -> None:
    moments = [NOW - 60, NOW - 3 * 86_400 + 40_000, NOW - 20 * 86_400, NOW - 800 * 86_400]
    rows = [hit_rows(hit("said", moment), ["said"], 80, chosen=False, now=NOW).plain.split("\n") for moment in moments]
    assert len({heading.index("agent") for heading, _ in rows}) == 1
    assert {cell_len(row) for pair in rows for row in pair} == {80}


def test_a_hit_leaves_out_where_code_begins_and_ends_but_not_what_was_looked_for() -> None:
    snippet = "it is so: ```python with inner: flush() ``` Two tests"
    shown = hit_rows(hit(snippet, NOW), ["inner"], 80, chosen=False, now=NOW).plain.split("\n")[1]
    assert shown.strip() == "it is so: with inner: flush() Two tests"
    shown = hit_rows(hit(snippet, NOW), ["python"], 80, chosen=False, now=NOW).plain.split("\n")[1]
    assert shown.strip() == snippet


def test_a_long_folder_gives_way_to_who_spoke_and_when() -> None:
    far = replace(hit("said", NOW), cwd=Path("/srv") / ("a-long-folder-" * 12))
    first = hit_rows(far, ["said"], 150, chosen=False, now=NOW).plain.split("\n")[0]
    near = hit_rows(hit("said", NOW), ["said"], 150, chosen=False, now=NOW).plain.split("\n")[0]
    assert first[-18:] == near[-18:]
    assert "a-long-folder-" in first
    assert "…" in first


def test_what_is_shown_of_a_long_text_begins_with_a_whole_word() -> None:
    text = (
        "It is the order of the two locks in the outer of both, and of the many others, " * 2
        + "flush takes the inner one"
    )
    shown = hit_rows(hit(text, NOW), ["inner"], 80, chosen=False, now=NOW).plain.split("\n")[1].strip()
    assert shown.startswith("…")
    assert text[text.index(shown[1:20]) - 1] == " "
    assert "inner" in shown


async def test_what_may_follow_a_command_stands_in_a_column_of_its_own(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        entries = [PageRow("", one, f"/{one}", "does it", argument=what) for one, what in COMMANDS]
        shell.app.push_screen(RowsSheet("Help", entries, ""))
        await shell.until(lambda: "/resume" in shell.text)
        rows = [row for row in shell.text.split("\n") if "does it" in row]
        assert {row.index(what) for row, (_, what) in zip(rows, COMMANDS, strict=True) if what} == {3 + 14}
        assert len({row.index("does it") for row in rows}) == 1


async def test_a_sheet_stands_beside_the_list_and_has_one_measure(open_shell: OpenShell) -> None:
    for size in ((80, 24), (120, 40), (160, 50), (203, 60), (240, 70)):
        async with open_shell(size) as shell:
            shell.engine.seed("one", messages=2)
            column = shell.screen.query_one("#conversation").region
            shell.app.push_screen(RowsSheet("Help", [PageRow("", "k", "/key", "does it", "at the end")], ""))
            await shell.until(lambda: "does it" in shell.text)
            sheet, line = shell.top.query_one(".sheet").region, shell.top.query_one(LineInput).region
            assert (sheet.x, sheet.right) == (column.x, column.right)
            row = next(row for row in shell.text.split("\n") if "at the end" in row)
            end = cell_len(row[: row.index("at the end") + len("at the end")])
            assert end == line.right == min(sheet.x + 1 + MEASURE, sheet.right - 1)


async def test_a_remark_has_the_room_that_the_meaning_leaves(open_shell: OpenShell) -> None:
    async with open_shell((80, 24)) as shell:
        remark = "light or dark, like the terminal"
        shell.app.push_screen(RowsSheet("Everything", [PageRow("", "k", "theme", "colours", remark)], ""))
        await shell.until(lambda: "theme" in shell.text and remark in shell.text)
