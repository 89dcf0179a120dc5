"""What Esc and Ctrl+C mean, for everything they may find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import fields, replace

from phoenix_tui.workspace.escape_rules import AGAIN, AT_REST, DOUBLE, Deed, Pair, Situation, escape, interrupt

EVERYTHING = Situation(**{field.name: True for field in fields(Situation)})
INNERMOST_FIRST = [
    ("narrowed", Deed.LEAVE_FILTER),
    ("open_in_dock", Deed.CLOSE_IN_DOCK),
    ("list_over", Deed.CLOSE_LIST),
    ("in_blocks", Deed.LEAVE_BLOCKS),
    ("installing", Deed.STOP_INSTALLING),
]


@pytest.mark.parametrize(
    ("found", "deed"),
    [
        *((Situation(**{name: True}), deed) for name, deed in INNERMOST_FIRST),
        (Situation(inserting=True), Deed.LEAVE_INSERT),
        (Situation(running=True), Deed.STOP_RUN),
        (Situation(running=True, written=True, again=True), Deed.STOP_RUN),
        (Situation(in_list=True), Deed.LEAVE_LIST),
        (Situation(in_list=True, running=True), Deed.STOP_RUN),
        (Situation(in_agent=True), Deed.GO_TO_PARENT),
        (Situation(in_agent=True, written=True), Deed.AWAIT_SECOND),
        (Situation(noticed=True), Deed.DISMISS_NOTICE),
        (Situation(noticed=True, written=True, again=True), Deed.DISMISS_NOTICE),
        (Situation(), Deed.AWAIT_SECOND),
        (Situation(selected=True), Deed.AWAIT_SECOND),
        (Situation(written=True), Deed.AWAIT_SECOND),
        (Situation(written=True, again=True), Deed.CLEAR_DRAFT),
        (Situation(again=True), Deed.GO_BACK),
    ],
)
def test_esc_does_one_thing(found: Situation, deed: Deed) -> None:
    assert escape(found) is deed


@pytest.mark.parametrize(
    ("found", "deed"),
    [
        (EVERYTHING, Deed.COPY),
        *((Situation(**{name: True}), deed) for name, deed in INNERMOST_FIRST),
        (Situation(running=True), Deed.STOP_RUN),
        (Situation(running=True, written=True), Deed.STOP_RUN),
        (Situation(inserting=True, written=True), Deed.CLEAR_DRAFT),
        (Situation(in_list=True, in_agent=True, noticed=True), Deed.ASK_AGAIN),
        (Situation(written=True, again=True), Deed.CLEAR_DRAFT),
        (Situation(), Deed.ASK_AGAIN),
        (Situation(again=True), Deed.QUIT),
    ],
)
def test_ctrl_c_does_one_thing(found: Situation, deed: Deed) -> None:
    assert interrupt(found) is deed


def test_what_is_open_closes_from_the_innermost_outwards_before_anything_stops() -> None:
    esc, ctrl_c = EVERYTHING, replace(EVERYTHING, selected=False)
    for name, deed in INNERMOST_FIRST:
        assert (escape(esc), interrupt(ctrl_c)) == (deed, deed)
        esc, ctrl_c = replace(esc, **{name: False}), replace(ctrl_c, **{name: False})
    assert escape(esc) is Deed.LEAVE_INSERT
    assert escape(replace(esc, inserting=False)) is interrupt(ctrl_c) is Deed.STOP_RUN


def test_nothing_is_at_rest_while_something_is_open_or_runs() -> None:
    busy = [name for name, _ in INNERMOST_FIRST] + ["running"]
    assert not {escape(Situation(**{name: True})) for name in [*busy, "inserting"]} & AT_REST
    assert not {interrupt(Situation(**{name: True})) for name in [*busy, "selected"]} & AT_REST


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("seconds", [DOUBLE, AGAIN])
def test_a_second_press_makes_a_pair_only_while_it_is_near(seconds: float) -> None:
    clock = Clock()
    pair = Pair(seconds, clock)
    assert not pair.is_begun
    pair.begin()
    assert [pair.is_begun for clock.now in (1000.0, 1000.0 + seconds - 0.01, 1000.0 + seconds)] == [True, True, False]


def test_a_pair_that_was_ended_begins_anew() -> None:
    pair = Pair(DOUBLE, Clock())
    pair.begin()
    pair.end()
    assert not pair.is_begun


async def test_every_deed_can_be_done(open_shell: Any) -> None:
    async with open_shell() as shell:
        assert set(shell.screen.ways_out.deeds) == set(Deed)


async def test_a_third_esc_begins_another_pair(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.type("one")
        await shell.press_at_once("escape", "escape", "o", "n", "escape")
        assert shell.composer.text == "on"
        await shell.press_at_once("escape", "escape")
        assert not shell.composer.text
