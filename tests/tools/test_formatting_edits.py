"""A formatter behind an edit: its change belongs to the edit, the model reads it, and it never costs the edit."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec import Struct, field

from tests.support.tools import use
from tools.contract import DiffDisplay, ToolContext
from tools.file_tools import Patch, ReadFile, WriteFile
from tools.files.writing import CHANGED_SINCE, Formatted, ReadLedger


class Scripted(Struct):
    """A formatter that knows its answer."""

    answer: Formatted | None
    writes: str = ""
    """Text that another program writes meanwhile."""
    asked: list[str] = field(default_factory=list[str])

    async def format(self, path: Path, text: str, context: ToolContext) -> Formatted | None:
        self.asked.append(text)
        if self.writes:
            await asyncio.to_thread(path.write_text, self.writes)
        return self.answer


async def test_the_change_of_a_formatter_is_a_part_of_the_edit_and_is_shown_to_the_model(tmp_path: Path) -> None:
    ledger, formatter = ReadLedger(), Scripted(Formatted("neat", "a = 1\nb = 2\n"))
    output = await use(WriteFile(ledger, formatter), tmp_path, path="a.py", content="a=1\nb = 2\n")
    assert (tmp_path / "a.py").read_text() == "a = 1\nb = 2\n"
    assert output.text == (
        "Created a.py: +2 lines.\n[Formatter neat changed it after your edit:\n@@ -1,2 +1,2 @@\n-a=1\n+a = 1\n b = 2\n]"
    )
    assert isinstance(output.display, DiffDisplay)
    assert (output.display.added, output.display.removed, output.display.created) == (2, 0, True)
    assert "+a = 1" in output.display.diff
    assert "a=1" not in output.display.diff
    formatter.answer = Formatted("neat", "a = 1\nb = 3\n")
    edits = [{"op": "replace", "old": "b = 2", "new": "b = 3"}]
    again = await use(Patch(ledger, formatter), tmp_path, path="a.py", edits=edits)  # the conversation knows the file
    assert (again.is_error, again.text) == (False, "Changed a.py: +1 -1 lines.")
    assert formatter.asked == ["a=1\nb = 2\n", "a = 1\nb = 3\n"]


async def test_line_ends_of_the_file_stay(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"old\r\n")
    ledger = ReadLedger()
    await use(ReadFile(ledger), tmp_path, path="a.py")
    formatter = Scripted(Formatted("neat", "b\r\nc\r\n"))
    await use(WriteFile(ledger, formatter), tmp_path, path="a.py", content="b\nc")
    assert formatter.asked == ["b\nc"]
    assert (tmp_path / "a.py").read_bytes() == b"b\r\nc\r\n"


async def test_a_formatter_that_fails_leaves_the_edit_and_says_why(tmp_path: Path) -> None:
    formatter = Scripted(Formatted("neat", trouble="exit code 2: bad syntax"))
    output = await use(WriteFile(ReadLedger(), formatter), tmp_path, path="a.py", content="a=(\n")
    assert (tmp_path / "a.py").read_text() == "a=(\n"
    assert not output.is_error
    assert output.text.endswith("\n[Formatter neat: exit code 2: bad syntax; the file is as you wrote it.]")


async def test_what_another_program_wrote_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    formatter = Scripted(Formatted("neat", "a = 1\n"), writes="theirs\n")
    output = await use(WriteFile(ReadLedger(), formatter), tmp_path, path="a.py", content="a=1\n")
    assert (tmp_path / "a.py").read_text() == "theirs\n"
    assert CHANGED_SINCE in output.text or "was changed by" in output.text


async def test_without_a_change_or_a_fitting_formatter_nothing_is_added(tmp_path: Path) -> None:
    ledger, formatter = ReadLedger(), Scripted(None)
    output = await use(WriteFile(ledger, formatter), tmp_path, path="a.py", content="a = 1\n")
    assert output.text == "Created a.py: +1 lines."
    output = await use(WriteFile(ledger, formatter), tmp_path, path="a.py", content="a = 1\n")
    assert output.text == "a.py already has this content; nothing was written."
    assert len(formatter.asked) == 1


async def test_of_a_large_change_the_model_reads_a_part(tmp_path: Path) -> None:
    text = "".join(f"x{number}=1\n" for number in range(2_000))
    formatter = Scripted(Formatted("neat", text.replace("=", " = ")))
    output = await use(WriteFile(ReadLedger(), formatter), tmp_path, path="a.py", content=text)
    assert len(output.text) < 4_000
    assert output.text.endswith("… the rest is left out; read the file\n]")
