"""One line of the list: aligned, exactly as wide as it shall be, nothing halved."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from phoenix_tui.text.labels import AGENTS, ASKING, DONE, FAILED, READY, RUNNING, STOPPED, THINKING, UNREAD, Label
from phoenix_tui.widgets.conversation_list import Ink, Signs, choose_columns, pieces, shorten, tail_of
from phoenix_tui.widgets.roster import RosterRow

SIGNS = Signs(" ", Ink.TEXT, "○")


def row(title: str = "api-retry", words: str = "") -> RosterRow:
    label = Label(READY, words)
    return RosterRow(
        "a", label, title, "~/src/relay", "claude-sonnet-5-5", "42%", "$0.18", "9m", near_full=False, unread=False
    )


def line(row: RosterRow, width: int) -> str:
    return "".join(text for text, _ in pieces(row, SIGNS, width))


def test_a_narrow_line_ends_with_state_or_context_and_age() -> None:
    assert line(row(), 28) == " ○ api-retry         42% 9m "
    assert line(row(words="unread"), 28) == " ○ api-retry      unread 9m "


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_the_progress_of_a_todo_list_is_at_the_end_of_the_title(width: int) -> None:
    plain, with_list = line(row(), width), line(replace(row(), progress="3/7"), width)
    assert cell_len(with_list) == cell_len(plain) == width
    assert " 3/7 " in with_list
    assert with_list.replace("3/7", "   ") == plain
    long = line(replace(row("word " * 20), progress="3/7"), width)
    assert cell_len(long) == width
    assert re.search(r"… +3/7 ", long)


def test_a_row_without_room_for_it_keeps_its_title() -> None:
    assert line(replace(row(), progress="3/7"), 20) == line(row(), 20)


def test_that_it_was_stopped_gives_way_to_a_title_that_needs_the_room() -> None:
    stopped = Label(STOPPED, "stopped")
    assert line(replace(row(), label=stopped), 28) == " ○ api-retry     stopped 9m "
    title = "Why does test_backoff fail?"
    assert line(replace(row(title), label=stopped), 28) == " ○ Why does test_backof… 9m "
    assert line(row(title, "asks"), 28) == " ○ Why does test_back… asks "


@pytest.mark.parametrize(
    ("label", "kept"),
    [
        (Label(THINKING, "thinking 12s"), "12s"),
        (Label(RUNNING, "tickets: search 3m"), "3m"),
        (Label(AGENTS, "2/3 agents"), "2/3"),
        (Label(ASKING, "asks elsewhere"), "asks"),
        (Label(READY, "draft"), "draft"),
        (Label(FAILED, "failed"), "failed"),
        (Label(UNREAD, "unread"), "9m"),
        (Label(DONE, "result"), "9m"),
        (Label(THINKING, "compacting"), "9m"),
        (Label(READY, ""), "9m"),
    ],
)
def test_every_state_leaves_a_long_title_the_room_and_says_what_its_sign_does_not(label: Label, kept: str) -> None:
    title = "Why does test_backoff fail?"
    shown = line(replace(row(title), label=label), 28)
    assert cell_len(shown) == 28
    assert shown.endswith(f"… {kept} ")
    assert shown.startswith(" ○ Why does test_")


def test_a_long_state_is_said_short_before_the_age_gives_way() -> None:
    title = "Why does test_backoff fail?"
    assert line(replace(row(title), label=Label(RUNNING, "tickets: search 3m")), 44).endswith("?        3m 9m ")


def test_how_full_the_window_is_gives_way_unless_it_is_nearly_full() -> None:
    title = "Why does test_backoff fail?"
    assert line(row(title), 28).endswith("… 9m ")
    assert line(replace(row(title), near_full=True), 28).endswith("… 42% ")


@pytest.mark.parametrize(
    ("width", "fields"),
    [
        (50, ("state", "when")),
        (57, ("state", "cost", "when")),
        (70, ("state", "folder", "cost", "when")),
        (74, ("state", "folder", "context", "cost", "when")),
        (92, ("state", "folder", "model", "context", "cost", "when")),
    ],
)
def test_a_wider_line_has_more_columns(width: int, fields: tuple[str, ...]) -> None:
    assert tuple(column.field for column in choose_columns(width)) == fields


def test_columns_stand_below_one_another_whatever_the_title() -> None:
    lines = [line(row(title), 100) for title in ("a", "日本語のとても長いタイトルがここにある", "x" * 50)]
    assert {cell_len(text[: text.rindex("$0.18")]) for text in lines} == {90}


CLEAN = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Mn", "Me", "Cf"))


@given(st.text(CLEAN, max_size=60), st.integers(24, 200))
@settings(max_examples=100, deadline=None)
def test_a_line_is_exactly_as_wide_as_it_shall_be(title: str, width: int) -> None:
    assert cell_len(line(row(title, "unread"), width)) == width


@given(st.text(CLEAN, max_size=40), st.integers(1, 30))
@settings(max_examples=100, deadline=None)
def test_shortened_text_fills_its_cells(text: str, cells: int) -> None:
    assert cell_len(shorten(text, cells)) == cells


def test_a_folder_keeps_its_end() -> None:
    assert tail_of("~/src/deep/below/relay", 14) == "…/below/relay "
    assert tail_of("~/src/terraform-modules", 14) == "terraform-mod…"
    assert tail_of("~/src/relay", 14) == "~/src/relay   "


@pytest.mark.parametrize("width", [58, 60, 90, 140])
def test_a_long_title_goes_on_over_columns_that_say_nothing_of_its_row(width: int) -> None:
    title = "the docs build warns 214 times in a row"
    silent = replace(row(title), context="", cost="", folder="", model="")
    assert line(silent, width).startswith(f" ○ {title} ")
    assert line(silent, width).index("9m") == line(row(title, "unread"), width).index("9m")
    paid = replace(silent, cost="$0.18")
    assert line(paid, width).index("$0.18") == line(row(title, "unread"), width).index("$0.18")


def test_a_title_gives_way_to_the_state_beside_it() -> None:
    title = "the docs build warns 214 times in a row"
    assert line(row(title, "unread"), 58).startswith(" ○ the docs build warns 214 ti… unread ")
