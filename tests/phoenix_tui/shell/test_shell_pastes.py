"""Long pastes: one mark that is opened, changed and deleted whole, and keeps its place after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual import events

from phoenix_tui.features.composing import ENTRY_LIMIT, join_draft
from phoenix_tui.modals.text_sheet import EditSheet
from phoenix_tui.widgets.pasting import PasteStore

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


async def test_an_emoji_of_several_that_is_typed_stays_one(open_shell: Any) -> None:
    async with open_shell() as shell:
        for letter in "so 👩\u200d💻":
            shell.app.post_message(events.Key("zero_width_joiner" if letter == "\u200d" else letter, letter))
        await shell.until(lambda: shell.composer.text == "so 👩\u200d💻")


async def test_a_long_paste_is_one_mark_that_enter_opens_and_the_change_is_sent(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.type("see ")
        await paste(shell, LONG)
        assert shell.composer.text == f"see {MARK}"
        await shell.pilot.press("left", "enter")
        await shell.until(lambda: isinstance(shell.top, EditSheet))
        assert "pasted 1: 100 lines" in shell.text
        await shell.type("!")
        await shell.pilot.press("ctrl+s")
        await shell.until(lambda: shell.composer.text == "see [pasted 1: 100 lines, 790 characters]")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.in_view and shell.conversation.said)
        assert shell.conversation.said[0][0] == f"see {LONG}!"


async def test_enter_behind_words_that_were_just_written_before_a_mark_sends(open_shell: Any) -> None:
    async with open_shell() as shell:
        await paste(shell, LONG)
        await shell.pilot.press("home")
        await shell.type("see ")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.in_view and shell.conversation.said)
        assert shell.conversation.said[0][0] == f"see {LONG}"


async def test_a_paste_made_short_stands_in_the_text(open_shell: Any) -> None:
    async with open_shell() as shell:
        await paste(shell, LONG)
        await shell.pilot.press("home", "enter")
        await shell.until(lambda: isinstance(shell.top, EditSheet))
        shell.top.query_one("TextArea").text = "short"
        await shell.pilot.press("ctrl+s")
        await shell.until(lambda: shell.composer.text == "short")


async def test_the_cursor_and_the_deleting_keys_take_a_mark_as_one_thing(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.type("a ")
        await paste(shell, LONG)
        await shell.type("b")
        await shell.pilot.press("left", "left", "x")
        await shell.until(lambda: shell.composer.text == f"a x{MARK}b")
        await shell.pilot.press("right", "backspace")
        await shell.until(lambda: shell.composer.text == "a xb")
        await shell.pilot.press("ctrl+underscore")
        await shell.until(lambda: shell.composer.text == f"a x{MARK}b")
        shell.composer.move_cursor((0, 3 + len(MARK)))
        await shell.pilot.press("ctrl+w")
        await shell.until(lambda: shell.composer.text == "a xb")
        await shell.pilot.press("ctrl+y")
        await shell.until(lambda: shell.composer.content == f"a x{LONG}b")


async def test_a_click_on_a_mark_opens_it_and_a_click_beside_it_does_not(open_shell: Any) -> None:
    async with open_shell() as shell:
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


async def test_a_paste_becomes_a_file_that_the_message_names(open_shell: Any, tmp_path: Path) -> None:
    async with open_shell() as shell:
        await paste(shell, LONG)
        await shell.pilot.press("home", "enter")
        await shell.until(lambda: isinstance(shell.top, EditSheet))
        await shell.pilot.press("ctrl+f")
        await shell.until(lambda: shell.composer.text.startswith("@/"))
        assert content_and_mode(Path(shell.composer.text[1:])) == (LONG, 0o600)


async def test_what_is_no_text_in_a_paste_is_taken_out_and_said(open_shell: Any) -> None:
    async with open_shell() as shell:
        shell.composer.post_message(events.Paste("a\x07b" + "x" * 100))
        await shell.until(lambda: "1 control characters were removed from the paste." in shell.toasts)
        assert shell.composer.text == "ab" + "x" * 100
        shell.composer.load("")
        shell.composer.post_message(events.Paste("\x01\x02\ufffdELF" * 100))
        await shell.until(lambda: any("The paste is not text" in toast for toast in shell.toasts))


async def test_a_paste_beyond_what_the_model_reads_says_so(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.say("go")
        await paste(shell, "word " * 200_000)
        await shell.until(lambda: any("the model reads 200,000" in toast for toast in shell.toasts))


async def test_of_ten_megabytes_the_ends_are_shown_at_once_and_all_of_it_is_sent(open_shell: Any) -> None:
    whole = "\n".join(f"line {number} {'x' * 50}" for number in range(170_000))
    async with open_shell() as shell:
        shell.composer.post_message(events.Paste(whole))
        await shell.until(lambda: "[pasted 1: 170,000 lines, 10.6 M characters]" in shell.composer.text)
        await shell.pilot.press("home", "enter")
        await shell.until(lambda: isinstance(shell.top, EditSheet))
        await shell.until(lambda: "Ctrl+G opens your editor" in shell.text)
        assert "line 0" in shell.text
        await shell.pilot.press("x", "escape")
        await shell.until(lambda: not isinstance(shell.top, EditSheet))
        await shell.pilot.press("end", "enter")
        await shell.until(lambda: shell.in_view and shell.conversation.said)
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
        await shell.pilot.press("up")
        await shell.until(lambda: shell.composer.text == "before")
        await shell.pilot.press("ctrl+underscore", "ctrl+underscore")
        await shell.until(lambda: shell.composer.content == f"see {huge}")
