"""Actions of Esc and Ctrl+C in every context."""

from __future__ import annotations

import pytest
from msgspec.structs import fields, replace

from phoenix_tui.workspace.escape import (
    AGAIN,
    DOUBLE,
    ENDS_NOTHING,
    DoublePress,
    EscAction,
    EscContext,
    escape_action,
    interrupt_action,
)
from tests.phoenix_tui.shell.conftest import OpenLive
from tests.support.clocks import SteppedClock

EVERYTHING = EscContext(**{field.name: True for field in fields(EscContext)})
INNERMOST_FIRST = [
    ("narrowed", EscAction.LEAVE_FILTER),
    ("open_in_dock", EscAction.CLOSE_IN_DOCK),
    ("list_over", EscAction.CLOSE_LIST),
    ("in_blocks", EscAction.LEAVE_BLOCKS),
    ("installing", EscAction.STOP_INSTALLING),
]


@pytest.mark.parametrize(
    ("found", "action"),
    [
        *((EscContext(**{name: True}), action) for name, action in INNERMOST_FIRST),
        (EscContext(inserting=True), EscAction.LEAVE_INSERT),
        (EscContext(running=True), EscAction.STOP_RUN),
        (EscContext(running=True, written=True, again=True), EscAction.STOP_RUN),
        (EscContext(in_list=True), EscAction.LEAVE_LIST),
        (EscContext(in_list=True, running=True), EscAction.STOP_RUN),
        (EscContext(shows_sub_agent=True), EscAction.GO_TO_PARENT),
        (EscContext(shows_sub_agent=True, written=True), EscAction.AWAIT_SECOND),
        (EscContext(noticed=True), EscAction.DISMISS_NOTICE),
        (EscContext(noticed=True, written=True, again=True), EscAction.DISMISS_NOTICE),
        (EscContext(), EscAction.AWAIT_SECOND),
        (EscContext(selected=True), EscAction.AWAIT_SECOND),
        (EscContext(written=True), EscAction.AWAIT_SECOND),
        (EscContext(written=True, again=True), EscAction.CLEAR_DRAFT),
        (EscContext(again=True), EscAction.GO_BACK),
    ],
)
def test_esc_does_one_thing(found: EscContext, action: EscAction) -> None:
    assert escape_action(found) is action


@pytest.mark.parametrize(
    ("found", "action"),
    [
        (EVERYTHING, EscAction.COPY),
        *((EscContext(**{name: True}), action) for name, action in INNERMOST_FIRST),
        (EscContext(running=True), EscAction.STOP_RUN),
        (EscContext(running=True, written=True), EscAction.STOP_RUN),
        (EscContext(inserting=True, written=True), EscAction.CLEAR_DRAFT),
        (EscContext(in_list=True, shows_sub_agent=True, noticed=True), EscAction.ASK_AGAIN),
        (EscContext(written=True, again=True), EscAction.CLEAR_DRAFT),
        (EscContext(), EscAction.ASK_AGAIN),
        (EscContext(again=True), EscAction.QUIT),
    ],
)
def test_ctrl_c_does_one_thing(found: EscContext, action: EscAction) -> None:
    assert interrupt_action(found) is action


def test_what_is_open_closes_from_the_innermost_outwards_before_anything_stops() -> None:
    esc, ctrl_c = EVERYTHING, replace(EVERYTHING, selected=False)
    for name, action in INNERMOST_FIRST:
        assert (escape_action(esc), interrupt_action(ctrl_c)) == (action, action)
        esc, ctrl_c = replace(esc, **{name: False}), replace(ctrl_c, **{name: False})
    assert escape_action(esc) is EscAction.LEAVE_INSERT
    esc = replace(esc, inserting=False)
    assert escape_action(esc) is EscAction.DECLINE, "the run goes on without an answer"
    assert escape_action(replace(esc, asked=False)) is interrupt_action(ctrl_c) is EscAction.STOP_RUN


def test_nothing_is_at_rest_while_something_is_open_or_runs() -> None:
    busy = [name for name, _ in INNERMOST_FIRST] + ["running"]
    assert not {escape_action(EscContext(**{name: True})) for name in [*busy, "inserting"]} & ENDS_NOTHING
    assert not {interrupt_action(EscContext(**{name: True})) for name in [*busy, "selected"]} & ENDS_NOTHING


@pytest.mark.parametrize("seconds", [DOUBLE, AGAIN])
def test_a_second_press_makes_a_pair_only_while_it_is_near(seconds: float) -> None:
    clock = SteppedClock(1000.0)
    pair = DoublePress(seconds, clock)
    assert not pair.is_begun
    pair.begin()
    times = (1000.0, 1000.0 + seconds - 0.01, 1000.0 + seconds)
    assert [pair.is_begun for clock.seconds in times] == [True, True, False]


def test_a_pair_that_was_ended_begins_anew() -> None:
    pair = DoublePress(DOUBLE, SteppedClock())
    pair.begin()
    pair.end()
    assert not pair.is_begun


async def test_every_deed_can_be_done(open_live: OpenLive) -> None:
    async with open_live() as shell:
        assert set(shell.screen.escape_handler.actions) == set(EscAction)


async def test_a_third_esc_begins_another_pair(open_live: OpenLive) -> None:
    async with open_live() as shell:
        await shell.type("one")
        await shell.press_at_once("escape", "escape", "o", "n", "escape")
        assert shell.composer.text == "on"
        await shell.press_at_once("escape", "escape")
        assert not shell.composer.text
