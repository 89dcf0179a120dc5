"""Editing keys, the history search, completions that come while one types on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from phoenix_tui.modals.find_sheet import HistorySheet
from phoenix_tui.workspace import draft_store

pytestmark = pytest.mark.usefixtures("tab_waits")


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


async def test_the_editing_keys_of_a_shell(open_shell: Any) -> None:
    async with open_shell() as shell:
        for text, keys, after in EDITED:
            shell.composer.keys.starting = False
            shell.composer.load(text)
            await shell.pilot.press(*keys)
            assert shell.composer.text == after


async def test_a_draft_is_stored_though_the_typing_goes_on(open_shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft_store, "PAUSE", 60.0)
    async with open_shell() as shell:
        await shell.type("never a pause")
        await shell.until(lambda: shell.in_view and shell.conversation.record.draft)


async def test_the_history_is_searched_as_one_types_and_undo_brings_the_draft_back(open_shell: Any) -> None:
    async with open_shell() as shell:
        for text in ("fix the parser", "write a test", "fix the lexer"):
            shell.composer.draft.prompts.add(text)
        await shell.type("draft")
        await shell.pilot.press("ctrl+r")
        await shell.until(lambda: isinstance(shell.top, HistorySheet))
        await shell.type("fix")
        await shell.until(lambda: "1 / 2 in this folder" in shell.text)
        assert "write a test" not in shell.text
        await shell.pilot.press("ctrl+r", "enter")
        await shell.until(lambda: shell.composer.text == "fix the parser")
        await shell.pilot.press("ctrl+underscore")
        await shell.until(lambda: shell.composer.text == "draft")
        await shell.pilot.press("ctrl+r")
        await shell.until(lambda: isinstance(shell.top, HistorySheet))
        await shell.type("zzz")
        await shell.pilot.press("enter", "escape")
        await shell.until(lambda: not isinstance(shell.top, HistorySheet))
        assert shell.composer.text == "draft"


async def test_a_folder_is_entered_with_tab_and_its_files_are_offered(open_shell: Any, tmp_path: Path) -> None:
    (tmp_path / "pool" / "inner").mkdir(parents=True)
    (tmp_path / "pool" / "inner" / "deep.py").write_text("x")
    async with open_shell() as shell:
        await shell.type("@pool")
        await shell.until(lambda: "@pool/" in shell.text)
        await shell.pilot.press("tab")
        await shell.until(lambda: shell.composer.text == "@pool/")
        await shell.until(lambda: "@pool/inner/deep.py" in shell.text)
        await shell.type("deep")
        await shell.pilot.press("tab")
        await shell.until(lambda: shell.composer.text == "@pool/inner/deep.py ")


async def test_a_name_in_quotation_marks_is_looked_for_over_its_blanks_and_before_others(
    open_shell: Any, tmp_path: Path
) -> None:
    for name in ("picker.py", "pic one.png", "pic two.png"):
        (tmp_path / name).write_text("x")
    async with open_shell() as shell:
        await shell.type('in @"pic')
        await shell.until(lambda: "picker.py" in shell.text)
        rows = [row.strip() for row in shell.text.split("\n") if "@" in row and "in @" not in row]
        assert rows[:3] == ['@"pic one.png"', '@"pic two.png"', "@picker.py"]
        await shell.type(" tw")
        await shell.until(lambda: "picker.py" not in shell.text and "pic two.png" in shell.text)
        await shell.pilot.press("tab")
        await shell.until(lambda: shell.composer.text == 'in @"pic two.png" ')


async def test_a_file_made_later_is_found_by_the_next_at(open_shell: Any, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("x")
    async with open_shell() as shell:
        await shell.type("@on")
        await shell.until(lambda: "@one.py" in shell.text)
        (tmp_path / "once.py").write_text("x")
        index = shell.dock.completer._files
        index._listed_at -= 60
        await shell.type("c")
        await shell.until(lambda: "@once.py" in shell.text)


async def test_a_conversation_is_offered_by_its_title_and_stands_for_its_id(open_shell: Any, engine: Any) -> None:
    other = engine.seed("Parser rewrite", messages=2)
    async with open_shell() as shell:
        await shell.type("as in @parser")
        await shell.until(lambda: "@Parser rewrite" in shell.text)
        await shell.pilot.press("tab")
        await shell.until(lambda: shell.composer.text == f"as in @conversation:{other.id[:8]} ")


async def test_what_may_follow_a_command_is_said_and_offered(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.type("/rename ")
        await shell.until(lambda: "/rename TITLE" in shell.text)
        assert not shell.composer.keys.completing
        await shell.pilot.press("ctrl+u")
        await shell.type("/permissions au")
        await shell.until(lambda: "everything that stays in the sandbox runs" in shell.text)
        await shell.pilot.press("enter")
        await shell.shows("auto · sandbox")  # the draft may have begun a conversation, which has the mode then
        await shell.until(lambda: shell.composer.text == "")


async def test_prose_behind_a_quotation_mark_that_stays_open_is_no_name(open_shell: Any, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("x")
    async with open_shell() as shell:
        shell.composer.load(f'@"{"word " * 80}@on')
        await shell.type("e")
        await shell.until(lambda: shell.dock.popup.choice is not None)
        assert shell.dock.popup.choice.text == "@one.py"
