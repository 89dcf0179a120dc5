"""/memory: the list, reading, editing, adding, deleting and restoring."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from phoenix_tui.app import PhoenixApp
from phoenix_tui.modals.text_sheet import TextSheet
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_engine import FakeEngine
from tests.support.fake_notes import notes_below, some_notes
from tests.support.shell import Shell

WIDE = (100, 30)


def stay(_: PhoenixApp) -> nullcontext[None]:
    """A pilot's terminal cannot be given away."""
    return nullcontext()


async def listed(shell: Shell) -> None:
    await shell.type("/memory")
    await shell.pilot.press("escape", "enter")
    await shell.until(lambda: shell.is_page("Notes"))


async def test_the_list_has_both_scopes_with_date_first_line_and_size(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    async with open_shell(size=WIDE, notes=await some_notes(tmp_path, engine.cwd)) as shell:
        await listed(shell)
        for words in ("This project", "Yours, in every project", "2026-11-24", "Tests run with", "tokens"):
            assert words in shell.text
        assert shell.text.index("2026-11-24") < shell.text.index("2026-11-23") < shell.text.index("2026-11-20")
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, TextSheet))
        assert "conversation relay-work" in shell.text


async def test_a_deleted_note_comes_back_with_u_also_after_the_sheet_showed_another(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    async with open_shell(size=WIDE, notes=await some_notes(tmp_path, engine.cwd)) as shell:
        await listed(shell)
        files = {path: path.read_text() for path in (tmp_path / "memory").rglob("*.md")}
        await shell.pilot.press("x")
        await shell.until(lambda: "2026-11-24 deleted; u restores it." in shell.text)
        await shell.pilot.press("x")
        await shell.until(lambda: "2026-11-23 deleted" in shell.text)
        assert len(list((tmp_path / "memory").rglob("*.md"))) == 1
        await shell.pilot.press("down", "u")
        await shell.until(lambda: "2026-11-23 restored." in shell.text)
        await shell.pilot.press("u")
        await shell.until(lambda: "2026-11-24 restored." in shell.text)
        assert {path: path.read_text() for path in (tmp_path / "memory").rglob("*.md")} == files
        await shell.pilot.press("u")
        await shell.until(lambda: "There is nothing to undo." in shell.text)


async def test_a_note_written_meanwhile_is_not_replaced_by_the_restored_one(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    notes = await some_notes(tmp_path, engine.cwd)
    async with open_shell(size=WIDE, notes=notes) as shell:
        await listed(shell)
        await shell.pilot.press("x")
        await shell.until(lambda: "deleted" in shell.text)
        path = f"{await notes.project(engine.cwd)}/2026-11-24.md"
        await notes.append(path, "newer")
        await shell.pilot.press("u")
        await shell.until(lambda: "There is a new note of this name; it was not replaced." in shell.text)
        assert await notes.read(path) == "newer\n"


async def test_a_note_that_somebody_deleted_meanwhile_is_said_and_leaves_the_list(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    notes = await some_notes(tmp_path, engine.cwd)
    async with open_shell(size=WIDE, notes=notes) as shell:
        await listed(shell)
        for path in (tmp_path / "memory").rglob("*.md"):
            path.unlink()
        await shell.pilot.press("enter")
        await shell.until(lambda: "This note no longer exists." in shell.text)


async def test_e_edits_the_file_and_n_makes_one_of_ones_own(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "editor.sh"
    script.write_text('#!/bin/sh\necho "by hand" > "$2"\n')
    script.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(script))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr(PhoenixApp, "suspend", stay)
    async with open_shell(size=WIDE, notes=notes_below(tmp_path)) as shell:
        await listed(shell)
        assert "There are no notes yet." in shell.text
        await shell.pilot.press("e", "x", "enter", "n")
        await shell.until(lambda: "by hand" in shell.text)
        (made,) = (tmp_path / "memory" / "user").iterdir()
        assert (made.name, made.stat().st_mode & 0o777) == (time.strftime("%Y-%m-%d.md"), 0o600)
        made.write_text("before\n")
        await shell.pilot.press("e")
        await shell.until(lambda: made.read_text() == "by hand\n")


async def test_hostile_text_in_a_note_reaches_the_screen_cleaned(open_shell: OpenShell, tmp_path: Path) -> None:
    notes = notes_below(tmp_path)
    await notes.append("user/2026-11-24.md", "[bold]x[/] \x1b]0;title\x07\x1b[2Jevil \u202eabc\x9b31m")
    async with open_shell(size=WIDE, notes=notes) as shell:
        await listed(shell)
        assert "[bold]x[/] evil abc" in shell.text
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, TextSheet))
        assert not any(sign in shell.text for sign in ("\x1b", "\u202e", "\x9b", "\x07"))


async def test_without_notes_a_sentence_says_so(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await shell.type("/memory")
        await shell.pilot.press("escape", "enter")
        await shell.until(lambda: any("Notes are not available here." in toast for toast in shell.toasts))
