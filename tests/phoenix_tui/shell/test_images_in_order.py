"""An image belongs to the message that was being written when it was dropped, however long it takes to be read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path

import pytest
from textual import events

from engine.executor.requests import EngineError
from engine.records import Attachment
from phoenix_tui.features.composing import parse_draft
from phoenix_tui.widgets.queue_panel import QueuePanel
from phoenix_tui.workspace.actions import PASTE_AGAIN
from tests.support.fake_engine import FakeConversation, FakeEngine
from tests.support.shell import Shell

OpenShell = Callable[..., AbstractAsyncContextManager[Shell]]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


@contextmanager
def slow_images(monkeypatch: pytest.MonkeyPatch) -> Generator[tuple[asyncio.Event, asyncio.Event]]:
    """Let images wait for the second event; the first one is set once one does."""
    asked, released, attach_now = asyncio.Event(), asyncio.Event(), FakeConversation.attach

    async def slowly(self: FakeConversation, data: bytes, origin: Path | None = None) -> Attachment:
        asked.set()
        await released.wait()
        return await attach_now(self, data, origin)

    with monkeypatch.context() as patched:
        patched.setattr(FakeConversation, "attach", slowly)
        yield asked, released


def drop(shell: Shell, folder: Path, *keys: str) -> None:
    """Drop an image, and press keys behind it in the same read."""
    (folder / "a.png").write_bytes(PNG)
    shell.app.post_message(events.Paste(str(folder / "a.png")))
    for key in keys:
        shell.app.post_message(events.Key(key, key if len(key) == 1 else None))


async def test_an_image_stays_with_the_conversation_that_is_left_right_behind_it(
    open_shell: OpenShell, engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = engine.seed("first", messages=2)
    async with open_shell() as shell:
        await shell.open(first)
        with slow_images(monkeypatch) as (asked, released):
            drop(shell, tmp_path, *"look", "ctrl+n", *"new")
            await shell.until(asked.is_set)
            await shell.until(lambda: shell.in_view is None and shell.composer.text == "new")
            released.set()
            await shell.until(lambda: parse_draft(first.record.draft).image_ids)
            assert (parse_draft(first.record.draft).text, shell.dock.chips.images) == ("look", ())
            await shell.open(first)
            assert [image.id for image in shell.dock.chips.images] == ["image-1"]


@pytest.mark.parametrize("words", ["look", ""])
async def test_a_message_waits_for_the_images_dropped_before_its_enter(
    open_shell: OpenShell, engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    first = engine.seed("first", messages=2)
    async with open_shell() as shell:
        await shell.open(first)
        with slow_images(monkeypatch) as (asked, released):
            drop(shell, tmp_path, *words, "enter")
            await shell.until(asked.is_set)
            await shell.pilot.pause()
            released.set()
            await shell.until(lambda: first.said)
        assert first.said == [(words, ("image-1",))]
        assert shell.dock.chips.images == ()


async def test_an_image_dropped_behind_the_enter_of_a_message_is_for_the_next_one(
    open_shell: OpenShell, engine: FakeEngine, tmp_path: Path
) -> None:
    first = engine.seed("first", messages=2)
    async with open_shell() as shell:
        await shell.open(first)
        first.hold = asyncio.Event()
        await shell.type("look")
        await shell.pilot.press("enter")
        drop(shell, tmp_path)
        await shell.until(lambda: shell.dock.chips.images)
        first.hold.set()
        await shell.until(lambda: first.said)
        assert (first.said, len(shell.dock.chips.images)) == ([("look", ())], 1)


async def test_a_clipboard_that_is_read_too_late_is_not_inserted_into_another_conversation(
    open_shell: OpenShell, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell() as shell:
        await shell.open(first)
        asked, released, paste_now = asyncio.Event(), asyncio.Event(), shell.ctx.clipboard.paste

        async def slowly() -> object:
            asked.set()
            await released.wait()
            return await paste_now()

        monkeypatch.setattr(shell.ctx.clipboard, "paste", slowly)
        await shell.pilot.press("ctrl+v")
        await shell.until(asked.is_set)
        await shell.open(second)
        released.set()
        await shell.until(lambda: PASTE_AGAIN in shell.toasts)
        assert (shell.composer.text, shell.dock.chips.images) == ("", ())


async def test_an_edited_message_that_was_sent_meanwhile_returns_to_the_composer(
    open_shell: OpenShell, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_shell() as shell:
        await shell.open(engine.seed("first", messages=2))
        await shell.conversation.queue.add("wait")

        async def refused(_: str, text: str) -> None:
            raise EngineError("It has been sent.")

        monkeypatch.setattr(shell.conversation.queue, "edit", refused)
        (message,) = shell.conversation.queue.waiting
        shell.screen.startup.act(lambda actions: actions.change_queue(QueuePanel.Wanted("edit", message)))
        await shell.shows("Queued message")
        await shell.type(" more")
        await shell.pilot.press("ctrl+s")
        await shell.until(lambda: shell.composer.text)
        assert (shell.composer.text, shell.toasts) == ("wait more", ["It has been sent."])
