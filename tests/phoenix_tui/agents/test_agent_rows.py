"""A sub-agent as a row: what it says at which width, and since when."""

from __future__ import annotations

from typing import Final

import pytest
from msgspec.structs import replace

from engine.machine.states import AgentOutcome, AgentStatus, AwaitingLlm, Idle, Requesting, RetryWait, State
from engine.updates import AgentView
from phoenix_tui.linear.work import row as row_in_words
from phoenix_tui.widgets.agent_panel import agent_rows, measure_elapsed, rows_each
from tests.support.fake_agents import ASKS, RUN, RUNS, agent

NOW: Final = 1_000.0
WORKS: Final = agent(
    "b1", "find the tests", NOW - 41, RUNS, activity="bash make", model="anthropic/claude-sonnet-5-5", turn=4,
    last_output=NOW - 2,
)  # fmt: skip


def drawn(*views: AgentView, width: int, each: int = 1) -> list[str]:
    rows = agent_rows(views, width, NOW, plain=False, each=each)
    assert all(row.cell_length <= width for row in rows)
    return [row.plain for row in rows]


def words(row: str) -> list[str]:
    """Words of a row, without the blanks between its columns."""
    return [word.strip() for word in row.split("  ") if word.strip()]


def test_two_rows_say_all_there_is_to_know_beside_the_list_at_120_columns() -> None:
    width = 91
    assert rows_each([WORKS], width, 13) == 2
    assert [words(row) for row in drawn(WORKS, width=width, each=2)] == [
        ["◇ find the tests", "turn 4/20", "41 s / 5 m", "12k", "$0.02"],
        ["▸ bash make", "explore", "sonnet-5-5", "2s ago"],
    ]


@pytest.mark.parametrize(
    ("width", "figures"),
    [
        (140, "explore  sonnet-5-5  turn 4/20  41 s / 5 m  12k  $0.02  2s ago"),
        (116, "explore  sonnet-5-5  4/20  41 s / 5 m  12k  $0.02  2s ago"),
        (91, "4/20  41 s / 5 m  12k  $0.02"),
        (78, "4/20  41 s  12k"),
        (58, "4/20  41 s"),
    ],
)
def test_one_row_says_what_it_has_room_for(width: int, figures: str) -> None:
    (row,) = drawn(WORKS, width=width)
    assert row.startswith("◇ find the tests  ▸ bash make  ")
    assert row.endswith(f"  {figures}")
    assert len(row) == width


def test_many_of_them_have_one_row_each() -> None:
    assert rows_each([WORKS] * 7, 91, 13) == 1
    assert rows_each([WORKS], 140, 13) == 1, "one row holds everything"


def test_silence_is_said_where_no_column_says_it() -> None:
    silent = agent("b1", "find", NOW - 95, RUNS, activity="bash make", last_output=NOW - 95)
    assert "silent 1 m 35 s · ▸ bash make" in drawn(silent, width=78)[0]
    assert "silent" not in (row := drawn(silent, width=116)[0])
    assert row.endswith("1m ago")


def test_the_time_of_one_that_asks_stands_still() -> None:
    asks = agent("b1", "find", NOW - 41, ASKS, asked=NOW - 30, activity="bash make")
    assert measure_elapsed(asks, NOW) == 11.0
    assert "asks: bash make" in drawn(asks, width=78)[0]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (AwaitingLlm(1, RUN, Requesting()), "thinking"),
        (AwaitingLlm(1, RUN, RetryWait(2.0, "rate limited")), "retrying: rate limited"),
        (Idle(0), "waiting to start"),
    ],
)
def test_what_it_does_is_said_in_words(state: State, words: str) -> None:
    assert words in drawn(agent("b1", "find", NOW - 1, state), width=78)[0]


def test_in_lines_it_is_all_said_in_words() -> None:
    silent = replace(WORKS, last_output=NOW - 30)
    assert row_in_words(silent, NOW) == (
        "find the tests, explore, runs bash make, turn 4 of 20, 41 s of 5 m, 12k tokens, $0.02, "
        "model anthropic/claude-sonnet-5-5, silent for 30 s"
    )


def test_an_end_is_its_first_words_and_what_it_took() -> None:
    failed = AgentOutcome("b1", AgentStatus.TIMEOUT, "half", "timed out")
    ended = agent("b1", "find", NOW - 60, ended=NOW - 2, outcome=failed, turn=21)
    (drawn_row,) = drawn(ended, width=91)
    assert words(drawn_row) == ["✗ find", "timed out (partial kept)", "20/20 +1", "58 s", "12k", "$0.02"]


def test_names_are_whole_in_a_sheet_of_120_cells() -> None:
    views = [replace(WORKS, task="Compare the docs with the code of every module", activity="bash " + "make " * 20)]
    each = rows_each(views, 118, 13)
    assert "Compare the docs with the code of every module" in drawn(*views, width=118, each=each)[0]
