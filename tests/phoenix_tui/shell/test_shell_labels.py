"""Every state has its own words."""

from __future__ import annotations

import pytest

from engine.machine.messages import ToolCall
from engine.machine.states import (
    RETRIES,
    AgentOutcome,
    AgentStatus,
    AgentTask,
    AwaitingApproval,
    AwaitingLlm,
    AwaitingSubagents,
    Cancelling,
    Compacting,
    CompactingContext,
    Completed,
    Errored,
    Failed,
    Idle,
    Requesting,
    RetryWait,
    Routing,
    Run,
    State,
    ToolExecuting,
    ToolRound,
)
from phoenix_tui.text.labels import StatusDetails, age, clock, invitation, label, money, short_state, tokens
from phoenix_tui.widgets.status_line import ContextUse, short_meter, warn_crossing, wide_meter

RUN = Run("r", 50)
BASH = ToolCall("1", "bash", "{}")
LS = ToolCall("2", "list_files", "{}")
ROUND = ToolRound("m", BASH, (LS, LS))

CASES: list[tuple[State, StatusDetails, str]] = [
    (Idle(0), StatusDetails(), "ready"),
    (Idle(0), StatusDetails(resumable=True), "ready · interrupted, Enter resumes"),
    (Idle(0), StatusDetails(stopped_after=12.4), "ready · stopped after 12 s"),
    (AwaitingLlm(1, RUN, Requesting()), StatusDetails(4), "thinking… 4 s"),
    (AwaitingLlm(1, Run("r", 50, 3), Requesting()), StatusDetails(4), "thinking… 4 s · step 3/50"),
    (
        AwaitingLlm(1, RUN, Requesting()),
        StatusDetails(4, paced_until=12.0, now=10.7),
        "paced: 2 s to stay below the rate limit",
    ),
    (AwaitingLlm(1, RUN, Requesting()), StatusDetails(4, paced_until=12.0, now=12.0), "thinking… 4 s"),
    (AwaitingLlm(1, RUN, Requesting()), StatusDetails(4, writing=True, rate=41.2), "writing… 41 tok/s"),
    (AwaitingLlm(1, RUN, Requesting()), StatusDetails(4, drafting="bash"), "preparing bash… 4 s"),
    (AwaitingLlm(1, RUN, Requesting(), continuations=2), StatusDetails(4), "continuing (output limit) 2/3"),
    (
        AwaitingLlm(1, RUN, RetryWait(2.0, "rate limited"), 2),
        StatusDetails(0.6),
        f"retrying 2/{RETRIES} in 1.4 s: rate limited",
    ),
    (AwaitingLlm(1, RUN, Routing()), StatusDetails(1), "routing… 1 s"),
    (AwaitingLlm(1, RUN, CompactingContext()), StatusDetails(1), "compacting… 1 s"),
    *(
        (
            AwaitingLlm(1, RUN, phase),
            StatusDetails(1, paced_until=5.0, now=1.0),
            "paced: 4 s to stay below the rate limit",
        )
        for phase in (CompactingContext(), Routing())
    ),
    (ToolExecuting(1, RUN, ROUND), StatusDetails(12), "bash 12 s (+2 queued)"),
    (AwaitingApproval(1, RUN, ROUND, "why"), StatusDetails(), "bash asks · 1 of 3"),
    (
        AwaitingSubagents(
            1, RUN, ROUND, (AgentTask("a", "x"), AgentTask("b", "y")), (AgentOutcome("b", AgentStatus.SUCCESS),)
        ),
        StatusDetails(3),
        "sub-agents 1/2 done · 3 s",
    ),
    (Cancelling(1, RUN, ROUND), StatusDetails(), "cancelling…"),
    (Compacting(1), StatusDetails(2), "compacting… 2 s"),
    (Compacting(1), StatusDetails(2, decides=True), "the summary needs your decision"),
    (Idle(0), StatusDetails(resumable=True, stopped_after=12.4), "ready · stopped after 12 s"),
    (Errored(1, "network", "The line is down.", True, "r"), StatusDetails(), "no connection"),
    (Errored(1, "auth", "No key.", False, "r"), StatusDetails(), "no valid key"),
    (Errored(1, "unheard of", "Hm.", False, "r"), StatusDetails(), "failed"),
    (Completed(1, "x"), StatusDetails(), "result submitted"),
    (Failed(1, "timeout", "Too long.", "half"), StatusDetails(), "Too long. (partial kept)"),
]


@pytest.mark.parametrize(("state", "moment", "words"), CASES)
def test_a_state_says_what_it_does(state: State, moment: StatusDetails, words: str) -> None:
    assert label(state, moment).text == words


def test_no_two_kinds_of_state_share_their_words() -> None:
    busy = {
        type(state): label(state, StatusDetails()).text for state, _, _ in CASES if not isinstance(state, Compacting)
    }
    assert len(set(busy.values())) == len(busy)


def test_a_row_of_the_list_is_short_in_every_state() -> None:
    assert all(len(short_state(state, 100_000).text) <= 16 for state, _, _ in CASES)


def test_the_list_says_writing_as_the_status_line_does() -> None:
    state = AwaitingLlm(1, RUN, Requesting())
    assert short_state(state, 4).text == "thinking 4s"
    assert short_state(state, 4, writing=True).text == "writing 4s"


def test_the_empty_composer_says_what_can_be_written_now() -> None:
    assert invitation(Idle(0), begun=False) == "Type to start"
    assert invitation(Idle(0), begun=True) == "Reply"
    assert invitation(AwaitingLlm(1, RUN, Requesting()), begun=True) == "Type your next message"
    assert invitation(AwaitingApproval(1, RUN, ROUND, ""), begun=True) == "Press a letter to answer the question above"


def test_an_escape_sequence_in_an_error_does_not_reach_the_label() -> None:
    assert "\x1b" not in label(Errored(1, "x", "bad \x1b]52;c;aGk=\x07 \x1b[2J end", True, "r"), StatusDetails()).text


def test_times_counts_and_costs_are_short() -> None:
    assert [clock(0), clock(59.9), clock(72), clock(7500)] == ["0 s", "59 s", "1 m 12 s", "2 h 5 m"]
    assert [age(5), age(700), age(7200), age(200_000)] == ["5s", "11m", "2h", "2d"]
    assert [tokens(950), tokens(4200), tokens(84_000), tokens(1_200_000)] == ["950", "4.2k", "84k", "1.2M"]
    assert [money(None), money(0), money(0.004), money(1.234)] == ["$?", "", "<$0.01", "$1.23"]


def test_the_meter_names_an_estimate_and_an_unknown_window() -> None:
    assert short_meter(ContextUse(84_000, 200_000)) == "ctx 42%"
    assert short_meter(ContextUse(84_000, 200_000, estimated=True)) == "ctx ~42%"
    assert short_meter(ContextUse(84_000, 0)) == "ctx 84k"
    assert short_meter(ContextUse()) == ""
    assert wide_meter(ContextUse(84_000, 200_000), plain=False) == "ctx ▰▰▰▰▱▱▱▱▱▱ 42% 84k/200k"


def test_a_crossing_is_told_once_upwards_and_again_after_the_way_down() -> None:
    low, high, full = (ContextUse(percent * 1000, 100_000) for percent in (60, 80, 95))
    assert "80 %" in warn_crossing(low, high)
    assert warn_crossing(high, high) == ""
    assert "95 %" in warn_crossing(high, full)
    assert warn_crossing(full, low) == ""
    assert "80 %" in warn_crossing(low, high)
