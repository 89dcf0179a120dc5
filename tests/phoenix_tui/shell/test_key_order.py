"""Keys act in the order in which they were pressed, on what was shown when they were."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from msgspec.structs import replace
from textual import events

from engine.executor.requests import Accepted, Receipt
from engine.machine.states import AwaitingLlm, Requesting
from engine.records import ConversationQuery, ConversationSummary
from engine.rewind.rewind import PreviewFile
from phoenix_tui.commands.run import CommandContext
from phoenix_tui.keys.key_order import LONGEST_CHANGE, LONGEST_WAIT, NAPS
from phoenix_tui.modals.help_sheet import HelpSheet
from phoenix_tui.modals.text_sheet import DiffSheet
from tests.support.fake_engine import RUN, FakeConversation, FakeEngine
from tests.support.fake_rewinding import FakeRewinding, change, point
from tests.support.shell import Shell
from tests.support.waiting import poll
from tools.terminal.values import TerminalModes

OpenShell = Callable[..., AbstractAsyncContextManager[Shell]]


def in_one_read(shell: Shell, *keys: str) -> None:
    for key in keys:
        shell.app.post_message(events.Key(key, key if len(key) == 1 else None))


async def test_a_letter_behind_arrows_acts_on_the_row_that_these_chose(shell: Shell) -> None:
    desk = shell.active
    rewinding = FakeRewinding((point(1, "Fix it", change("a.py", 1, 1)),), (PreviewFile(change("a.py", 1, 1)),))
    desk.services = replace(desk.services, rewinding=rewinding)
    await shell.open(shell.engine.seed("Relay", messages=4))
    await shell.enter("/rewind", shows="Enter selects")
    await shell.press("down", "enter", shows="On disk")
    in_one_read(shell, "down", "down", "down", "d")
    await shell.until(lambda: isinstance(shell.top, DiffSheet))
    in_one_read(shell, "escape", "escape")
    await shell.until(lambda: len(shell.app.screen_stack) == 1)
    assert rewinding.asked == []


async def test_enter_behind_letters_takes_what_these_have_left(shell: Shell) -> None:
    for title in ("apple", "pear", "apricot"):
        shell.engine.seed(title, messages=2)
    await shell.type("/resume ", "escape", "enter", shows="type to filter")
    in_one_read(shell, "p", "e", "a", "r", "enter")
    await shell.until(lambda: shell.in_view and shell.conversation.record.title == "pear")


async def test_what_follows_a_key_that_closes_a_sheet_reaches_the_composer(shell: Shell) -> None:
    await shell.press("f1", until=lambda: isinstance(shell.top, HelpSheet))
    in_one_read(shell, "escape", "h", "e", "y")
    await shell.until(lambda: shell.composer.text == "hey")


@pytest.mark.parametrize("key", ["ctrl+p", "ctrl+r", "ctrl+f", "f2", "f1"])
async def test_what_is_typed_behind_the_key_of_a_sheet_reaches_the_sheet_whole(shell: Shell, key: str) -> None:
    (await shell.say("go")).answer_with("done")
    await shell.pilot.pause()
    in_one_read(shell, key, *"abcdefgh")
    await shell.until(lambda: "abcdefgh" in shell.text)
    assert shell.composer.text == ""


async def test_keys_wait_no_longer_than_a_moment_for_what_opens_nothing(shell: Shell) -> None:
    in_one_read(shell, "ctrl+n", "h", "i")
    await shell.until(lambda: shell.composer.text == "hi")


async def test_two_escapes_with_another_key_between_are_no_pair(shell: Shell) -> None:
    await shell.press_at_once("escape", "d", "escape", "r", "escape")
    await shell.until(lambda: shell.composer.text == "dr")
    await shell.press_at_once("escape", "escape")
    await shell.until(lambda: not shell.composer.text)


@pytest.mark.parametrize(("key", "line", "shown"), [("ctrl+r", "", "go"), ("ctrl+p", "/btw", "/btw ")])
async def test_what_is_typed_behind_enter_in_a_sheet_stands_behind_what_that_chose(
    shell: Shell, key: str, line: str, shown: str
) -> None:
    (await shell.say("go")).answer_with("done")
    await shell.press(key, until=lambda: len(shell.app.screen_stack) == 2)
    in_one_read(shell, *line.replace("/", ""), "enter", *"abcdefgh")
    await shell.until(lambda: shell.composer.text.endswith("h"))
    assert shell.composer.text == f"{shown}abcdefgh"


async def test_what_is_typed_behind_a_command_reaches_the_sheet_that_it_opens(shell: Shell) -> None:
    (await shell.say("go")).answer_with("done")
    await shell.pilot.pause()
    in_one_read(shell, "/", *"rename", "enter", *"x", "enter")
    await shell.until(lambda: shell.conversation.record.title.endswith("x"))
    assert shell.conversation.said == [("go", ())]


async def test_an_arrow_behind_letters_moves_among_the_rows_that_these_have_left(shell: Shell) -> None:
    for title in ("pear", "pear two", "apple"):
        shell.engine.seed(title, messages=2)
    await shell.press("ctrl+p", shows="Commands and settings")
    in_one_read(shell, *"pear", "down", "enter")
    await shell.until(lambda: shell.in_view)
    assert shell.conversation.record.title == "pear two"  # the better match is above it


async def test_a_moment_in_which_phoenix_was_stopped_does_not_let_keys_overtake_what_they_wait_for(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shell.open(shell.engine.seed("first", messages=2))
    over, timers = asyncio.Event(), list[Callable[[], object]]()

    async def begins() -> None:
        await over.wait()

    monkeypatch.setattr(shell.active, "begin", begins)
    monkeypatch.setattr(shell.app, "set_timer", lambda _, callback: timers.append(callback))
    in_one_read(shell, "ctrl+n", "h")
    await shell.until(lambda: timers)
    timers.pop(0)()  # late by any time
    await shell.pilot.pause()
    assert shell.composer.text == ""
    over.set()
    await shell.until(lambda: shell.composer.text == "h")


async def test_what_is_typed_behind_a_choice_reaches_the_sheet_that_this_opens(shell: Shell) -> None:
    (await shell.say("go")).answer_with("done")
    await shell.press("ctrl+p", shows="Commands and settings")
    in_one_read(shell, *"rename", "enter", *"abc", "enter")
    await shell.until(lambda: shell.conversation.record.title.endswith("abc"))
    assert (shell.composer.text, shell.conversation.said) == ("", [("go", ())])


async def test_what_is_typed_behind_a_choice_is_written_in_the_conversation_that_this_opens(
    shell: Shell,
) -> None:
    first, _ = shell.engine.seed("first", messages=2), shell.engine.seed("pear", messages=2)
    await shell.open(first)
    await shell.press("ctrl+p", shows="Commands and settings")
    in_one_read(shell, *"pear", "enter", *"abcd")
    await shell.until(lambda: shell.composer.text.endswith("d") and shell.in_view is not first)
    assert (shell.composer.text, first.record.draft) == ("abcd", "")


async def test_esc_does_not_wait_for_a_command_that_works(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    await shell.open(shell.engine.seed("first", messages=2))
    begun, over = asyncio.Event(), asyncio.Event()

    async def begins() -> None:
        begun.set()
        await over.wait()

    monkeypatch.setattr(shell.active, "begin", begins)
    monkeypatch.setattr(shell.app, "set_timer", lambda *_: None)  # no wait ends by itself
    in_one_read(shell, "/", *"new", "enter", "h")
    await begun.wait()
    assert not await poll(lambda: shell.composer.text == "h", 0.2)
    in_one_read(shell, "escape")
    await shell.until(lambda: shell.composer.text == "h")
    over.set()


async def test_esc_behind_a_key_that_hangs_waits_no_longer_than_any_other_after_a_command_that_worked(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shell.open(shell.engine.seed("first", messages=2))
    in_one_read(shell, "/", *"vim", "enter", "h")
    await shell.until(lambda: shell.composer.text == "h")
    naps = list[float]()
    monkeypatch.setattr(shell.app, "set_timer", lambda seconds, _: naps.append(seconds))
    order = shell.screen.key_order
    assert order is not None
    order._under_way = events.Key("x", "x")  # a key that is never done
    await order.take(events.Key("escape", None))
    assert naps == [LONGEST_WAIT / NAPS]


async def test_keys_behind_the_key_of_a_sheet_are_not_let_in_by_the_end_of_work_that_began_before(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, over, asked, listed = (asyncio.Event() for _ in range(4))
    list_now = shell.engine.list

    async def slowly(query: ConversationQuery) -> Sequence[ConversationSummary]:
        asked.set()
        await listed.wait()
        return await list_now(query)

    async def works(_: CommandContext) -> None:
        await before.wait()
        over.set()

    monkeypatch.setattr(shell.engine, "list", slowly)
    monkeypatch.setattr(shell.app, "set_timer", lambda *_: None)  # no wait ends by itself
    shell.screen.startup.then(works)  # such as a message that is being sent
    in_one_read(shell, "ctrl+p", *"abc")
    await shell.until(asked.is_set)
    before.set()
    await shell.until(over.is_set)
    await shell.pilot.pause()
    assert shell.composer.text == ""
    listed.set()
    await shell.shows("abc")
    assert shell.composer.text == ""


def slow_to_open(engine: FakeEngine) -> asyncio.Event:
    """Let the opening of conversations wait for the event."""
    released, open_now = asyncio.Event(), engine.open

    async def slowly(conversation_id: str) -> FakeConversation:
        await released.wait()
        return await open_now(conversation_id)

    setattr(engine, "open", slowly)  # noqa: B010 - a method, so types refuse it
    return released


async def test_a_command_and_its_keys_wait_for_the_conversation_that_is_on_its_way(
    open_shell: OpenShell, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell() as shell:
        await shell.open(first)
        released, timers = slow_to_open(engine), list[Callable[[], object]]()
        opening = asyncio.ensure_future(shell.active.open(second.id))
        assert await poll(lambda: shell.active.changing.is_taken)
        with monkeypatch.context() as patched:
            patched.setattr(shell.app, "set_timer", lambda _, callback: timers.append(callback))
            in_one_read(shell, "/", *"rename", "enter", "x", "enter")
            for _ in range(3 * NAPS):  # three seconds
                await shell.until(lambda: timers)
                timers.pop(0)()
            await shell.pilot.pause()
            assert shell.composer.text == ""
            released.set()
            await opening
            await shell.until(lambda: second.record.title == "secondx")
        assert (first.record.title, second.said, shell.composer.text) == ("first", [], "")


async def test_esc_ends_the_wait_for_a_conversation_that_does_not_come(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell() as shell:
        await shell.open(first)
        released = slow_to_open(engine)
        opening = asyncio.ensure_future(shell.active.open(second.id))
        assert await poll(lambda: shell.active.changing.is_taken)
        in_one_read(shell, "/", *"rename", "enter", "x")
        assert not await poll(lambda: shell.composer.text == "x", 0.2)
        in_one_read(shell, "escape")
        await shell.until(lambda: shell.composer.text == "x")
        released.set()
        await opening


async def test_the_wait_for_a_conversation_ends_by_itself(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    order = shell.app.key_order
    timers, key = list[Callable[[], object]](), events.Key("x", "x")
    order._under_way = key
    monkeypatch.setattr(shell.app, "set_timer", lambda _, callback: timers.append(callback))
    order.hold()
    order.begin_work().waits = True
    fired = 0
    while order._opens is key:
        await shell.until(lambda: timers or order._opens is not key)
        fired += bool(timers)
        if timers:
            timers.pop(0)()
    assert fired == NAPS * (LONGEST_CHANGE + 1)


async def test_a_key_of_panes_waits_for_the_pane_that_is_on_its_way(open_shell: OpenShell, engine: FakeEngine) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell((150, 40)) as shell:
        await shell.open(first)
        released = slow_to_open(engine)
        await shell.type("/split second", "escape", "enter", until=lambda: shell.active.changing.is_taken)
        stepping = asyncio.ensure_future(shell.command("/pane next"))
        await shell.pilot.pause()
        await shell.type("one")
        released.set()
        await stepping
        await shell.until(lambda: shell.composer.text == "one")
        assert (shell.in_view, second.record.draft) == (first, "")


async def test_a_letter_typed_with_the_key_of_the_list_is_for_the_list(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with open_shell((150, 40)) as shell:
        await shell.open(engine.seed("first", messages=2))
        in_one_read(shell, "ctrl+l", "p")
        await shell.shows("on an empty line opens")
        assert shell.composer.text == ""


async def test_a_paste_on_the_list_is_for_the_composer(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with open_shell((150, 40)) as shell:
        await shell.open(engine.seed("first", messages=2))
        await shell.press("ctrl+l", until=lambda: shell.rows.has_focus)
        shell.app.post_message(events.Paste("some words"))
        await shell.until(lambda: shell.composer.text == "some words")
        assert shell.composer.has_focus


async def test_up_behind_the_key_that_queues_goes_to_the_queue(
    shell: Shell, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shell.say("an older prompt")
    queue, asked, released = shell.conversation.queue, asyncio.Event(), asyncio.Event()
    add_now = queue.add

    async def slowly(text: str, *arguments: Any, **options: Any) -> Receipt:
        asked.set()
        await released.wait()
        return await add_now(text, *arguments, **options)

    monkeypatch.setattr(queue, "add", slowly)
    in_one_read(shell, *"later", "tab", "up")
    await shell.until(asked.is_set)
    await shell.pilot.pause()
    released.set()
    await shell.until(lambda: shell.dock.queue.has_focus)
    assert shell.composer.text == ""


async def test_keys_for_a_program_wait_until_its_line_runs(
    open_shell: OpenShell, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = engine.seed("first", messages=2)
    async with open_shell() as shell:
        await shell.open(first)
        asked, released = asyncio.Event(), asyncio.Event()

        async def slowly(self: FakeConversation, line: str, _: bool) -> Receipt:
            asked.set()
            await released.wait()
            self.shells.append((line, True))
            self.become(AwaitingLlm(1, RUN, Requesting()))  # busy
            return Accepted()

        monkeypatch.setattr(FakeConversation, "shell", slowly)
        in_one_read(shell, "!", *"cat", "enter", "ctrl+right_square_bracket", *"secret", "enter")
        await shell.until(asked.is_set)
        released.set()
        await shell.until(lambda: first.shells)
        first.terminal.modes = TerminalModes()
        await shell.until(lambda: b"".join(first.terminal.typed) == b"secret\r")
        assert (first.said, shell.composer.text) == ([], "")


@pytest.mark.parametrize("key", ["escape", "interrupt"])
async def test_a_key_that_closes_what_was_just_typed_for_is_not_undone_by_a_late_message(
    shell: Shell, key: str
) -> None:
    shell.composer.insert("/trust")  # its message has not arrived yet
    getattr(shell.screen.escape_handler, key)()
    await shell.pilot.pause()
    assert (shell.composer.text, shell.composer.keys.completing) == ("/trust", False)
    await shell.press("space", "backspace")
    assert shell.composer.keys.completing
