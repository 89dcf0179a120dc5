"""The list of conversations: position, groups and the text of a line."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

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
from phoenix_tui.text.labels import (
    AGENTS,
    ASKING,
    DONE,
    FAILED,
    READY,
    RUNNING,
    STOPPED,
    THINKING,
    UNREAD,
    Label,
    ListGroup,
)
from phoenix_tui.widgets.conversation_list import Ink, Signs, choose_columns, heads, path_within, pieces, shorten
from phoenix_tui.widgets.roster import (
    ORDER,
    Here,
    ListModel,
    Live,
    RosterRow,
    arrange,
    compose,
    group_of,
    names,
    put_away,
)
from tests.support.clocks import SteppedClock

PID = 7
HERE = Here(wall=10_000.0, monotonic=500.0, pid=PID)
RUN = Run("r", 5)
CALL = ToolCall("c", "bash", "{}")
THINKS = AwaitingLlm(1, RUN, Requesting())
ASKS = AwaitingApproval(1, RUN, ToolRound("m", CALL), "why")
RUNS = ToolExecuting(1, RUN, ToolRound("m", CALL))
UNREACHABLE = Errored(1, "network", "no connection", retryable=True, run_id="r")


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
        (ListGroup.RECENT, {}, None),
        (ListGroup.RECENT, {}, Idle(1)),
        (ListGroup.RECENT, {"unread": True}, None),
        (ListGroup.STOPPED, {"last_status": "cancelled"}, None),
        (ListGroup.STOPPED, {"last_status": "interrupted"}, None),
        (ListGroup.STOPPED, {"last_status": "failure"}, None),
        (ListGroup.STOPPED, {"unread": True, "last_status": "failure"}, None),
        (ListGroup.RECENT, {"message_count": 0, "last_status": ""}, None),
        (ListGroup.WORKING, {}, THINKS),
        (ListGroup.WORKING, {}, RUNS),
        (ListGroup.NEEDS_YOU, {}, ASKS),
        (ListGroup.NEEDS_YOU, {}, UNREACHABLE),
        (ListGroup.NEEDS_YOU, {"state_name": "error"}, None),
        (ListGroup.NEEDS_YOU, {"state_name": "awaiting_approval", "owner_pid": 99}, None),
        (ListGroup.WORKING, {"state_name": "tool_executing", "owner_pid": 99}, None),
        (ListGroup.STOPPED, {"state_name": "tool_executing"}, None),
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


STATES = st.sampled_from([None, Idle(1), THINKS, RUNS, ASKS, UNREACHABLE])


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
        ("interrupted", {"state_name": "tool_executing"}, None),
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


def test_a_title_that_is_cut_says_so() -> None:
    assert compose(summary(title="x" * 50), None, HERE).title == "x" * 50
    assert compose(summary(title="x" * 51), None, HERE).title == "x" * 49 + "…"


WORKS = Live(AwaitingLlm(1, Run("r", 5), Requesting()), 0.0, began=1.0)
RESTS = Live(Idle(1), 0.0)


def summaries(count: int) -> list[ConversationSummary]:
    return [
        ConversationSummary(
            f"c{n}", f"t{n}", Path("/"), "m", "idle", 0, 0, Totals(), False, False, float(n), 2, None, 0.0, "success"
        )
        for n in range(count)
    ]


def model(count: int, height: int = 10) -> ListModel:
    made = ListModel(clock=SteppedClock())
    made.resize(height)
    made.fill(summaries(count), {}, "")
    made.arrange()
    return made


def test_the_row_under_the_cursor_keeps_its_place_on_the_screen() -> None:
    made = model(200)
    made.step(100)
    chosen, row = made.chosen, made.row
    made.fill(summaries(200), {f"c{n}": WORKS for n in range(5)}, "")
    made.arrange()
    assert (made.chosen, made.row) == (chosen, row)


def test_a_list_that_nobody_walks_through_stays_at_its_top_and_keeps_its_first_heading() -> None:
    made = model(200)
    made.fill(summaries(200), {}, "c195")
    made.arrange("c195", at_top=True)
    made.fill(summaries(200), {"c3": WORKS}, "c195")
    made.arrange("c195", at_top=True)
    assert (made.top, made.chosen) == (0, "c195")
    assert made.row > 1
    made.roll(1)
    rolled = made.top
    made.arrange("c195", at_top=True)
    assert made.top == rolled > 0


def test_its_neighbour_takes_over_for_one_that_is_gone() -> None:
    made = model(5)
    made.step(1)
    assert made.chosen == "c3"
    made.fill([one for one in summaries(5) if one.id != "c3"], {}, "")
    made.arrange()
    assert made.chosen == "c2"


def test_only_what_is_in_view_is_put_into_words() -> None:
    made = model(5_000, height=30)
    assert len(made.visible()) == 30
    made.step(9_999)
    assert made.chosen == "c0"
    assert len(made.visible()) == 30


def test_marks_of_conversations_that_are_gone_go_too() -> None:
    made = model(3)
    made.mark()
    made.mark()
    marked = made.targets
    assert marked == ("c2", "c1")
    made.fill(summaries(2), {}, "")
    assert made.targets == ("c1",)


@given(
    st.integers(1, 40),
    st.integers(1, 12),
    st.lists(
        st.one_of(
            st.tuples(st.just("step"), st.integers(-50, 50)),
            st.tuples(st.just("works"), st.integers(0, 39)),
            st.tuples(st.just("rests"), st.integers(0, 39)),
            st.tuples(st.just("pins"), st.integers(0, 39)),
            st.tuples(st.just("goes"), st.integers(0, 39)),
            st.tuples(st.just("resize"), st.integers(1, 12)),
            st.tuples(st.just("find"), st.integers(0, 9)),
        ),
        max_size=25,
    ),
)
@settings(max_examples=80, deadline=None)
def test_whatever_happens_the_cursor_is_in_view_and_stays_on_its_conversation(
    count: int, height: int, steps: list[tuple[str, int]]
) -> None:
    made, live = model(count, height), dict[str, Live]()
    there = {one.id: one for one in summaries(count)}
    for what, number in steps:
        name, chosen = f"c{number}", made.chosen
        match what:
            case "step":
                made.step(number)
                chosen = made.chosen
            case "works" | "rests" if name in there:
                live[name] = WORKS if what == "works" else RESTS
            case "pins" if name in there:
                there[name] = replace(there[name], pinned_at=float(number + 1))
            case "goes":
                there.pop(name, None)
            case "resize":
                made.resize(number)
            case "find":
                made.text = str(number) if number else ""
            case _:
                pass  # its conversation is gone
        made.fill(list(there.values()), live, "")
        made.arrange()
        if chosen in made.order:
            assert made.chosen == chosen
        assert bool(made.chosen) == bool(made.order)
        assert made.top >= 0
        assert 0 <= made.row < made.height


def test_a_change_of_one_row_puts_no_other_into_words_anew() -> None:
    made = model(20, height=30)
    made.visible()
    asked = names.cache_info().misses
    for number in range(50):
        made.fill(summaries(20), {f"c{number % 20}": WORKS}, "c1")
        made.arrange()
        made.visible()
    assert names.cache_info().misses == asked


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
    ("width", "shown"),
    [
        (50, "state age"),
        (57, "state cost age"),
        (70, "state folder cost age"),
        (74, "state folder used cost age"),
        (92, "state folder model used cost age"),
    ],
)
def test_a_wider_line_has_more_columns(width: int, shown: str) -> None:
    assert [column.head for column in choose_columns(width)] == shown.split()


@pytest.mark.parametrize("width", [50, 57, 70, 74, 92, 120, 200])
def test_headings_stand_above_their_columns(width: int) -> None:
    above, below = heads(width), line(row("api-retry", "unread"), width)
    assert cell_len(above) == width
    assert above.startswith("   title")
    assert above.index("state") == below.index("unread")
    assert above.index("age") + len("age") == below.index("9m") + len("9m")
    if width >= 70:
        assert above.index("folder") == below.index("~/src/relay")


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


def test_a_long_folder_loses_its_middle() -> None:
    assert path_within("~/src/deep/below/relay", 14) == "~/src/…/relay "
    assert path_within("~/source/deep/below/relay", 14) == "~/…/relay     "
    assert path_within("~/src/terraform-modules", 14) == "terraform-mod…"
    assert path_within("~/src/relay", 14) == "~/src/relay   "


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
