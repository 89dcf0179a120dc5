"""Writing in the composer: editing, history, an external editor, keys typed ahead."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from textual import events

from engine.executor.requests import RunCaps
from engine.machine.states import AwaitingLlm, Errored
from phoenix_tui.features.catalogue import LISTED
from phoenix_tui.modals.find_sheet import HistorySheet
from phoenix_tui.workspace import draft_store
from tests.support.clocks import SteppedClock
from tests.support.fake_engine import FakeEngine
from tests.support.shell import Shell
from tools.terminal.values import TerminalModes

pytestmark = pytest.mark.usefixtures("tab_waits")

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


async def test_enter_sends_and_empties_the_box(shell: Shell) -> None:
    conversation = await shell.say("hello there")
    assert conversation.said == [("hello there", ())]
    assert shell.composer.text == ""


async def test_a_line_typed_before_anything_is_open_is_sent_when_it_is(shell: Shell, engine: FakeEngine) -> None:
    shell.composer.keys.starting = True
    await shell.type("early", "ctrl+j", until=lambda: shell.in_view and shell.conversation.said)
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
        await shell.press("enter", until=lambda: shell.conversation.said)
        assert (shell.conversation.said, shell.composer.text) == ([("Please now", ())], "")


async def test_a_newline_grows_the_box_upwards_and_its_last_row_stays(shell: Shell) -> None:
    last_row = shell.composer.region.bottom
    await shell.type("one", "ctrl+j", "t", "alt+enter", "x")
    await shell.pilot.pause()
    assert shell.composer.text == "one\nt\nx"
    assert (shell.composer.region.height, shell.composer.region.bottom) == (3, last_row)


async def test_a_refused_message_stands_in_the_box_again_with_what_was_typed_since(shell: Shell) -> None:
    conversation = await shell.say("first")
    assert isinstance(conversation.state, AwaitingLlm)
    await shell.enter("second", until=lambda: shell.composer.text == "second")
    assert "Still working" in shell.text
    assert len(conversation.said) == 1


async def test_the_caps_of_the_command_line_hold_for_every_run(open_shell: Any) -> None:
    caps = RunCaps(max_turns=3, max_budget_usd=0.5, timeout=60.0)
    async with open_shell(caps=caps) as shell:
        conversation = await shell.say("first")
        await shell.type("now", "ctrl+s", until=lambda: len(conversation.said) == 2)
        conversation.become(Errored(5, "network", "no answer", retryable=True, run_id="r"))
        await shell.press("enter", until=lambda: conversation.retried)
        assert conversation.caps == [caps, caps, caps]


async def test_ctrl_s_stops_the_run_and_sends(shell: Shell) -> None:
    conversation = await shell.say("first")
    await shell.type("now", "ctrl+s", until=lambda: len(conversation.said) == 2)
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


async def test_a_draft_is_stored_when_typing_pauses(shell: Shell) -> None:
    await shell.type("not yet sent", until=lambda: shell.in_view and shell.conversation.record.draft == "not yet sent")


async def test_a_new_conversation_that_was_emptied_again_vanishes(shell: Shell, engine: FakeEngine) -> None:
    await shell.type("x", until=lambda: shell.in_view and shell.conversation.record.draft == "x")
    await shell.press("backspace")
    await shell.press("ctrl+n", until=lambda: shell.in_view is None)
    assert await engine.list() == []


async def test_up_brings_back_older_prompts_and_down_what_was_being_written(shell: Shell) -> None:
    conversation = await shell.say("first prompt")
    conversation.answer_with("done")
    await shell.enter("second prompt", until=lambda: len(conversation.said) == 2)
    await shell.type("new", "up")
    assert shell.composer.text == "second prompt"
    await shell.press("up", "up")
    assert shell.composer.text == "first prompt"
    await shell.press("down", "down")
    assert shell.composer.text == "new"


async def test_esc_esc_clears_the_draft_into_the_history(shell: Shell) -> None:
    await shell.type("precious")
    await shell.press_at_once("escape", "escape")
    assert shell.composer.text == ""
    await shell.press("up")
    assert shell.composer.text == "precious"


async def test_ten_megabytes_pasted_stand_as_one_mark_and_are_sent_whole(open_shell: Any) -> None:
    whole = "\n".join("a line of text" for _ in range(700_000))
    async with open_shell() as shell:
        shell.composer.post_message(events.Paste(whole))
        await shell.until(lambda: shell.composer.text)
        assert shell.composer.text == "[pasted 1: 700,000 lines, 10.5 M characters]"
        await shell.press("enter", until=lambda: shell.in_view and shell.conversation.said)
        assert shell.conversation.said[0][0] == whole


async def test_a_paste_is_cleaned_of_everything_that_acts(shell: Shell) -> None:
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
            await shell.press("enter", until=lambda number=number: len(shell.dock.chips.images) == number)
        shell.composer.load("/image nowhere.png")
        await shell.press("enter")
        await shell.until(lambda: "nowhere.png cannot be read: No such file or directory." in shell.toasts)
        assert len(shell.dock.chips.images) == 2
        shell.screen.action_command("image")
        await shell.until(lambda: "Image file" in shell.text)
        await shell.enter("my picture.png", until=lambda: len(shell.dock.chips.images) == 3)


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


async def test_an_unsent_image_keeps_its_conversation_and_is_there_again(shell: Shell, tmp_path: Path) -> None:
    await shell.ctx.sending.attaching.attach([PNG])
    conversation = shell.conversation
    await shell.press("ctrl+n", until=lambda: shell.in_view is None)
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
        await shell.type("hello", "enter", "ctrl+n", until=lambda: shell.in_view is None)
        release.set()
        await shell.until(lambda: conversation.said)
        assert not conversation.record.deleted
        assert conversation.id in engine.opened


async def test_an_empty_conversation_vanishes_when_it_is_left(shell: Shell) -> None:
    conversation = await shell.active.current()
    await shell.press("ctrl+n", until=lambda: shell.in_view is None)
    await shell.until(lambda: conversation.record.deleted)


async def test_backspace_on_an_empty_text_drops_the_last_image(open_shell: Any, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    async with open_shell() as shell:
        shell.composer.post_message(events.Paste(str(tmp_path / "a.png")))
        await shell.until(lambda: shell.dock.chips.images)
        await shell.press("backspace", until=lambda: not shell.dock.chips.images)


async def test_a_slash_opens_completions_above_the_box_which_does_not_move(shell: Shell) -> None:
    row = shell.composer.region.y
    await shell.type("/re", until=lambda: shell.dock.popup.display)
    assert "/resume" in shell.text
    assert shell.composer.region.y == row
    assert "Esc closes" in shell.status
    await shell.press("down", "tab", until=lambda: shell.composer.text == "/rename ")


async def test_completions_stand_below_one_another_and_above_what_is_written(shell: Shell) -> None:
    await shell.type("/sp", until=lambda: shell.dock.popup.display)
    await shell.type("l", shows="/split TITLE|ID  open another conversation")
    rows = shell.text.splitlines()
    offered = next(row for row in rows if "/split TITLE|ID" in row)
    written = next(row for row in rows if row.rstrip().endswith("/spl"))
    assert offered.index("/split") == written.index("/spl")


async def test_more_completions_than_fit_are_counted(shell: Shell) -> None:
    await shell.type("/", until=lambda: shell.dock.popup.display)
    await shell.until(lambda: f"+{len(LISTED) - 8} more" in shell.text)
    await shell.until(lambda: shell.in_view and shell.conversation.record.draft == "/")
    assert shell.status.endswith("Esc closes")
    await shell.type("re", shows="/resume")
    assert not re.search(r"\+\d+ more", shell.text)


async def test_a_file_is_found_by_its_letters_after_an_at(open_shell: Any, tmp_path: Path) -> None:
    (tmp_path / "pool").mkdir()
    for name in ("pool/connection.py", "pool/other.py", "readme.md"):
        (tmp_path / name).write_text("x")
    async with open_shell() as shell:
        await shell.type("see @conn", until=lambda: shell.dock.popup.display)
        await shell.press("tab", until=lambda: shell.composer.text == "see @pool/connection.py ")


async def test_an_exclamation_mark_runs_a_command_and_two_keep_it_from_the_model(shell: Shell) -> None:
    await shell.enter("!ls", until=lambda: shell.in_view and shell.conversation.shells)
    await shell.enter("!!id", until=lambda: len(shell.conversation.shells) == 2)
    assert shell.conversation.shells == [("ls", True), ("id", False)]


async def test_the_rule_above_says_who_gets_the_output_of_a_command_and_tab_switches_it(shell: Shell) -> None:
    await shell.type("!no-such-program", shows="the model reads the output · Tab for you only")
    await shell.press("tab", until=lambda: shell.composer.text == "!!no-such-program")
    await shell.until(lambda: "only you see the output" in shell.text)
    await shell.press("tab", "x", until=lambda: shell.composer.text == "!no-such-programx")
    shell.composer.load("")
    await shell.until(lambda: "shell ·" not in shell.text)


async def test_the_first_letter_opens_the_connection_once(shell: Shell, engine: FakeEngine) -> None:
    await shell.open(engine.seed("one", messages=1))
    await shell.type("abc", until=lambda: shell.conversation.warmed)
    assert shell.conversation.warmed == 1


def test_the_screens_load_nothing_heavy_before_the_first_frame() -> None:
    heavy = (
        "anthropic openai httpx httpx2 pydantic mcp PIL genai_prices keyring psutil tomlkit ignore pygments markdown_it"
    )
    code = f"import sys, phoenix_tui.app; print([name for name in {heavy.split()} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert loaded.stdout.strip() == "[]"


EDITED: Final = (
    ("one two three", ["ctrl+w"], "one two "),
    ("cd a/b-c", ["ctrl+w"], "cd "),
    ("cd a/b-c", ["alt+backspace"], "cd a/b-"),
    ("one two", ["ctrl+a", "alt+d"], " two"),
    ("one two", ["ctrl+a", "alt+f", "ctrl+k"], "one"),
    ("one two", ["alt+b", "ctrl+u"], "two"),
    ("one two", ["ctrl+w", "ctrl+w", "x", "ctrl+y"], "xone two"),
    ("one two", ["ctrl+w", "left", "ctrl+k", "ctrl+y", "alt+y"], "onetwo"),
    ("one two", ["ctrl+w", "ctrl+underscore"], "one two"),
    ("one two", ["ctrl+w", "ctrl+underscore", "alt+slash"], "one "),
    ("one", ["ctrl+j", "x", "ctrl+a", "ctrl+u"], "onex"),
    ("one", ["ctrl+j", "x", "up", "ctrl+e", "ctrl+k"], "onex"),
    ("one\\", ["enter", "x"], "one\nx"),
    ("one\\two", ["left", "left", "left", "x"], "one\\xtwo"),
)
"""Text, keys, and the text then."""


async def test_the_editing_keys_of_a_shell(shell: Shell) -> None:
    for text, keys, after in EDITED:
        shell.composer.keys.starting = False
        shell.composer.load(text)
        await shell.press(*keys)
        assert shell.composer.text == after


async def test_a_draft_is_stored_though_the_typing_goes_on(open_shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft_store, "PAUSE", 60.0)
    async with open_shell() as shell:
        await shell.type("never a pause", until=lambda: shell.in_view and shell.conversation.record.draft)


async def test_the_history_is_searched_as_one_types_and_undo_brings_the_draft_back(shell: Any) -> None:
    for text in ("fix the parser", "write a test", "fix the lexer"):
        shell.composer.draft.prompts.add(text)
    await shell.type("draft", "ctrl+r", until=lambda: isinstance(shell.top, HistorySheet))
    await shell.type("fix", shows="1 / 2 in this folder")
    assert "write a test" not in shell.text
    await shell.press("ctrl+r", "enter", until=lambda: shell.composer.text == "fix the parser")
    await shell.press("ctrl+underscore", until=lambda: shell.composer.text == "draft")
    await shell.press("ctrl+r", until=lambda: isinstance(shell.top, HistorySheet))
    await shell.type("zzz", "enter", "escape", until=lambda: not isinstance(shell.top, HistorySheet))
    assert shell.composer.text == "draft"


async def test_a_folder_is_entered_with_tab_and_its_files_are_offered(open_shell: Any, tmp_path: Path) -> None:
    (tmp_path / "pool" / "inner").mkdir(parents=True)
    (tmp_path / "pool" / "inner" / "deep.py").write_text("x")
    async with open_shell() as shell:
        await shell.type("@pool", shows="@pool/")
        await shell.press("tab", until=lambda: shell.composer.text == "@pool/")
        await shell.until(lambda: "@pool/inner/deep.py" in shell.text)
        await shell.type("deep", "tab", until=lambda: shell.composer.text == "@pool/inner/deep.py ")


async def test_a_name_in_quotation_marks_is_looked_for_over_its_blanks_and_before_others(
    open_shell: Any, tmp_path: Path
) -> None:
    for name in ("picker.py", "pic one.png", "pic two.png"):
        (tmp_path / name).write_text("x")
    async with open_shell() as shell:
        await shell.type('in @"pic', shows="picker.py")
        rows = [row.strip() for row in shell.text.split("\n") if "@" in row and "in @" not in row]
        assert rows[:3] == ['@"pic one.png"', '@"pic two.png"', "@picker.py"]
        await shell.type(" tw", until=lambda: "picker.py" not in shell.text and "pic two.png" in shell.text)
        await shell.press("tab", until=lambda: shell.composer.text == 'in @"pic two.png" ')


async def test_a_file_made_later_is_found_by_the_next_at(open_shell: Any, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("x")
    async with open_shell() as shell:
        await shell.type("@on", shows="@one.py")
        (tmp_path / "once.py").write_text("x")
        index = shell.dock.completer._files
        index._listed_at -= 60
        await shell.type("c", shows="@once.py")


async def test_a_conversation_is_offered_by_its_title_and_stands_for_its_id(open_shell: Any, engine: Any) -> None:
    other = engine.seed("Parser rewrite", messages=2)
    async with open_shell() as shell:
        await shell.type("as in @parser", shows="@Parser rewrite")
        await shell.press("tab", until=lambda: shell.composer.text == f"as in @conversation:{other.id[:8]} ")


async def test_what_may_follow_a_command_is_said_and_offered(shell: Shell) -> None:
    await shell.type("/rename ", shows="/rename TITLE")
    assert not shell.composer.keys.completing
    await shell.press("ctrl+u")
    await shell.type("/permissions au", shows="everything that stays in the sandbox runs")
    await shell.press("enter")
    await shell.shows("auto · sandbox")  # the draft may have begun a conversation, which has the mode then
    await shell.until(lambda: shell.composer.text == "")


async def test_prose_behind_a_quotation_mark_that_stays_open_is_no_name(open_shell: Any, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("x")
    async with open_shell() as shell:
        shell.composer.load(f'@"{"word " * 80}@on')
        await shell.type("e", until=lambda: shell.dock.popup.choice is not None)
        assert shell.dock.popup.choice.text == "@one.py"


GIVES_BACK = "your keys go to the program · Esc Esc or Ctrl+] returns"


async def typing(shell: Any) -> Any:
    """The terminal of a running line, to which the keys go."""
    conversation = await shell.say("go")
    conversation.terminal.modes = TerminalModes()
    await shell.press("ctrl+right_square_bracket", shows=GIVES_BACK)
    return conversation.terminal


def still(shell: Any) -> SteppedClock:
    """Stop the clock of the two presses."""
    clock = SteppedClock(1000.0)
    shell.screen.shell_typing.use(clock)
    return clock


async def test_every_key_goes_to_the_program(shell: Shell) -> None:
    terminal = await typing(shell)
    await shell.press("l", "s", "enter", "ctrl+c", "up", "tab", "q", "ctrl+q", "f1")
    assert b"".join(terminal.typed) == b"ls\r\x03\x1b[A\tq\x11\x1bOP"
    await shell.shows("Your keys go to the command above")
    assert shell.composer.text == ""


async def test_one_esc_reaches_it_and_a_second_gives_the_keys_back(shell: Shell) -> None:
    terminal = await typing(shell)
    clock = still(shell)
    await shell.press("escape")
    clock.seconds += 0.6
    await shell.press("escape")
    assert terminal.typed == [b"\x1b", b"\x1b"]
    clock.seconds += 0.4
    await shell.press("escape")
    await shell.lacks(GIVES_BACK)
    assert terminal.typed == [b"\x1b", b"\x1b"]
    assert shell.composer.has_focus
    await shell.press("x", until=lambda: shell.composer.text == "x")


async def test_the_key_again_gives_them_back(shell: Shell) -> None:
    terminal = await typing(shell)
    await shell.press("ctrl+right_square_bracket")
    await shell.lacks(GIVES_BACK)
    await shell.shows("Type your next message")
    assert terminal.typed == []


async def test_keys_right_behind_the_key_go_to_the_program(shell: Shell) -> None:
    conversation = await shell.say("go")
    conversation.terminal.modes = TerminalModes()
    await shell.press_at_once("ctrl+right_square_bracket", "y", "enter")
    await shell.until(lambda: b"".join(conversation.terminal.typed) == b"y\r")


async def test_what_is_typed_on_after_its_end_is_no_message(shell: Shell) -> None:
    terminal = await typing(shell)
    clock = still(shell)
    await shell.press("s", "e")
    terminal.modes = None
    await shell.press("c", "enter")
    assert b"".join(terminal.typed) == b"se"
    assert shell.composer.text == ""
    clock.seconds += 1
    await shell.press("h", "i", until=lambda: shell.composer.text == "hi")


async def test_without_a_line_in_a_terminal_it_says_so(shell: Shell) -> None:
    await shell.say("go")
    await shell.press("ctrl+right_square_bracket")
    await shell.until(lambda: "No shell line of yours runs in a terminal here." in shell.toasts)


@pytest.mark.parametrize(("folder", "shown"), [("", "shell · the model"), ("/x/y", "shell in /x/y · the model")])
async def test_the_composer_names_the_folder_of_the_next_line(shell: Shell, folder: str, shown: str) -> None:
    conversation = await shell.say("go")
    conversation.terminal.folder = folder
    await shell.type("!", shows=shown)
