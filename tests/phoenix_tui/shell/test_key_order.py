"""Keys of one read apply in the order of typing, on every screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

import pytest
from msgspec.structs import replace
from textual import events

from engine.records import ConversationQuery, ConversationSummary
from engine.rewind.rewind import PreviewFile
from phoenix_tui.commands.run import CommandContext
from phoenix_tui.keys.key_order import LONGEST_WAIT, NAPS
from phoenix_tui.modals.rows_sheet import HelpSheet
from phoenix_tui.modals.text_sheet import DiffSheet
from tests.support.fake_rewinding import FakeRewinding, change, point
from tests.support.shell import Shell
from tests.support.waiting import poll

OpenShell = Callable[..., AbstractAsyncContextManager[Shell]]


def in_one_read(shell: Shell, *keys: str) -> None:
    for key in keys:
        shell.app.post_message(events.Key(key, key if len(key) == 1 else None))


async def test_a_letter_behind_arrows_acts_on_the_row_that_these_chose(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        desk = shell.active
        rewinding = FakeRewinding((point(1, "Fix it", change("a.py", 1, 1)),), (PreviewFile(change("a.py", 1, 1)),))
        desk.services = replace(desk.services, rewinding=rewinding)
        await shell.open(shell.engine.seed("Relay", messages=4))
        await shell.type("/rewind")
        await shell.pilot.press("enter")
        await shell.until(lambda: "Enter selects" in shell.text)
        await shell.pilot.press("down", "enter")
        await shell.until(lambda: "On disk" in shell.text)
        in_one_read(shell, "down", "down", "down", "d")
        await shell.until(lambda: isinstance(shell.top, DiffSheet))
        in_one_read(shell, "escape", "escape")
        await shell.until(lambda: len(shell.app.screen_stack) == 1)
        assert rewinding.asked == []


async def test_enter_behind_letters_takes_what_these_have_left(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        for title in ("apple", "pear", "apricot"):
            shell.engine.seed(title, messages=2)
        await shell.type("/resume ")
        await shell.pilot.press("escape", "enter")
        await shell.until(lambda: "type to filter" in shell.text)
        in_one_read(shell, "p", "e", "a", "r", "enter")
        await shell.until(lambda: shell.in_view and shell.conversation.record.title == "pear")


async def test_what_follows_a_key_that_closes_a_sheet_reaches_the_composer(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await shell.pilot.press("f1")
        await shell.until(lambda: isinstance(shell.top, HelpSheet))
        in_one_read(shell, "escape", "h", "e", "y")
        await shell.until(lambda: shell.composer.text == "hey")


@pytest.mark.parametrize("key", ["ctrl+p", "ctrl+r", "ctrl+f", "f2", "f1"])
async def test_what_is_typed_behind_the_key_of_a_sheet_reaches_the_sheet_whole(open_shell: OpenShell, key: str) -> None:
    async with open_shell() as shell:
        (await shell.say("go")).answer_with("done")
        await shell.pilot.pause()
        in_one_read(shell, key, *"abcdefgh")
        await shell.until(lambda: "abcdefgh" in shell.text)
        assert shell.composer.text == ""


async def test_keys_wait_no_longer_than_a_moment_for_what_opens_nothing(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        in_one_read(shell, "ctrl+n", "h", "i")
        await shell.until(lambda: shell.composer.text == "hi")


async def test_two_escapes_with_another_key_between_are_no_pair(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await shell.press_at_once("escape", "d", "escape", "r", "escape")
        await shell.until(lambda: shell.composer.text == "dr")
        await shell.press_at_once("escape", "escape")
        await shell.until(lambda: not shell.composer.text)


@pytest.mark.parametrize(("key", "line", "shown"), [("ctrl+r", "", "go"), ("ctrl+p", "/btw", "/btw ")])
async def test_what_is_typed_behind_enter_in_a_sheet_stands_behind_what_that_chose(
    open_shell: OpenShell, key: str, line: str, shown: str
) -> None:
    async with open_shell() as shell:
        (await shell.say("go")).answer_with("done")
        await shell.pilot.press(key)
        await shell.until(lambda: len(shell.app.screen_stack) == 2)
        in_one_read(shell, *line.replace("/", ""), "enter", *"abcdefgh")
        await shell.until(lambda: shell.composer.text.endswith("h"))
        assert shell.composer.text == f"{shown}abcdefgh"


async def test_what_is_typed_behind_a_command_reaches_the_sheet_that_it_opens(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        (await shell.say("go")).answer_with("done")
        await shell.pilot.pause()
        in_one_read(shell, "/", *"rename", "enter", *"x", "enter")
        await shell.until(lambda: shell.conversation.record.title.endswith("x"))
        assert shell.conversation.said == [("go", ())]


async def test_an_arrow_behind_letters_moves_among_the_rows_that_these_have_left(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        for title in ("pear", "pear two", "apple"):
            shell.engine.seed(title, messages=2)
        await shell.pilot.press("ctrl+p")
        await shell.until(lambda: "Everything" in shell.text)
        in_one_read(shell, *"pear", "down", "enter")
        await shell.until(lambda: shell.in_view)
        assert shell.conversation.record.title == "pear two"  # the better match is above it


async def test_a_moment_in_which_phoenix_was_stopped_does_not_let_keys_overtake_what_they_wait_for(
    open_shell: OpenShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_shell() as shell:
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


async def test_what_is_typed_behind_a_choice_reaches_the_sheet_that_this_opens(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        (await shell.say("go")).answer_with("done")
        await shell.pilot.press("ctrl+p")
        await shell.until(lambda: "Everything" in shell.text)
        in_one_read(shell, *"rename", "enter", *"abc", "enter")
        await shell.until(lambda: shell.conversation.record.title.endswith("abc"))
        assert (shell.composer.text, shell.conversation.said) == ("", [("go", ())])


async def test_what_is_typed_behind_a_choice_is_written_in_the_conversation_that_this_opens(
    open_shell: OpenShell,
) -> None:
    async with open_shell() as shell:
        first, _ = shell.engine.seed("first", messages=2), shell.engine.seed("pear", messages=2)
        await shell.open(first)
        await shell.pilot.press("ctrl+p")
        await shell.until(lambda: "Everything" in shell.text)
        in_one_read(shell, *"pear", "enter", *"abcd")
        await shell.until(lambda: shell.composer.text.endswith("d") and shell.in_view is not first)
        assert (shell.composer.text, first.record.draft) == ("abcd", "")


async def test_esc_does_not_wait_for_a_command_that_works(
    open_shell: OpenShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_shell() as shell:
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
    open_shell: OpenShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_shell() as shell:
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
    open_shell: OpenShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_shell() as shell:
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
