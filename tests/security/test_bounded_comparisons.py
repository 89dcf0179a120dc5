"""SECURITY S7: comparing two lines took cubic time on repeated words, 17 s for a pair of them."""

from __future__ import annotations

import difflib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phoenix_tui.widgets.blocks.diff_rows import MOST_STEPS, DiffRow, compare_lines, diff_rows, mark_runs
from tools.comparing import LONGEST_NAME, MatchingBlock, Steps, match_blocks, near_names
from tools.files.content import diff_display, diff_lines

WORDS = st.lists(st.sampled_from("aab "), max_size=12)
FEW = 5_000


@given(WORDS, WORDS)
def test_with_enough_steps_the_blocks_are_those_of_the_library(old: list[str], new: list[str]) -> None:
    found = match_blocks(old, new, Steps(10_000))
    assert found.is_whole
    assert [tuple(block) for block in found.blocks] == [
        tuple(block) for block in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    ]


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(1, 4), st.integers(1, 60))
def test_with_few_steps_every_block_is_true_and_no_step_is_owed(steps: int, kinds: int, size: int) -> None:
    words = random.Random(steps).choices("abcd"[:kinds], k=2 * size)
    old, new, left = words[:size], words[size:], Steps(steps)
    found = match_blocks(old, new, left)
    assert left.left >= 0
    assert found.blocks[-1] == MatchingBlock(size, size, 0)
    for block in found.blocks:
        assert old[block.old : block.old + block.size] == new[block.new : block.new + block.size]


@pytest.mark.parametrize("unit", ["a b ", "a ", ") ", "e\u0301 ", "\\\\ "])
def test_a_hostile_pair_of_lines_has_no_marks_and_costs_its_share(unit: str) -> None:
    line = (unit * 1_000)[:990]
    other = line.replace(unit[0], "z", 100)[::-1]
    steps = Steps(FEW)
    assert compare_lines(line, other, steps) is None
    assert 0 <= steps.left <= FEW


def test_the_pairs_of_a_diff_share_their_steps_and_lose_their_marks_alone() -> None:
    hostile = [*[f"-{'a b ' * 240}"] * 200, *[f"+{'a c ' * 240}"] * 200]
    rows = list(diff_rows("\n".join(["@@ -1,200 +1,200 @@", *hostile])))
    shown = [row for old, new in mark_runs(rows) for row in (*old, *new)]
    assert [row.row for row in shown] == rows
    assert all("".join(piece.text for piece in row.pieces) == row.row.text for row in shown)
    assert MOST_STEPS < 500 * 500 * 200


def test_an_honest_line_of_a_thousand_characters_keeps_its_marks() -> None:
    words = [f"word{number % 70}" for number in range(140)]
    old, new = " ".join(words)[:1_000], " ".join([*words[:60], "other", *words[61:]])[:1_000]
    pieces = compare_lines(old, new, Steps(MOST_STEPS))
    assert pieces is not None
    assert [piece.text for piece in pieces[1] if piece.changed] == ["other"]


def test_a_file_of_few_different_lines_has_a_true_diff_within_its_steps() -> None:
    random_lines = random.Random(7)
    old = "".join(f"{random_lines.randrange(3)}\n" for _ in range(3_500))
    new = "".join(f"{random_lines.randrange(3)}\n" for _ in range(3_500))
    rows = [row for row in diff_rows(diff_display("a", old, new).diff) if row.sign in "+- "]
    assert _file(rows, "- ") == old
    assert _file(rows, "+ ") == new


def _file(rows: list[DiffRow], signs: str) -> str:
    return "".join(f"{row.text}\n" for row in rows if row.sign in signs)


@given(WORDS, WORDS, st.integers(0, 3))
def test_unified_lines_are_those_of_the_library(old: list[str], new: list[str], context: int) -> None:
    ours = diff_lines(old, new, "was", "now", context)
    assert bool(ours) == (old != new)
    removed = [line[1:] for line in ours[2:] if line.startswith("-")]
    added = [line[1:] for line in ours[2:] if line.startswith("+")]
    assert len(old) - len(removed) == len(new) - len(added)
    assert ours[:2] == (["--- was", "+++ now"] if ours else [])


def test_near_names_are_found_and_long_ones_are_not_compared() -> None:
    known = ["read_file", "write_file", "search"]
    assert near_names("read_fil", known) == ["read_file", "write_file"]
    assert near_names("raed_file", known, 1) == ["read_file"]
    assert near_names("nothing", known) == []
    assert near_names("a" * (LONGEST_NAME + 1), ["a" * (LONGEST_NAME + 1)]) == []
    assert near_names("ab" * 50, ["ba" * 50] * 5_000, 1) in (["ba" * 50], [])
