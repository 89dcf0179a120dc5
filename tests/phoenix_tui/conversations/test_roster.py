"""Position of a conversation in the list, and the text of its line."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.machine.messages import ToolCall
from engine.machine.states import (
    AwaitingApproval,
    AwaitingLlm,
    Errored,
    Idle,
    Requesting,
    Run,
    State,
    ToolExecuting,
    ToolRound,
)
from engine.records import ConversationSummary
from engine.records.runs import Totals
from phoenix_tui.widgets.roster import ORDER, Here, ListGroup, Live, arrange, compose, group_of, put_away

PID = 7
HERE = Here(wall=10_000.0, monotonic=500.0, pid=PID)
RUN = Run("r", 5)
CALL = ToolCall("c", "bash", "{}")
THINKS = AwaitingLlm(1, RUN, Requesting())
ASKS = AwaitingApproval(1, RUN, ToolRound("m", CALL), "why")
RUNS = ToolExecuting(1, RUN, ToolRound("m", CALL))
FAILED = Errored(1, "network", "no connection", retryable=True, run_id="r")


def summary(name: str = "a", **changes: Any) -> ConversationSummary:
    made = ConversationSummary(
        id=name,
        title=f"title of {name}",
        cwd=Path("/src/relay"),
        model="anthropic/claude-sonnet-5-5",
        state_name="idle",
        context_tokens=0,
        context_window=200_000,
        totals=Totals(),
        archived=False,
        unread=False,
        updated_at=9_000.0,
        message_count=4,
        owner_pid=None,
        last_status="success",
    )
    return replace(made, **changes)


def live(state: State, began: float = 0.0) -> Live:
    return Live(state, since=488.0, began=began)


@pytest.mark.parametrize(
    ("group", "changes", "state"),
    [
        (ListGroup.DONE, {}, None),
        (ListGroup.DONE, {}, Idle(1)),
        (ListGroup.READY, {"unread": True}, None),
        (ListGroup.READY, {"last_status": "cancelled"}, None),
        (ListGroup.READY, {"last_status": "interrupted"}, None),
        (ListGroup.READY, {"last_status": "failure"}, None),
        (ListGroup.READY, {"message_count": 0, "last_status": ""}, None),
        (ListGroup.WORKING, {}, THINKS),
        (ListGroup.WORKING, {}, RUNS),
        (ListGroup.NEEDS_YOU, {}, ASKS),
        (ListGroup.NEEDS_YOU, {}, FAILED),
        (ListGroup.NEEDS_YOU, {"state_name": "error"}, None),
        (ListGroup.NEEDS_YOU, {"state_name": "awaiting_approval", "owner_pid": 99}, None),
        (ListGroup.WORKING, {"state_name": "tool_executing", "owner_pid": 99}, None),
        (ListGroup.DONE, {"state_name": "tool_executing"}, None),
        (ListGroup.PINNED, {"pinned_at": 3.0}, ASKS),
    ],
)
def test_a_conversation_stands_where_its_need_puts_it(
    group: ListGroup, changes: dict[str, Any], state: State | None
) -> None:
    assert group_of(summary(**changes), live(state) if state is not None else None, PID) is group


def test_what_works_and_waits_stands_in_the_order_it_began_the_rest_newest_first() -> None:
    everything = [
        summary("old", updated_at=1.0),
        summary("new", updated_at=2.0),
        summary("works-second"),
        summary("works-first", updated_at=9_999.0),
        summary("asks-first"),
        summary("pin-b", pinned_at=20.0),
        summary("pin-a", pinned_at=10.0),
    ]
    at_work = {
        "works-second": live(RUNS, 60.0),
        "works-first": live(THINKS, 50.0),
        "asks-first": live(ASKS, 70.0),
    }
    assert [one.id for one in arrange(everything, at_work, PID)] == [
        "pin-a",
        "pin-b",
        "asks-first",
        "works-first",
        "works-second",
        "new",
        "old",
    ]


STATES = st.sampled_from([None, Idle(1), THINKS, RUNS, ASKS, FAILED])


@st.composite
def lists(draw: st.DrawFn) -> tuple[list[ConversationSummary], dict[str, Live]]:
    made: list[ConversationSummary] = []
    at_work: dict[str, Live] = {}
    for number in range(draw(st.integers(0, 30))):
        one = summary(
            f"c{number}",
            pinned_at=draw(st.sampled_from([0.0, 0.0, 5.0, 6.0])),
            unread=draw(st.booleans()),
            last_status=draw(st.sampled_from(["", "success", "failure", "cancelled"])),
            state_name=draw(st.sampled_from(["idle", "error", "awaiting_llm", "awaiting_approval"])),
            owner_pid=draw(st.sampled_from([None, PID, 99])),
            updated_at=float(draw(st.integers(0, 5))),
            message_count=draw(st.integers(0, 2)),
        )
        made.append(one)
        state = draw(STATES)
        if state is not None:
            at_work[one.id] = live(state, float(draw(st.integers(0, 3))))
    return made, at_work


@pytest.mark.slow
@given(lists(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_every_conversation_stands_once_in_groups_in_order_whatever_order_they_came_in(
    given_list: tuple[list[ConversationSummary], dict[str, Live]], chance: random.Random
) -> None:
    summaries, at_work = given_list
    placed = arrange(summaries, at_work, PID)
    assert sorted(one.id for one in placed) == sorted(one.id for one in summaries)
    ranks = [ORDER.index(one.group) for one in placed]
    assert ranks == sorted(ranks)
    for one in placed:
        whole = next(each for each in summaries if each.id == one.id)
        assert one.group is group_of(whole, at_work.get(one.id), PID)
    shuffled = list(summaries)
    chance.shuffle(shuffled)
    assert arrange(shuffled, at_work, PID) == placed


@pytest.mark.slow
@given(lists(), STATES)
@settings(max_examples=100, deadline=None)
def test_what_one_conversation_does_moves_no_other(
    given_list: tuple[list[ConversationSummary], dict[str, Live]], state: State | None
) -> None:
    summaries, at_work = given_list
    if not summaries:
        return
    changed = summaries[0].id
    after = {one: what for one, what in at_work.items() if one != changed}
    if state is not None:
        after[changed] = live(state, 9.0)

    def others(placed: dict[str, Live]) -> list[str]:
        return [one.id for one in arrange(summaries, placed, PID) if one.id != changed]

    assert others(at_work) == others(after)


def test_the_filter_wants_every_word_in_title_folder_model_or_id() -> None:
    everything = [summary("a", title="Fix the Relay"), summary("b", title="Notes", cwd=Path("/home/x/relay"))]
    assert [one.id for one in arrange(everything, {}, PID, "RELAY")] == ["a", "b"]
    assert [one.id for one in arrange(everything, {}, PID, "relay fix")] == ["a"]
    assert [one.id for one in put_away(everything, ListGroup.TRASH, "sonnet notes")] == ["b"]
    assert arrange(everything, {}, PID, "nothing") == []


@pytest.mark.parametrize(
    ("words", "changes", "state"),
    [
        ("", {}, None),
        ("unread", {"unread": True}, None),
        ("stopped", {"last_status": "cancelled"}, None),
        ("failed", {"state_name": "error"}, None),
        ("draft", {"has_draft": True}, None),
        ("unread", {"has_draft": True, "unread": True}, None),
        ("open elsewhere", {"owner_pid": 99}, None),
        ("works elsewhere", {"owner_pid": 99, "state_name": "awaiting_llm"}, None),
        ("asks elsewhere", {"owner_pid": 99, "state_name": "awaiting_approval"}, None),
        ("bash 12s", {}, RUNS),
        ("asks", {}, ASKS),
    ],
)
def test_a_line_says_in_words_what_a_conversation_does(
    words: str, changes: dict[str, Any], state: State | None
) -> None:
    made = compose(summary(**changes), live(state) if state is not None else None, HERE)
    assert made.label.text == words


def test_a_line_knows_folder_model_context_cost_and_age() -> None:
    row = compose(summary(context_tokens=160_000, totals=Totals(cost_usd=0.4)), None, HERE)
    assert (row.folder, row.model, row.context, row.cost, row.when) == (
        "/src/relay",
        "claude-sonnet-5-5",
        "80%",
        "$0.40",
        "16m",
    )
    assert row.near_full
    assert compose(summary(put_away_at=9_930.0), None, HERE).when == "1m"
    assert [compose(summary(updated_at=at), None, HERE).when for at in (10_005.0, 9_941.0, 9_940.0)] == [
        "now",
        "now",
        "1m",
    ], "what is looked at once a minute names no seconds"


def test_a_hostile_title_becomes_plain_words() -> None:
    row = compose(summary(title="a\x1b[31m\nb\u202e" + "x" * 99), None, HERE)
    assert "\x1b" not in row.title
    assert "\n" not in row.title
    assert len(row.title) <= 50
