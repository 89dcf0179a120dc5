"""Keys behind a change that is under way are for what comes by it: a conversation, a pane, a queue, a program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from textual import events

from engine.executor.requests import Accepted, Receipt
from engine.machine.states import AwaitingLlm, Requesting
from phoenix_tui.keys.key_order import LONGEST_CHANGE, NAPS
from tests.support.fake_engine import RUN, FakeConversation, FakeEngine
from tests.support.shell import Shell
from tests.support.waiting import poll
from tools.terminal.values import TerminalModes

OpenShell = Callable[..., AbstractAsyncContextManager[Shell]]


def in_one_read(shell: Shell, *keys: str) -> None:
    for key in keys:
        shell.app.post_message(events.Key(key, key if len(key) == 1 else None))


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


async def test_the_wait_for_a_conversation_ends_by_itself(
    open_shell: OpenShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_shell() as shell:
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
        await shell.type("/split second")
        await shell.pilot.press("escape", "enter")
        await shell.until(lambda: shell.active.changing.is_taken)
        stepping = asyncio.ensure_future(shell.command("/pane next"))
        await shell.pilot.pause()
        await shell.type("one")
        released.set()
        await stepping
        await shell.until(lambda: shell.composer.text == "one")
        assert (shell.in_view, second.record.draft) == (first, "")


async def test_a_paste_on_the_list_is_for_the_composer(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with open_shell((150, 40)) as shell:
        await shell.open(engine.seed("first", messages=2))
        await shell.pilot.press("ctrl+l")
        await shell.until(lambda: shell.rows.has_focus)
        shell.app.post_message(events.Paste("some words"))
        await shell.until(lambda: shell.composer.text == "some words")
        assert shell.composer.has_focus


async def test_up_behind_the_key_that_queues_goes_to_the_queue(
    open_shell: OpenShell, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_shell() as shell:
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
    open_shell: OpenShell, key: str
) -> None:
    async with open_shell() as shell:
        shell.composer.insert("/trust")  # its message has not arrived yet
        getattr(shell.screen.escape_handler, key)()
        await shell.pilot.pause()
        assert (shell.composer.text, shell.composer.keys.completing) == ("/trust", False)
        await shell.pilot.press("space", "backspace")
        assert shell.composer.keys.completing
