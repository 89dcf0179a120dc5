"""Drafts: kept with their conversation, in a new one, given back by a stop, put aside."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from engine.ports import ConversationChanges, StorageError
from engine.records import Attachment, PermissionMode
from phoenix_tui.commands.conversations import split_with
from phoenix_tui.commands.messages import edit_again
from phoenix_tui.commands.settings import run_sandbox
from phoenix_tui.features.composing import DraftStash
from phoenix_tui.modals.rows_sheet import PickerSheet
from phoenix_tui.terminal.lending import with_changes
from phoenix_tui.widgets.completer import Chosen
from phoenix_tui.widgets.transcript.block_cursor import Target
from phoenix_tui.workspace.actions import LOST_DRAFT, Actions
from phoenix_tui.workspace.sending import give_back
from tests.phoenix_tui.shell.conftest import OpenLive
from tests.support.cli import phoenix_in
from tests.support.fake_engine import FakeConversation, FakeEngine
from tests.support.live_shell import LiveShell
from tests.support.shell import Shell
from tests.support.waiting import poll
from tools.contract import SandboxMode


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
        await shell.press("escape")
        assert not await leaving.wait()
        full = False
        await shell.open(first)
        assert shell.composer.text == "half"
        assert await shell.active.drafts.keep()
        assert conversation.record.draft == "half"
        assert await Actions(shell.ctx).may_leave()


async def test_an_unknown_command_returns_before_what_was_typed_meanwhile(shell: Shell) -> None:
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
        await shell.enter("now")
        released.set()
        await opening
        await shell.until(lambda: shell.conversation.said)
        assert ([text for text, _ in shell.conversation.said], before.said) == (["now"], [])
        assert before.record.draft == "half"


async def test_a_conversation_that_cannot_be_opened_leaves_the_draft_and_what_was_typed_meanwhile(
    shell: Shell, engine: FakeEngine
) -> None:
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
    shell: Any, engine: FakeEngine
) -> None:
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
    shell: Shell, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
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


async def test_keys_go_on_while_a_draft_is_being_stored(shell: Shell, engine: FakeEngine) -> None:
    await shell.open(engine.seed("first", messages=2))
    released = slow_to_store(shell.conversation)
    await shell.type("half")
    assert await poll(lambda: shell.active.drafts._storing.locked())
    shell.dock.post_message(Chosen("/stash other"))
    await shell.until(lambda: any("Put aside" in toast for toast in shell.toasts))
    released.set()


ASK, AUTO, PLAN = PermissionMode.ASK, PermissionMode.AUTO, PermissionMode.PLAN


async def by_command(shell: LiveShell) -> None:
    await shell.command("/new")


async def by_key(shell: LiveShell) -> None:
    await shell.press("ctrl+n", until=lambda: shell.in_view is None)


async def beside(shell: LiveShell) -> None:
    await split_with(shell.ctx, "")


@pytest.mark.parametrize("opens", [by_command, by_key, beside])
async def test_the_mode_of_one_conversation_is_not_that_of_the_next(
    open_live: OpenLive, opens: Callable[[LiveShell], Awaitable[None]]
) -> None:
    async with open_live((200, 60)) as shell:
        first = await shell.say("go")
        await shell.command("/permissions auto")
        await shell.command("/sandbox read-only")
        assert (first.record.permission_mode, first.record.sandbox) == (AUTO, SandboxMode.READ_ONLY)
        await opens(shell)
        await shell.pilot.pause()
        assert shell.status.startswith("ask · sandbox ·")
        second = await shell.say("and this")
        assert second is not first
        assert (second.record.permission_mode, second.record.sandbox) == (ASK, SandboxMode.WORKSPACE)
        assert (first.record.permission_mode, first.record.sandbox) == (AUTO, SandboxMode.READ_ONLY)


async def test_what_is_chosen_for_an_empty_conversation_holds_for_that_one_alone(live: LiveShell) -> None:
    await live.command("/permissions auto")
    await run_sandbox(live.ctx, "read-only")
    assert live.status.startswith("auto · sandbox read-only ·")
    first = await live.say("go")
    assert (first.record.permission_mode, first.record.sandbox, first.record.sandbox_required) == (
        AUTO,
        SandboxMode.READ_ONLY,
        True,
    )
    await by_command(live)
    second = await live.say("and this")
    assert (second.record.permission_mode, second.record.sandbox, second.record.sandbox_required) == (
        ASK,
        SandboxMode.WORKSPACE,
        False,
    )


async def test_a_mode_from_the_command_line_holds_for_every_new_conversation(open_live: OpenLive) -> None:
    async with open_live(permission_mode=PLAN) as shell:
        first = await shell.say("go")
        await shell.command("/permissions auto")
        await by_command(shell)
        assert (first.record.permission_mode, (await shell.say("on")).record.permission_mode) == (AUTO, PLAN)


async def test_the_same_holds_in_lines(tmp_path: Path) -> None:
    lines = ["/permissions auto", "/sandbox read-only", "help", "/new", "help", "/new", "/permissions auto", "help"]
    lines += ["/new", "help", ""]
    phoenix = phoenix_in(tmp_path, PHOENIX_SANDBOX="")
    await phoenix.run("--screen-reader", stdin="\n".join(lines).encode())
    modes = []
    for one in reversed((await phoenix.run("conversations", "list", "--json")).json):
        shown = json.loads((await phoenix.run("conversations", "show", one["session_id"], "--json")).out)
        modes.append((shown["permission_mode"], shown["sandbox"]))
    assert modes == [("auto", "read-only"), ("ask", "workspace"), ("auto", "workspace"), ("ask", "workspace")]


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
    await shell.enter(text, until=lambda: conversation.caps)
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


async def test_letters_go_on_where_they_were_when_a_message_comes_back(shell: Shell, engine: FakeEngine) -> None:
    await shell.open(engine.seed("first", messages=2))
    decide = held(shell.conversation)
    await sends(shell, "deploy")
    await shell.type("ac", "left")
    decide.set()
    await shell.until(lambda: "deploy" in shell.composer.text)
    await shell.type("b")
    assert shell.composer.text == "deploy\nabc"


async def test_an_image_attached_while_a_message_is_sent_belongs_to_the_next_one(
    shell: Shell, engine: FakeEngine
) -> None:
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


def kept(shell: Any) -> list[str]:
    launch = shell.ctx.active.launch
    return [one.text for one in DraftStash(launch.state_folder, launch.cwd).all()]


async def test_alt_q_puts_the_draft_aside_and_brings_the_newest_back(open_live: OpenLive) -> None:
    async with open_live((120, 40)) as shell:
        for text in ("first thought", "second thought"):
            await shell.type(text, "alt+q", until=lambda: shell.composer.text == "")
        assert kept(shell) == ["second thought", "first thought"]
        assert shell.toasts[-1].startswith("Put aside (2 drafts). Alt+Q on an empty line brings it back")
        await shell.press("alt+q", until=lambda: shell.composer.text == "second thought")
        assert kept(shell) == ["first thought"]


async def test_without_a_draft_it_says_so(open_live: OpenLive) -> None:
    async with open_live((120, 40)) as shell:
        await shell.press("alt+q", until=lambda: shell.toasts)
        assert shell.toasts == ["No draft is put aside."]


async def test_a_draft_chosen_in_the_list_changes_places_with_the_one_being_written(open_live: OpenLive) -> None:
    async with open_live((120, 40)) as shell:
        await shell.enter("/stash an old idea", until=lambda: kept(shell) == ["an old idea"])
        await shell.type("half a sentence")
        shell.screen.action_command("stash")
        await shell.until(lambda: isinstance(shell.top, PickerSheet) and "an old idea" in shell.text)
        await shell.press("enter", until=lambda: shell.composer.text == "an old idea")
        assert kept(shell) == ["half a sentence"]
