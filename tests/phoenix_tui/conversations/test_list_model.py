"""The window of the list: whatever happens to conversations, the cursor stays on its own and in view."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.machine.states import AwaitingLlm, Idle, Requesting, Run
from engine.records import ConversationSummary
from engine.records.runs import Totals
from phoenix_tui.widgets.roster import ListModel, Live, names
from tests.support.clocks import SteppedClock

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
