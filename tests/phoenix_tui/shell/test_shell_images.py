"""Images and pastes in the composer: attached, in order, sent, removed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from textual import events

from engine.executor.requests import EngineError
from engine.ports import ConversationChanges
from engine.records import Attachment, PermissionMode
from phoenix_tui.features.composing import ENTRY_LIMIT, join_draft, parse_draft
from phoenix_tui.modals.image_sheet import ImageSheet
from phoenix_tui.modals.text_sheet import EditSheet
from phoenix_tui.widgets.pasting import PasteStore
from phoenix_tui.widgets.queue_panel import QueuePanel
from phoenix_tui.workspace.actions import PASTE_AGAIN
from tests.support.fake_engine import FakeConversation, FakeEngine
from tests.support.shell import Shell

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
        await shell.press("enter", until=lambda: one.said)
        assert one.said == [("look", ("image-1",))]
        await shell.until(lambda: not one.record.draft)


async def test_an_image_dropped_before_all_is_ready_leaves_the_composer_where_it_is(
    shell: Shell, tmp_path: Path
) -> None:
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
        await shell.press("backspace", until=lambda: one.record.draft == "")


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
            await shell.press("enter", until=lambda: shell.toasts == ["demo/guide cannot see images."])
            assert chips.trouble == "demo/guide cannot see images."
        await one.change(ConversationChanges(model="anthropic/claude-sonnet-5-5"))
        assert chips.trouble == ""
        await shell.press("enter", until=lambda: chips.trouble)
        await shell.press("backspace", until=lambda: not chips.images)
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
        await shell.enter("look", until=lambda: one.caps)
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
        assert "640×480 · 1 KB · png" in shell.text
        await shell.press("right", "d", until=lambda: len(chips.images) == 1)
        assert chips.images[0].id == "image-2"
        await shell.press("escape", until=lambda: not isinstance(shell.top, ImageSheet))


OpenShell = Callable[..., AbstractAsyncContextManager[Shell]]


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
        await shell.enter("look")
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
        await shell.press("ctrl+v", until=asked.is_set)
        await shell.open(second)
        released.set()
        await shell.until(lambda: PASTE_AGAIN in shell.toasts)
        assert (shell.composer.text, shell.dock.chips.images) == ("", ())


async def test_an_edited_message_that_was_sent_meanwhile_returns_to_the_composer(
    shell: Shell, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shell.open(engine.seed("first", messages=2))
    await shell.conversation.queue.add("wait")

    async def refused(_: str, text: str) -> None:
        raise EngineError("It has been sent.")

    monkeypatch.setattr(shell.conversation.queue, "edit", refused)
    (message,) = shell.conversation.queue.waiting
    shell.screen.startup.act(lambda actions: actions.change_queue(QueuePanel.Wanted("edit", message)))
    await shell.shows("Queued message")
    await shell.type(" more", "ctrl+s", until=lambda: shell.composer.text)
    assert (shell.composer.text, shell.toasts) == ("wait more", ["It has been sent."])


LONG = "\n".join(f"line {number}" for number in range(100))
MARK = "[pasted 1: 100 lines, 789 characters]"


async def paste(shell: Any, text: str) -> None:
    shell.composer.post_message(events.Paste(text))
    await shell.until(lambda: "[pasted" in shell.composer.text or text[:5] in shell.composer.text)


def content_and_mode(path: Path) -> tuple[str, int]:
    return path.read_text(), path.stat().st_mode & 0o777


def test_a_mark_counts_lines_as_people_do() -> None:
    shelf = PasteStore()
    marks = [shelf.fold(text) for text in ("x" * 6_803, "line\n" * 400)]
    assert marks == ["[pasted 1: 1 line, 6,803 characters]", "[pasted 2: 400 lines, 2,000 characters]"]


async def test_an_emoji_of_several_that_is_typed_stays_one(shell: Shell) -> None:
    for letter in "so 👩\u200d💻":
        shell.app.post_message(events.Key("zero_width_joiner" if letter == "\u200d" else letter, letter))
    await shell.until(lambda: shell.composer.text == "so 👩\u200d💻")


async def test_a_long_paste_is_one_mark_that_enter_opens_and_the_change_is_sent(shell: Shell) -> None:
    await shell.type("see ")
    await paste(shell, LONG)
    assert shell.composer.text == f"see {MARK}"
    await shell.press("left", "enter", until=lambda: isinstance(shell.top, EditSheet))
    assert "pasted 1: 100 lines" in shell.text
    await shell.type("!", "ctrl+s", until=lambda: shell.composer.text == "see [pasted 1: 100 lines, 790 characters]")
    await shell.press("enter", until=lambda: shell.in_view and shell.conversation.said)
    assert shell.conversation.said[0][0] == f"see {LONG}!"


async def test_enter_behind_words_that_were_just_written_before_a_mark_sends(shell: Shell) -> None:
    await paste(shell, LONG)
    await shell.press("home")
    await shell.enter("see ", until=lambda: shell.in_view and shell.conversation.said)
    assert shell.conversation.said[0][0] == f"see {LONG}"


async def test_a_paste_made_short_stands_in_the_text(shell: Any) -> None:
    await paste(shell, LONG)
    await shell.press("home", "enter", until=lambda: isinstance(shell.top, EditSheet))
    shell.top.query_one("TextArea").text = "short"
    await shell.press("ctrl+s", until=lambda: shell.composer.text == "short")


async def test_the_cursor_and_the_deleting_keys_take_a_mark_as_one_thing(shell: Shell) -> None:
    await shell.type("a ")
    await paste(shell, LONG)
    await shell.type("b", "left", "left", "x", until=lambda: shell.composer.text == f"a x{MARK}b")
    await shell.press("right", "backspace", until=lambda: shell.composer.text == "a xb")
    await shell.press("ctrl+underscore", until=lambda: shell.composer.text == f"a x{MARK}b")
    shell.composer.move_cursor((0, 3 + len(MARK)))
    await shell.press("ctrl+w", until=lambda: shell.composer.text == "a xb")
    await shell.press("ctrl+y", until=lambda: shell.composer.content == f"a x{LONG}b")


async def test_a_click_on_a_mark_opens_it_and_a_click_beside_it_does_not(shell: Shell) -> None:
    await shell.type("ab ")
    await paste(shell, LONG)
    await shell.pilot.click(shell.composer, offset=(3, 0))
    await shell.pilot.pause()
    assert not isinstance(shell.top, EditSheet)
    await shell.pilot.click(shell.composer, offset=(9, 0))
    await shell.until(lambda: isinstance(shell.top, EditSheet))


async def test_a_draft_with_a_mark_comes_back_with_the_mark_where_it_was(open_shell: Any, engine: Any) -> None:
    kept = engine.seed("kept", messages=2)
    async with open_shell(conversation_id=kept.id) as shell:
        await shell.type("see ")
        await paste(shell, LONG)
        await shell.type(" ok")
        draft = join_draft(f"see {LONG} ok", (), ((4, len(LONG)),))
        await shell.until(lambda: shell.conversation.record.draft == draft)
    async with open_shell(conversation_id=kept.id) as shell:
        await shell.until(lambda: shell.composer.text == f"see {MARK} ok")
        assert shell.composer.content == f"see {LONG} ok"


async def test_a_paste_becomes_a_file_that_the_message_names(shell: Shell, tmp_path: Path) -> None:
    await paste(shell, LONG)
    await shell.press("home", "enter", until=lambda: isinstance(shell.top, EditSheet))
    await shell.press("ctrl+f", until=lambda: shell.composer.text.startswith("@/"))
    assert content_and_mode(Path(shell.composer.text[1:])) == (LONG, 0o600)


async def test_what_is_no_text_in_a_paste_is_taken_out_and_said(shell: Shell) -> None:
    shell.composer.post_message(events.Paste("a\x07b" + "x" * 100))
    await shell.until(lambda: "1 control characters were removed from the paste." in shell.toasts)
    assert shell.composer.text == "ab" + "x" * 100
    shell.composer.load("")
    shell.composer.post_message(events.Paste("\x01\x02\ufffdELF" * 100))
    await shell.until(lambda: any("The paste is not text" in toast for toast in shell.toasts))


async def test_a_paste_beyond_what_the_model_reads_says_so(shell: Shell) -> None:
    await shell.say("go")
    await paste(shell, "word " * 200_000)
    await shell.until(lambda: any("the model reads 200,000" in toast for toast in shell.toasts))


async def test_of_ten_megabytes_the_ends_are_shown_at_once_and_all_of_it_is_sent(open_shell: Any) -> None:
    whole = "\n".join(f"line {number} {'x' * 50}" for number in range(170_000))
    async with open_shell() as shell:
        shell.composer.post_message(events.Paste(whole))
        await shell.until(lambda: "[pasted 1: 170,000 lines, 10.6 M characters]" in shell.composer.text)
        await shell.press("home", "enter", until=lambda: isinstance(shell.top, EditSheet))
        await shell.until(lambda: "Ctrl+G opens your editor" in shell.text)
        assert "line 0" in shell.text
        await shell.press("x", "escape", until=lambda: not isinstance(shell.top, EditSheet))
        await shell.press("end", "enter", until=lambda: shell.in_view and shell.conversation.said)
        assert shell.conversation.said[0][0] == whole


async def test_a_cleared_draft_with_a_long_paste_is_never_lost(open_shell: Any) -> None:
    huge = f"{LONG}\n{'x' * ENTRY_LIMIT}"
    async with open_shell() as shell:
        shell.composer.draft.prompts.add("before")
        await shell.type("see ")
        await paste(shell, huge)
        await shell.press_at_once("escape", "escape")
        assert shell.composer.content == ""
        assert "Ctrl+_ restores it" in shell.toasts[-1]
        await shell.press("up", until=lambda: shell.composer.text == "before")
        await shell.press("ctrl+underscore", "ctrl+underscore", until=lambda: shell.composer.content == f"see {huge}")
