"""Text typed while another conversation comes into view, or while the disk takes nothing, is never lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.ports import ConversationChanges, StorageError
from phoenix_tui.commands.messages import edit_again
from phoenix_tui.terminal.lending import with_changes
from phoenix_tui.widgets.completer import Chosen
from phoenix_tui.widgets.transcript.block_cursor import Target
from phoenix_tui.workspace.actions import LOST_DRAFT, Actions
from phoenix_tui.workspace.sending import give_back
from tests.support.fake_engine import FakeConversation, FakeEngine
from tests.support.waiting import poll


def slow_to_store(conversation: FakeConversation) -> asyncio.Event:
    """Let changes of this conversation wait for the event."""
    released, change = asyncio.Event(), conversation.change

    async def slowly(changes: ConversationChanges) -> None:
        await released.wait()
        await change(changes)

    setattr(conversation, "change", slowly)  # noqa: B010 - a method, so types refuse it
    return released


async def test_letters_typed_while_the_draft_of_the_one_before_is_stored_are_for_the_one_that_comes(
    open_shell: Any, engine: FakeEngine
) -> None:
    first = engine.seed("first", messages=2)
    second = engine.seed("second", messages=2, draft="Please ")
    async with open_shell() as shell:
        await shell.open(first)
        await shell.type("half")
        released = slow_to_store(shell.conversation)
        opening = asyncio.ensure_future(shell.active.open(second.id))
        assert await poll(lambda: shell.composer.text == "")
        await shell.type("now")
        released.set()
        await opening
        assert (first.record.draft, shell.composer.text) == ("half", "Please now")


async def test_a_draft_that_cannot_be_stored_comes_back_with_its_conversation(
    open_shell: Any, engine: FakeEngine
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell() as shell:
        await shell.open(first)
        await shell.type("half")
        conversation, full = shell.conversation, True
        change = conversation.change

        async def refused(changes: ConversationChanges) -> None:
            if full and changes.draft is not None:
                raise StorageError("The disk is full.")
            await change(changes)

        setattr(conversation, "change", refused)  # noqa: B010 - as above
        await shell.open(second)
        assert (shell.composer.text, first.record.draft) == ("", "")
        assert "The disk is full." in shell.toasts
        leaving = shell.app.run_worker(Actions(shell.ctx).may_leave())
        await shell.shows(LOST_DRAFT)
        await shell.pilot.press("escape")
        assert not await leaving.wait()
        full = False
        await shell.open(first)
        assert shell.composer.text == "half"
        assert await shell.active.drafts.keep()
        assert conversation.record.draft == "half"
        assert await Actions(shell.ctx).may_leave()


async def test_an_unknown_command_returns_before_what_was_typed_meanwhile(open_shell: Any) -> None:
    async with open_shell() as shell:
        shell.composer.load("now")
        await shell.command("/nothing-like-it")
        assert shell.composer.text == "/nothing-like-it\nnow"


def slow_to_open(engine: FakeEngine, error: Exception | None = None) -> asyncio.Event:
    """Let the opening of conversations wait for the event, then fail with `error` where there is one."""
    released, open_now = asyncio.Event(), engine.open

    async def slowly(conversation_id: str) -> FakeConversation:
        await released.wait()
        if error is not None:
            raise error
        return await open_now(conversation_id)

    setattr(engine, "open", slowly)  # noqa: B010 - as above
    return released


async def test_a_message_sent_while_another_conversation_is_opened_goes_to_that_one_alone(
    open_shell: Any, engine: FakeEngine
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell() as shell:
        await shell.open(first)
        await shell.type("half")
        before = shell.conversation
        released = slow_to_open(engine)
        opening = asyncio.ensure_future(shell.active.open(second.id))
        assert await poll(lambda: shell.composer.text == "")
        await shell.type("now")
        await shell.pilot.press("enter")
        released.set()
        await opening
        await shell.until(lambda: shell.conversation.said)
        assert ([text for text, _ in shell.conversation.said], before.said) == (["now"], [])
        assert before.record.draft == "half"


async def test_a_conversation_that_cannot_be_opened_leaves_the_draft_and_what_was_typed_meanwhile(
    open_shell: Any, engine: FakeEngine
) -> None:
    async with open_shell() as shell:
        await shell.open(engine.seed("first", messages=2))
        await shell.type("half")
        released = slow_to_open(engine, StorageError("The disk is gone."))
        opening = asyncio.ensure_future(shell.active.open("another"))
        assert await poll(lambda: shell.composer.text == "")
        await shell.type("now")
        released.set()
        await asyncio.wait([opening])
        assert (type(opening.exception()), shell.composer.text) == (StorageError, "halfnow")
        assert await shell.active.drafts.keep()
        assert shell.conversation.record.draft == "halfnow"


async def test_letters_typed_while_the_copy_of_an_edited_prompt_comes_into_view_stand_behind_the_prompt(
    open_shell: Any, engine: FakeEngine
) -> None:
    async with open_shell() as shell:
        source = engine.seed("first", messages=2)
        await shell.open(source)
        released, reload_now = asyncio.Event(), shell.active.index.reload

        async def slowly() -> None:
            await released.wait()
            await reload_now()

        shell.active.index.reload = slowly
        prompt = Target(source.id, "prompt", seq=1, text="and now?")
        editing = asyncio.ensure_future(edit_again(shell.ctx, prompt))
        await shell.until(lambda: shell.in_view is not None and shell.in_view.id != source.id and shell.dock.is_loaded)
        await shell.type("x")
        released.set()
        await editing
        assert shell.composer.text == "and now?x"


async def test_letters_that_came_while_the_editor_had_the_draft_stand_behind_it(
    open_shell: Any, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_shell() as shell:
        await shell.open(engine.seed("first", messages=2))
        await shell.type("half")

        async def edits(app: object, text: str) -> str:
            await shell.type("x")
            return f"{text} a draft"

        monkeypatch.setattr("phoenix_tui.workspace.actions.edit_outside", edits)
        await Actions(shell.ctx).by_key["editor"]()
        assert shell.composer.text == "half a draftx"


@pytest.mark.parametrize(
    ("now", "shown"), [("half", "whole"), ("halfx", "wholex"), ("refused\nhalf", "refused\nwhole"), ("", "whole")]
)
def test_an_edited_draft_keeps_what_came_meanwhile(now: str, shown: str) -> None:
    assert with_changes("half", now, "whole") == shown


async def test_each_of_several_conversations_that_are_asked_for_gets_what_is_typed_behind_it(
    open_shell: Any, engine: FakeEngine
) -> None:
    first, second, third = (engine.seed(title, messages=2) for title in ("first", "second", "third"))
    async with open_shell() as shell:
        await shell.open(first)
        await shell.type("one")
        released = slow_to_open(engine)
        opening = [asyncio.ensure_future(shell.active.open(second.id))]
        assert await poll(lambda: shell.composer.text == "")
        await shell.type("two")
        opening.append(asyncio.ensure_future(shell.active.open(third.id)))
        assert await poll(lambda: shell.composer.text == "")
        await shell.type("three")
        opening.append(asyncio.ensure_future(shell.active.begin()))
        assert await poll(lambda: shell.composer.text == "")
        await shell.type("new")
        released.set()
        await asyncio.gather(*opening)
        assert (first.record.draft, second.record.draft, third.record.draft) == ("one", "two", "three")
        assert (shell.in_view, shell.composer.text) == (None, "new")


async def test_what_is_typed_for_conversations_that_cannot_be_opened_stays_with_the_one_in_view(
    open_shell: Any, engine: FakeEngine
) -> None:
    first = engine.seed("first", messages=2)
    async with open_shell() as shell:
        await shell.open(first)
        await shell.type("one")
        released = slow_to_open(engine, StorageError("The disk is gone."))
        failing = asyncio.ensure_future(shell.active.open("gone"))
        assert await poll(lambda: shell.composer.text == "")
        await shell.type("two")
        cancelled = asyncio.ensure_future(shell.active.open("never"))
        assert await poll(lambda: shell.composer.text == "")
        await shell.type("three")
        cancelled.cancel()
        await asyncio.wait([cancelled])
        assert shell.composer.text == "twothree"
        beginning = asyncio.ensure_future(shell.active.begin())
        assert await poll(lambda: shell.composer.text == "")
        await shell.type("four")
        released.set()
        await asyncio.wait([failing, beginning])
        assert (first.record.draft, shell.composer.text) == ("onetwothree", "four")


async def test_a_message_that_returns_while_its_conversation_is_about_to_be_left_goes_before_that_draft(
    open_shell: Any, engine: FakeEngine
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell() as shell:
        await shell.open(first)
        await shell.type("draft")
        async with shell.active.changing:  # as while it is being stored
            returning = asyncio.ensure_future(give_back(shell.active, shell.active.conversation, "refused"))
            await asyncio.sleep(0)
            opening = asyncio.ensure_future(shell.active.open(second.id))
            assert await poll(lambda: shell.composer.text == "")
            await shell.type("next")
        await asyncio.gather(returning, opening)
        assert (first.record.draft, shell.composer.text) == ("refused\ndraft", "next")


async def test_the_text_of_a_new_conversation_is_not_stored_in_the_one_that_is_opened_while_more_is_typed(
    open_shell: Any, engine: FakeEngine
) -> None:
    second = engine.seed("second", messages=2)
    async with open_shell() as shell:
        await shell.type("half")
        released = slow_to_open(engine)
        opening = asyncio.ensure_future(shell.active.open(second.id))
        assert await poll(lambda: shell.composer.text == "")
        await shell.type("now")
        storing = asyncio.ensure_future(shell.active.drafts.store())  # as when the typing pauses
        assert not await poll(storing.done, 0.1)
        released.set()
        await asyncio.gather(opening, storing)
        assert (second.record.draft, shell.composer.text) == ("now", "now")
        assert "half" in [one.record.draft for one in engine.opened.values()]


async def test_keys_go_on_while_a_draft_is_being_stored(open_shell: Any, engine: FakeEngine) -> None:
    async with open_shell() as shell:
        await shell.open(engine.seed("first", messages=2))
        released = slow_to_store(shell.conversation)
        await shell.type("half")
        assert await poll(lambda: shell.active.drafts._storing.locked())
        shell.dock.post_message(Chosen("/stash other"))
        await shell.until(lambda: any("Put aside" in toast for toast in shell.toasts))
        released.set()
