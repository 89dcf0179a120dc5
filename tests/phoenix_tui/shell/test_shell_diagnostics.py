"""/debug: the files, one of them read, none at all."""

from __future__ import annotations

from pathlib import Path

from engine.diagnostics import Diagnostics
from phoenix_tui.modals.rows_sheet import PickerSheet
from phoenix_tui.modals.text_sheet import TextSheet
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.shell import Shell


async def typed(shell: Shell, text: str) -> None:
    await shell.type(text)
    await shell.pilot.press("escape", "enter")


async def test_a_file_is_chosen_and_its_end_is_read_without_control_characters_and_keys(
    open_shell: OpenShell, tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "phoenix.jsonl").write_text('{"message": "\x1b[2Jhello sk-ant-planted-0123456789"}\n')
    (folder / "other.txt").write_text("not a record")
    async with open_shell(size=(100, 30), diagnostics=Diagnostics(folder)) as shell:
        await typed(shell, "/debug")
        await shell.until(lambda: isinstance(shell.top, PickerSheet))
        assert "phoenix.jsonl" in shell.text
        assert "other.txt" not in shell.text
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, TextSheet))
        assert "hello [redacted]" in shell.text
        assert "\x1b" not in shell.text


async def test_without_records_a_sentence_says_so(open_shell: OpenShell, tmp_path: Path) -> None:
    async with open_shell(diagnostics=Diagnostics(tmp_path / "none")) as shell:
        await typed(shell, "/debug")
        await shell.until(lambda: "Nothing was recorded yet" in shell.text)
    async with open_shell() as shell:
        await typed(shell, "/debug")
        await shell.until(lambda: "Nothing is recorded for debugging here." in shell.text)
