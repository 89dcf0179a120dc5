"""A formatter of the user behind an edit: its change is a part of the edit, and the model reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from tools.contract import DiffDisplay, ToolContext, ToolOutput
from tools.failure import ToolFailure, explain
from tools.files.content import TextContent, speakable
from tools.files.diff import diff_display
from tools.files.ledger import ReadLedger
from tools.files.location import Location
from tools.files.writing import Change, rewrite

LONGEST_DIFF: Final = 3_000
"""Characters of the formatter's change that the model reads."""
CHANGED_SINCE: Final = "the file was changed before it had an answer"


class Formatted(Struct, frozen=True):
    """Outcome of a formatter: a text, or the reason for having none."""

    name: str
    text: str = ""
    trouble: str = ""


class TextFormatter(Protocol):
    """Formats the text of a file that an edit has written."""

    async def format(self, path: Path, text: str, context: ToolContext) -> Formatted | None:
        """Format a text, within a time limit; None where no formatter is set for such files. Never raises."""
        ...


class NotedChange:
    """A change that remembers the texts it was between."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self.before = self.after = ""
        self.is_crlf = False

    def __call__(self, existing: TextContent | None) -> str:
        """Make the change."""
        self.before = existing.text if existing is not None else ""
        self.is_crlf = existing is not None and existing.crlf
        self.after = self._change(existing)
        return self.after


async def with_format(
    output: ToolOutput,
    noted: NotedChange,
    location: Location,
    context: ToolContext,
    ledger: ReadLedger,
    formatter: TextFormatter,
) -> ToolOutput:
    """The output of an edit with what the formatter changed, which is written as a further edit of the same call."""
    display = output.display
    if not isinstance(display, DiffDisplay) or noted.before == noted.after or speakable(noted.after) != noted.after:
        return output
    made = await formatter.format(location.path, noted.after, context)
    if made is None:
        return output
    text = made.text.replace("\r\n", "\n") if noted.is_crlf else made.text
    trouble = made.trouble
    if not trouble and text != noted.after:
        try:
            await rewrite(location, context, ledger, lambda existing: _formatted(existing, noted.after, text))
        except ToolFailure as failure:
            trouble = str(failure)
        except OSError as error:
            trouble = explain(error, location.shown)
    if trouble:
        return replace(output, text=f"{output.text}\n[Formatter {made.name}: {trouble}; the file is as you wrote it.]")
    if text == noted.after:
        return output
    whole = diff_display(display.path, noted.before, text, created=display.created)
    return replace(output, text=f"{output.text}\n{_told(made.name, display.path, noted.after, text)}", display=whole)


def _formatted(existing: TextContent | None, written: str, text: str) -> str:
    """The formatted text, where the file is still as the edit left it."""
    if existing is None or existing.text != written:
        raise ToolFailure(CHANGED_SINCE)
    return text


def _told(name: str, path: str, written: str, text: str) -> str:
    difference = diff_display(path, written, text).diff.partition("@@")
    shown = difference[1] + difference[2].rstrip("\n")
    if len(shown) > LONGEST_DIFF:
        shown = shown[:LONGEST_DIFF].rpartition("\n")[0] + "\n… the rest is left out; read the file"
    return f"[Formatter {name} changed it after your edit:\n{shown}\n]"
