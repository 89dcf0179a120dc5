"""Writing: what Enter, paste, history and completions do."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from textual import events

from engine.executor.requests import RunCaps
from engine.machine.states import AwaitingLlm, Errored
from phoenix_tui.features.catalogue import COMMANDS
from tests.support.fake_engine import FakeEngine

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


async def test_enter_sends_and_empties_the_box(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("hello there")
        assert conversation.said == [("hello there", ())]
        assert shell.composer.text == ""


async def test_a_line_typed_before_anything_is_open_is_sent_when_it_is(open_shell: Any, engine: FakeEngine) -> None:
    async with open_shell() as shell:
        shell.composer.keys.starting = True
        await shell.type("early")
        await shell.pilot.press("ctrl+j")
        await shell.until(lambda: shell.in_view and shell.conversation.said)
        assert shell.conversation.said == [("early", ())]


async def test_what_is_typed_while_a_conversation_opens_stands_behind_its_draft_and_is_sent_once(
    open_shell: Any, engine: FakeEngine
) -> None:
    kept = engine.seed("kept", draft="Please ", messages=2)
    async with open_shell(conversation_id=kept.id) as shell:
        shell.dock.is_loaded = False
        shell.composer.load("now")
        await shell.open(kept)
        assert shell.composer.text == "Please now"
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.conversation.said)
        assert (shell.conversation.said, shell.composer.text) == ([("Please now", ())], "")


async def test_a_newline_grows_the_box_upwards_and_its_last_row_stays(open_shell: Any) -> None:
    async with open_shell() as shell:
        last_row = shell.composer.region.bottom
        await shell.type("one")
        await shell.pilot.press("ctrl+j", "t", "alt+enter", "x")
        await shell.pilot.pause()
        assert shell.composer.text == "one\nt\nx"
        assert (shell.composer.region.height, shell.composer.region.bottom) == (3, last_row)


async def test_a_refused_message_stands_in_the_box_again_with_what_was_typed_since(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("first")
        assert isinstance(conversation.state, AwaitingLlm)
        await shell.type("second")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.composer.text == "second")
        assert any("busy" in toast for toast in shell.toasts)
        assert len(conversation.said) == 1


async def test_the_caps_of_the_command_line_hold_for_every_run(open_shell: Any) -> None:
    caps = RunCaps(max_turns=3, max_budget_usd=0.5, timeout=60.0)
    async with open_shell(caps=caps) as shell:
        conversation = await shell.say("first")
        await shell.type("now")
        await shell.pilot.press("ctrl+s")
        await shell.until(lambda: len(conversation.said) == 2)
        conversation.become(Errored(5, "network", "no answer", retryable=True, run_id="r"))
        await shell.pilot.press("enter")
        await shell.until(lambda: conversation.retried)
        assert conversation.caps == [caps, caps, caps]


async def test_ctrl_s_stops_the_run_and_sends(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("first")
        await shell.type("now")
        await shell.pilot.press("ctrl+s")
        await shell.until(lambda: len(conversation.said) == 2)
        assert conversation.cancelled == 1


async def test_a_draft_is_kept_per_conversation_and_comes_back(open_shell: Any, engine: FakeEngine) -> None:
    one, two = engine.seed("one", messages=1), engine.seed("two", messages=1, draft="for two")
    async with open_shell() as shell:
        await shell.open(one)
        await shell.type("for one")
        await shell.open(two)
        assert shell.composer.text == "for two"
        assert one.record.draft == "for one"
        await shell.open(one)
        assert shell.composer.text == "for one"


async def test_a_draft_is_stored_when_typing_pauses(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.type("not yet sent")
        await shell.until(lambda: shell.in_view and shell.conversation.record.draft == "not yet sent")


async def test_a_new_conversation_that_was_emptied_again_vanishes(open_shell: Any, engine: FakeEngine) -> None:
    async with open_shell() as shell:
        await shell.type("x")
        await shell.until(lambda: shell.in_view and shell.conversation.record.draft == "x")
        await shell.pilot.press("backspace")
        await shell.pilot.press("ctrl+n")
        await shell.until(lambda: shell.in_view is None)
        assert await engine.list() == []


async def test_up_brings_back_older_prompts_and_down_what_was_being_written(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("first prompt")
        conversation.answer_with("done")
        await shell.type("second prompt")
        await shell.pilot.press("enter")
        await shell.until(lambda: len(conversation.said) == 2)
        await shell.type("new")
        await shell.pilot.press("up")
        assert shell.composer.text == "second prompt"
        await shell.pilot.press("up", "up")
        assert shell.composer.text == "first prompt"
        await shell.pilot.press("down", "down")
        assert shell.composer.text == "new"


async def test_esc_esc_clears_the_draft_into_the_history(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.type("precious")
        await shell.press_at_once("escape", "escape")
        assert shell.composer.text == ""
        await shell.pilot.press("up")
        assert shell.composer.text == "precious"


async def test_ten_megabytes_pasted_stand_as_one_mark_and_are_sent_whole(open_shell: Any) -> None:
    whole = "\n".join("a line of text" for _ in range(700_000))
    async with open_shell() as shell:
        shell.composer.post_message(events.Paste(whole))
        await shell.until(lambda: shell.composer.text)
        assert shell.composer.text == "[pasted 1: 700,000 lines, 10.5 M characters]"
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.in_view and shell.conversation.said)
        assert shell.conversation.said[0][0] == whole


async def test_a_paste_is_cleaned_of_everything_that_acts(open_shell: Any) -> None:
    async with open_shell() as shell:
        shell.composer.post_message(events.Paste("a\rb\r\n\x1b]52;c;aGk=\x07c\x1b[2J\x00"))
        await shell.until(lambda: shell.composer.text)
        assert shell.composer.text == "a\nb\nc"


async def test_a_dropped_image_path_becomes_an_attachment(open_shell: Any, tmp_path: Path) -> None:
    image = tmp_path / "my picture.png"
    image.write_bytes(PNG)
    for form in (f"'{image}'", str(image).replace(" ", "\\ "), image.as_uri(), str(image)):
        async with open_shell() as shell:
            shell.composer.post_message(events.Paste(form))
            await shell.until(lambda: shell.dock.chips.images)
            await shell.until(lambda: "[image 1: 640×480]" in shell.text)
            assert shell.composer.text == ""
            conversation = await shell.say("look")
            assert conversation.said == [("look", ("image-1",))]
            assert shell.dock.chips.images == ()


async def test_a_command_attaches_a_file_by_its_path_from_the_folder(open_shell: Any, tmp_path: Path) -> None:
    (tmp_path / "my picture.png").write_bytes(PNG)
    async with open_shell() as shell:
        for number, name in enumerate(("my picture.png", f'"{tmp_path / "my picture.png"}"'), 1):
            shell.composer.load(f"/image {name}")
            await shell.pilot.press("enter")
            await shell.until(lambda number=number: len(shell.dock.chips.images) == number)
        shell.composer.load("/image nowhere.png")
        await shell.pilot.press("enter")
        await shell.until(lambda: "nowhere.png cannot be read: No such file or directory." in shell.toasts)
        assert len(shell.dock.chips.images) == 2
        shell.screen.action_command("image")
        await shell.until(lambda: "Image file" in shell.text)
        await shell.type("my picture.png")
        await shell.pilot.press("enter")
        await shell.until(lambda: len(shell.dock.chips.images) == 3)


async def test_a_dropped_text_file_stays_text(open_shell: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    async with open_shell() as shell:
        shell.composer.post_message(events.Paste(str(tmp_path / "a.txt")))
        await shell.until(lambda: shell.composer.text == str(tmp_path / "a.txt"))


async def test_a_file_that_is_no_image_is_refused_in_words(open_shell: Any, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"text")
    async with open_shell() as shell:
        shell.composer.post_message(events.Paste(str(tmp_path / "a.png")))
        await shell.until(lambda: "This is no image." in shell.toasts)


async def test_an_unsent_image_keeps_its_conversation_and_is_there_again(open_shell: Any, tmp_path: Path) -> None:
    async with open_shell() as shell:
        await shell.ctx.sending.attaching.attach([PNG])
        conversation = shell.conversation
        await shell.pilot.press("ctrl+n")
        await shell.until(lambda: shell.in_view is None)
        assert (conversation.record.deleted, shell.dock.chips.images) == (False, ())
        await shell.open(conversation)
        assert [image.id for image in shell.dock.chips.images] == ["image-1"]


async def test_a_conversation_whose_first_message_is_on_its_way_is_not_put_away(
    open_shell: Any, engine: FakeEngine
) -> None:
    release = asyncio.Event()
    async with open_shell() as shell:
        conversation = await shell.active.current()
        say = conversation.say

        async def slowly(*asked: Any) -> Any:
            await release.wait()
            return await say(*asked)

        conversation.say = slowly
        await shell.type("hello")
        await shell.pilot.press("enter", "ctrl+n")
        await shell.until(lambda: shell.in_view is None)
        release.set()
        await shell.until(lambda: conversation.said)
        assert not conversation.record.deleted
        assert conversation.id in engine.opened


async def test_an_empty_conversation_vanishes_when_it_is_left(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.active.current()
        await shell.pilot.press("ctrl+n")
        await shell.until(lambda: shell.in_view is None)
        await shell.until(lambda: conversation.record.deleted)


async def test_backspace_on_an_empty_text_drops_the_last_image(open_shell: Any, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    async with open_shell() as shell:
        shell.composer.post_message(events.Paste(str(tmp_path / "a.png")))
        await shell.until(lambda: shell.dock.chips.images)
        await shell.pilot.press("backspace")
        await shell.until(lambda: not shell.dock.chips.images)


async def test_a_slash_opens_completions_above_the_box_which_does_not_move(open_shell: Any) -> None:
    async with open_shell() as shell:
        row = shell.composer.region.y
        await shell.type("/re")
        await shell.until(lambda: shell.dock.popup.display)
        assert "/resume" in shell.text
        assert shell.composer.region.y == row
        assert "Esc closes" in shell.status
        await shell.pilot.press("down", "tab")
        await shell.until(lambda: shell.composer.text == "/rename ")


async def test_completions_stand_below_one_another_and_above_what_is_written(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.type("/sp")
        await shell.until(lambda: shell.dock.popup.display)
        await shell.type("l")
        await shell.until(lambda: "/split TITLE|ID  open another conversation" in shell.text)
        rows = shell.text.splitlines()
        offered = next(row for row in rows if "/split TITLE|ID" in row)
        written = next(row for row in rows if row.rstrip().endswith("/spl"))
        assert offered.index("/split") == written.index("/spl")


async def test_more_completions_than_fit_are_counted(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.type("/")
        await shell.until(lambda: shell.dock.popup.display)
        await shell.until(lambda: f"+{len(COMMANDS) - 8} more" in shell.text)
        await shell.until(lambda: shell.in_view and shell.conversation.record.draft == "/")
        assert shell.status.endswith("Esc closes")
        await shell.type("re")
        await shell.until(lambda: "/resume" in shell.text)
        assert not re.search(r"\+\d+ more", shell.text)


async def test_a_file_is_found_by_its_letters_after_an_at(open_shell: Any, tmp_path: Path) -> None:
    (tmp_path / "pool").mkdir()
    for name in ("pool/connection.py", "pool/other.py", "readme.md"):
        (tmp_path / name).write_text("x")
    async with open_shell() as shell:
        await shell.type("see @conn")
        await shell.until(lambda: shell.dock.popup.display)
        await shell.pilot.press("tab")
        await shell.until(lambda: shell.composer.text == "see @pool/connection.py ")


async def test_an_exclamation_mark_runs_a_command_and_two_keep_it_from_the_model(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.type("!ls")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.in_view and shell.conversation.shells)
        await shell.type("!!id")
        await shell.pilot.press("enter")
        await shell.until(lambda: len(shell.conversation.shells) == 2)
        assert shell.conversation.shells == [("ls", True), ("id", False)]


async def test_the_rule_above_says_who_gets_the_output_of_a_command_and_tab_switches_it(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.type("!no-such-program")
        await shell.until(lambda: "the model reads the output · Tab for you only" in shell.text)
        await shell.pilot.press("tab")
        await shell.until(lambda: shell.composer.text == "!!no-such-program")
        await shell.until(lambda: "only you see the output" in shell.text)
        await shell.pilot.press("tab", "x")
        await shell.until(lambda: shell.composer.text == "!no-such-programx")
        shell.composer.load("")
        await shell.until(lambda: "shell ·" not in shell.text)


async def test_the_first_letter_opens_the_connection_once(open_shell: Any, engine: FakeEngine) -> None:
    async with open_shell() as shell:
        await shell.open(engine.seed("one", messages=1))
        await shell.type("abc")
        await shell.until(lambda: shell.conversation.warmed)
        assert shell.conversation.warmed == 1


def test_the_screens_load_nothing_heavy_before_the_first_frame() -> None:
    heavy = (
        "anthropic openai httpx httpx2 pydantic mcp PIL genai_prices keyring psutil tomlkit ignore pygments markdown_it"
    )
    code = f"import sys, phoenix_tui.app; print([name for name in {heavy.split()} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert loaded.stdout.strip() == "[]"
