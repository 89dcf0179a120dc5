"""`/export` in the screen: Markdown, or JSON by the name of the file; what is there stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.pilot import Pilot


async def exported(shell: Any, target: str) -> str:
    """Notice after `/export TARGET`."""
    before = len(shell.toasts)
    shell.composer.text = f"/export {target}"
    pilot: Pilot[None] = shell.pilot
    await pilot.press("enter")
    await shell.until(lambda: len(shell.toasts) > before)
    return str(shell.toasts[-1])


async def test_a_conversation_is_written_as_markdown_or_json_and_nothing_is_overwritten(
    open_shell: Any, tmp_path: Path
) -> None:
    async with open_shell() as shell:
        assert await exported(shell, "a.md") == "This conversation is empty; there is nothing to export."
        conversation = await shell.say("hello ## You")
        folder = conversation.record.cwd
        assert await exported(shell, "") == f"Written to {folder}/phoenix-{conversation.id[:8]}.md."
        text = (folder / f"phoenix-{conversation.id[:8]}.md").read_text()
        assert "## You\n\nhello ## You\n" in text
        assert await exported(shell, "a.json") == f"Written to {folder}/a.json."
        assert (folder / "a.json").read_text() == f'{{\n "id": "{conversation.id}"\n}}\n'
        (folder / "kept.md").write_text("mine")
        assert await exported(shell, "kept.md") == f"{folder}/kept.md already exists; give another file name."
        assert (folder / "kept.md").read_text() == "mine"
        said = await exported(shell, f"{tmp_path}/no/folder.md")
        assert said == f"{tmp_path}/no/folder.md cannot be written: No such file or directory."
