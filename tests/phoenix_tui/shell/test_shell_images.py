"""The images beside an unsent message: kept, brought back, refused in words."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from textual import events

from engine.ports import ConversationChanges
from engine.records import PermissionMode
from phoenix_tui.features.composing import join_draft
from phoenix_tui.modals.image_sheet import ImageSheet
from tests.support.fake_engine import FakeEngine

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


async def attach(shell: Any, folder: Path) -> None:
    """Drop one image into the composer."""
    (folder / "a.png").write_bytes(PNG)
    shell.composer.post_message(events.Paste(str(folder / "a.png")))
    await shell.until(lambda: shell.dock.chips.images)


async def test_images_stay_with_their_conversation(open_shell: Any, engine: FakeEngine, tmp_path: Path) -> None:
    one, two = engine.seed("one", messages=1), engine.seed("two", messages=1)
    async with open_shell() as shell:
        await shell.open(one)
        await attach(shell, tmp_path)
        await shell.type("look")
        await shell.open(two)
        assert shell.dock.chips.images == ()
        await shell.open(one)
        await shell.until(lambda: "[image 1: 640×480]" in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: one.said)
        assert one.said == [("look", ("image-1",))]
        await shell.until(lambda: not one.record.draft)


async def test_an_image_dropped_before_all_is_ready_leaves_the_composer_where_it_is(
    open_shell: Any, tmp_path: Path
) -> None:
    async with open_shell() as shell:
        foot = shell.composer.region.bottom
        shell.parts.greet(False)
        shell.parts.welcome.held = True
        await attach(shell, tmp_path)
        await shell.until(lambda: not shell.parts.welcome.held)
        await shell.pilot.pause()
        assert shell.composer.region.bottom == foot


async def test_images_are_stored_with_the_draft_and_come_back_after_a_restart(
    open_shell: Any, engine: FakeEngine, tmp_path: Path
) -> None:
    one = engine.seed("one", messages=1)
    async with open_shell() as shell:
        await shell.open(one)
        await shell.type("look")
        await attach(shell, tmp_path)
        await shell.until(lambda: one.record.draft == join_draft("look", ["image-1"]))
    async with open_shell(conversation_id=one.id) as shell:
        await shell.until(lambda: "[image 1: 640×480]" in shell.text)
        assert shell.composer.text == "look"


async def test_an_image_that_was_dropped_does_not_come_back(
    open_shell: Any, engine: FakeEngine, tmp_path: Path
) -> None:
    one = engine.seed("one", messages=1, draft=join_draft("", ["image-7", "gone"]))
    async with open_shell() as shell:
        await shell.open(one)
        assert [image.id for image in shell.dock.chips.images] == ["image-7"]
        await shell.pilot.press("backspace")
        await shell.until(lambda: one.record.draft == "")


async def test_why_an_image_cannot_be_sent_stays_beside_it_until_it_is_removed_or_the_model_changed(
    open_shell: Any, engine: FakeEngine, tmp_path: Path
) -> None:
    one = engine.seed("one", messages=1)
    one.refusal = "demo/guide cannot see images."
    async with open_shell() as shell:
        await shell.open(one)
        await attach(shell, tmp_path)
        chips = shell.dock.chips
        for _ in range(2):
            shell.app.clear_notifications()
            shell.screen.toasts._told.clear()
            await shell.pilot.press("enter")
            await shell.until(lambda: shell.toasts == ["demo/guide cannot see images."])
            assert chips.trouble == "demo/guide cannot see images."
        await one.change(ConversationChanges(model="anthropic/claude-sonnet-5-5"))
        assert chips.trouble == ""
        await shell.pilot.press("enter")
        await shell.until(lambda: chips.trouble)
        await shell.pilot.press("backspace")
        await shell.until(lambda: not chips.images)
        assert chips.trouble == ""


async def test_a_conversation_that_ran_unattended_goes_on_in_the_mode_of_the_launch(
    open_shell: Any, engine: FakeEngine
) -> None:
    one = engine.seed("one", messages=1)
    await one.change(ConversationChanges(permission_mode=PermissionMode.DENY))
    async with open_shell() as shell:
        await shell.open(one)
        await shell.until(lambda: one.record.permission_mode is PermissionMode.ASK)
        assert any("continues in mode ask" in toast for toast in shell.toasts)
        await one.change(ConversationChanges(permission_mode=PermissionMode.DENY))
        await shell.open(engine.seed("two", messages=1))
        await shell.open(one)
        assert one.record.permission_mode is PermissionMode.DENY


async def test_a_message_refused_after_the_user_went_elsewhere_is_the_draft_of_its_own_conversation(
    open_shell: Any, engine: FakeEngine
) -> None:
    one, two = engine.seed("one", messages=1), engine.seed("two", messages=1)
    one.hold, one.refusal = asyncio.Event(), "the disk is full"
    async with open_shell() as shell:
        await shell.open(one)
        await shell.type("look")
        await shell.pilot.press("enter")
        await shell.until(lambda: one.caps)
        await shell.open(two)
        one.hold.set()
        await shell.until(lambda: one.record.draft)
        assert one.record.draft == "look"
        assert shell.composer.text == ""


async def test_the_images_of_a_message_are_looked_at_and_taken_away_one_by_one(open_shell: Any, tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(PNG)
    async with open_shell() as shell:
        shell.composer.post_message(events.Paste(f"{tmp_path / 'a.png'} {tmp_path / 'b.png'}"))
        chips = shell.dock.chips
        await shell.until(lambda: len(chips.images) == 2)
        await shell.until(lambda: chips.region.height)
        await shell.pilot.click(chips, offset=(30, 0))
        await shell.until(lambda: isinstance(shell.top, ImageSheet))
        await shell.until(lambda: "Image 2 of 2" in shell.text)
        assert "640×480 · 1 kB · png" in shell.text
        await shell.pilot.press("right", "d")
        await shell.until(lambda: len(chips.images) == 1)
        assert chips.images[0].id == "image-2"
        await shell.pilot.press("escape")
        await shell.until(lambda: not isinstance(shell.top, ImageSheet))
