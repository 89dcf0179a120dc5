"""A message that was not sent comes back to its own conversation, beside what was written since, with its images."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from engine.ports import ConversationChanges
from engine.records import Attachment
from tests.support.fake_engine import FakeConversation, FakeEngine
from tests.support.waiting import poll

REFUSAL = "A hook refused this message."


def image(name: str) -> Attachment:
    return Attachment(name, Path(name), "image/png", 640, 480, 20, 640, 480, 20)


def held(conversation: FakeConversation, refusal: str = REFUSAL) -> asyncio.Event:
    """Let messages wait for the event, then be refused."""
    conversation.hold, conversation.refusal = asyncio.Event(), refusal
    return conversation.hold


async def sends(shell: Any, text: str) -> FakeConversation:
    """Send a message that the conversation keeps waiting."""
    conversation: FakeConversation = shell.conversation
    await shell.type(text)
    await shell.pilot.press("enter")
    await shell.until(lambda: conversation.caps)
    return conversation


async def test_a_message_refused_out_of_view_stands_before_the_draft_of_its_conversation(
    open_shell: Any, engine: FakeEngine
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell() as shell:
        await shell.open(first)
        decide = held(shell.conversation)
        sender = await sends(shell, "deploy")
        await shell.type("later")
        await shell.open(second)
        assert sender.record.draft == "later"
        decide.set()
        await shell.until(lambda: any("kept as its draft" in one for one in shell.toasts))
        assert (sender.record.draft, shell.composer.text) == ("deploy\nlater", "")


async def test_a_message_refused_while_another_conversation_comes_into_view_is_not_written_there(
    open_shell: Any, engine: FakeEngine
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2, draft="Please ")
    async with open_shell() as shell:
        await shell.open(first)
        decide = held(shell.conversation)
        sender = await sends(shell, "deploy")
        await shell.type("x")
        stored, change = asyncio.Event(), sender.change

        async def slowly(changes: ConversationChanges) -> None:
            await stored.wait()
            await change(changes)

        setattr(sender, "change", slowly)  # noqa: B010 - a method, so types refuse it
        opening = asyncio.ensure_future(shell.active.open(second.id))
        assert await poll(lambda: shell.composer.text == "")
        decide.set()
        await shell.until(lambda: shell.active.in_flight.waiting)
        stored.set()
        await opening
        await shell.until(lambda: any("kept as its draft" in one for one in shell.toasts))
        assert (sender.record.draft, shell.composer.text) == ("deploy\nx", "Please ")


async def test_letters_go_on_where_they_were_when_a_message_comes_back(open_shell: Any, engine: FakeEngine) -> None:
    async with open_shell() as shell:
        await shell.open(engine.seed("first", messages=2))
        decide = held(shell.conversation)
        await sends(shell, "deploy")
        await shell.type("ac")
        await shell.pilot.press("left")
        decide.set()
        await shell.until(lambda: "deploy" in shell.composer.text)
        await shell.type("b")
        assert shell.composer.text == "deploy\nabc"


async def test_an_image_attached_while_a_message_is_sent_belongs_to_the_next_one(
    open_shell: Any, engine: FakeEngine
) -> None:
    async with open_shell() as shell:
        await shell.open(engine.seed("first", messages=2))
        shell.dock.chips.images = (image("one"),)
        decide = held(shell.conversation, "")
        sender = await sends(shell, "look")
        shell.dock.chips.images = (*shell.dock.chips.images, image("two"))
        decide.set()
        await shell.until(lambda: sender.said and not shell.active.in_flight.waiting)
        assert [sent for _, sent in sender.said] == [("one",)]
        assert [one.id for one in shell.dock.chips.images] == ["two"]


async def test_images_of_a_sent_message_are_not_there_again_when_its_conversation_comes_back(
    open_shell: Any, engine: FakeEngine
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell() as shell:
        await shell.open(first)
        shell.dock.chips.images = (image("one"),)
        decide = held(shell.conversation, "")
        sender = await sends(shell, "look")
        await shell.open(second)
        decide.set()
        await shell.until(lambda: sender.said)
        await shell.open(first)
        assert (sender.record.draft, shell.dock.chips.images) == ("", ())
