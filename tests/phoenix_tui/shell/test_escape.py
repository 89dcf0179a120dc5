"""Esc in each state, on sheets that are closing, and in conversations that hang."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields, replace
from textual import events

from engine.machine.messages import Role
from phoenix_tui.lifecycle.crash import PLAIN_FROM, OpeningNotes
from phoenix_tui.markdown.stream import MarkdownStream
from phoenix_tui.modals.help_sheet import HelpSheet
from phoenix_tui.modals.opening import KILOBYTES
from phoenix_tui.modals.peek_sheet import PeekSheet
from phoenix_tui.modals.text_sheet import LineSheet
from phoenix_tui.widgets.bases import Flowing
from phoenix_tui.workspace.conversation_view import HUNG
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
from tests.support.fake_engine import FakeConversation, FakeEngine
from tests.support.live_shell import LiveShell
from tests.support.shell import ScreenDriver
from tools import shedding

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
        (EscContext(toasted=True), EscAction.DISMISS_TOASTS),
        (EscContext(toasted=True, again=True), EscAction.DISMISS_TOASTS),
        (EscContext(toasted=True, written=True, again=True), EscAction.CLEAR_DRAFT),
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


async def test_every_deed_can_be_done(live: LiveShell) -> None:
    assert set(live.screen.escape_handler.actions) == set(EscAction)


async def test_a_third_esc_begins_another_pair(live: LiveShell) -> None:
    await live.type("one")
    await live.press_at_once("escape", "escape", "o", "n", "escape")
    assert live.composer.text == "on"
    await live.press_at_once("escape", "escape")
    assert not live.composer.text


async def opened_and_closed(shell: ScreenDriver) -> list[weakref.ref[object]]:
    """References to the rows of a sheet that was painted, and to the sheet, last."""
    await shell.press("f1", until=lambda: shell.top is not shell.screen)
    sheet = shell.top
    held: list[weakref.ref[object]] = [weakref.ref(one._styles_cache) for one in (sheet, *sheet.query("*"))]
    held.append(weakref.ref(sheet))
    del sheet
    await shell.press("escape", until=lambda: shell.top is shell.screen)
    return held


async def test_a_closed_sheet_and_all_that_it_painted_go(open_live: OpenLive) -> None:
    async with open_live(paints=True) as shell:
        held = await opened_and_closed(shell)
        await opened_and_closed(shell)  # the newest one is still known as the last that had the focus
        assert len(held) > 3
        await shell.until(lambda: gc.collect() >= 0 and not any(one() is not None for one in held))


@pytest.mark.parametrize("way", [("f1",), ("question_mark",), ("slash", *"help", "enter")])
async def test_enter_closes_the_help_however_often_it_is_pressed(live: LiveShell, way: tuple[str, ...]) -> None:
    for _ in range(2):
        await live.press(*way, until=lambda: isinstance(live.top, HelpSheet))
        for _ in range(3):
            live.app.post_message(events.Key("enter", "\r"))
        await live.until(lambda: live.top is live.screen)


async def test_a_sheet_is_closed_once_and_takes_those_above_it_along(live: LiveShell) -> None:
    below, above = LineSheet("below"), LineSheet("above")
    answers: list[tuple[str, str | None]] = []
    live.app.push_screen(below, lambda text: answers.append(("below", text)))
    live.app.push_screen(above, lambda text: answers.append(("above", text)))
    await live.until(lambda: live.top is above)
    below.dismiss("done")
    below.dismiss("again")
    above.dismiss("late")
    await live.until(lambda: live.top is live.screen and len(answers) == 2)
    await live.type("still here")
    assert live.composer.text == "still here"
    assert answers == [("above", None), ("below", "done")]


async def test_what_refers_to_itself_is_collected_after_some_sheets(
    open_live: OpenLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shedding, "DUE_AT", 2 * KILOBYTES)
    async with open_live(paints=True) as shell:
        gc.disable()
        try:
            sheets = [(await opened_and_closed(shell))[-1] for _ in range(2)]
            await shell.until(lambda: not any(one() is not None for one in sheets[:-1]))
        finally:
            gc.enable()


WIDE = (160, 40)
ANSWER = "some **bold** words"


def seed_hung(shell: Any, engine: FakeEngine, folder: Path) -> tuple[FakeConversation, FakeConversation]:
    """One that is drawn fully, and one whose drawing hung as often as makes it plain."""
    here, there = engine.seed("here", messages=1), engine.seed("there", messages=1)
    here.add("told **here**", Role.ASSISTANT)
    there.add(ANSWER, Role.ASSISTANT)
    for number in range(PLAIN_FROM):
        (folder / f"{there.id}.{number:032x}").touch()
    shell.parts.openings = OpeningNotes(folder)
    return here, there


@pytest.fixture
def laid_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts that were laid out as Markdown."""
    seen: list[str] = []
    begin = MarkdownStream.begin

    def note(stream: MarkdownStream, text: str) -> None:
        seen.append(text)
        begin(stream, text)

    monkeypatch.setattr(MarkdownStream, "begin", note)
    return seen


async def test_in_a_pane_it_is_plain_text_beside_one_that_is_not(
    open_shell: Any, engine: FakeEngine, tmp_path: Path, laid_out: list[str]
) -> None:
    async with open_shell(WIDE) as shell:
        here, there = seed_hung(shell, engine, tmp_path)
        await shell.open(here)
        await shell.command("/split there")
        await shell.until(lambda: shell.in_view is there)
        await shell.until(lambda: ANSWER in shell.text and HUNG[:30] in shell.text)
        assert "told here" in shell.text
        assert ANSWER not in laid_out
        await shell.press("ctrl+o", until=lambda: "some bold words" in shell.text and HUNG[:30] not in shell.text)
        assert laid_out[-1] == ANSWER
        assert "told here" in shell.text


async def test_in_a_peek_it_is_plain_text_and_another_is_not(
    open_shell: Any, engine: FakeEngine, tmp_path: Path, laid_out: list[str]
) -> None:
    async with open_shell(WIDE) as shell:
        here, _ = seed_hung(shell, engine, tmp_path)
        await shell.open(here)
        await shell.press("ctrl+l", until=lambda: shell.rows.has_focus)
        for key, words in (("k", f"  {ANSWER}"), ("j", "  told here")):
            await shell.press(key, "p", until=lambda: isinstance(shell.top, PeekSheet))
            body = shell.top.query_one("#words", Flowing)
            await shell.until(lambda body=body, words=words: words in body.render().plain)
            assert (ANSWER in laid_out, "told **here**" in laid_out) == (False, True)
            await shell.press("escape", until=lambda: not isinstance(shell.top, PeekSheet))
