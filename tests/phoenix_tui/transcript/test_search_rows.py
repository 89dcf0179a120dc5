"""The row of a web search: the words that were searched for, and the number of results."""

from __future__ import annotations

from engine.machine.messages import ToolStatus
from phoenix_tui.widgets.blocks.tool_row import tool_block
from phoenix_tui.widgets.blocks.tool_view import ToolView
from tools.contract import PlainDisplay

SHOWN = PlainDisplay("2 results\nFirst  https://a.example/\nSecond  https://b.example/")


def drawn(display: PlainDisplay | None, status: ToolStatus = ToolStatus.SUCCESS, *, is_open: bool = False) -> list[str]:
    view = ToolView("c", "web_search", "new things", status, text="failed", display=display, duration=2.0)
    block = tool_block(view, 60, is_open=is_open)
    return [line.text.rstrip() for line in (*block.lines, *block.rows)]


def test_a_closed_row_has_the_words_and_the_number_of_results() -> None:
    (row,) = drawn(SHOWN)
    assert row.strip().startswith("✓ web_search  new things")
    assert row.endswith("2 results · 2.0s")


def test_an_open_row_lists_them() -> None:
    head, *lines = drawn(SHOWN, is_open=True)
    assert "results" not in head
    assert [line.strip("│ ") for line in lines] == SHOWN.text.split("\n")


def test_hostile_numbers_are_short_and_clean() -> None:
    (row,) = drawn(PlainDisplay("\x1b[2J" + "9" * 500))
    assert "\x1b" not in row
    assert len(row) <= 60


def test_a_failed_search_shows_its_reason() -> None:
    assert any("failed" in line for line in drawn(None, ToolStatus.ERROR))
