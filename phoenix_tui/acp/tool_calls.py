"""Tool calls as the protocol names them: kind, title, places, input, and what they showed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
from acp.schema import (
    ContentToolCallContent,
    FileEditToolCallContent,
    TerminalToolCallContent,
    TextContentBlock,
    ToolCallLocation,
)
from msgspec import Struct

from engine.codec import decode_display
from engine.machine.messages import ToolResult, ToolStatus
from phoenix_tui.acp.connection import fields_of
from tools.call_titles import tool_label
from tools.contract import AgentsDisplay, DiffDisplay, Display, ImageDisplay, PlainDisplay, TerminalDisplay, ToolRequest
from tools.displays import check_lines
from tools.planning import EXIT_PLAN, TODO_WRITE

CallKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
CallContent: TypeAlias = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent
KINDS: Final[dict[str, CallKind]] = {
    "read_file": "read",
    "read_image": "read",
    "write_file": "edit",
    "patch": "edit",
    "list_files": "search",
    "search": "search",
    "bash": "execute",
    "job_output": "execute",
    "job_kill": "execute",
    "think": "think",
    "web_fetch": "fetch",
    "web_search": "fetch",
    EXIT_PLAN: "switch_mode",
}
"""Kinds of the tools; others have the kind `other`."""
HIDDEN: Final = frozenset({TODO_WRITE})
"""Tools whose calls are not shown: the list is sent as a plan."""
LONGEST_TITLE: Final = 500
LONGEST_TEXT: Final = 64 * 1024
LONGEST_INPUT: Final = 256 * 1024
TAIL: Final = 8 * 1024
"""Characters of the title, of a text, of the input as JSON and of a running command's output."""


def text_content(text: str) -> TextContentBlock:
    """A text."""
    return TextContentBlock(type="text", text=text)


def kind_of(name: str) -> CallKind:
    """The kind of a tool."""
    return KINDS.get(name, "other")


def title_of(name: str, request: ToolRequest | None) -> str:
    """One line for a call."""
    title = request.summary if request is not None and request.summary else tool_label(name)
    return title[:LONGEST_TITLE]


def input_of(input_json: str) -> Any:
    """The arguments of a call; a note in place of long ones."""
    if len(input_json) > LONGEST_INPUT:
        return {"note": f"{len(input_json):,} characters of input are not repeated here."}
    try:
        return json.loads(input_json)
    except (ValueError, RecursionError):
        return {"text": input_json[:LONGEST_TITLE]}


def locations_of(request: ToolRequest | None, given: Any) -> list[ToolCallLocation]:
    """Files that a call is about, for an editor that follows along."""
    line = fields_of(given).get("offset")
    at = line if isinstance(line, int) and not isinstance(line, bool) and 0 < line < 1 << 31 else None
    return [ToolCallLocation(path=str(path), line=at) for path in (request.paths if request is not None else ())]


def text_part(text: str) -> ContentToolCallContent:
    """A text of a call."""
    return ContentToolCallContent(type="content", content=text_content(_cut(text)))


def code_part(text: str) -> ContentToolCallContent:
    """A text of a call as it is, in a fence that it cannot close."""
    shown = _cut(text)
    longest = max((len(run) for run in re.findall(r"`{3,}", shown)), default=2)
    fence = "`" * (longest + 1)
    return text_part(f"{fence}\n{shown.rstrip(chr(10))}\n{fence}")


def status_of(status: ToolStatus) -> Literal["pending", "in_progress", "completed", "failed"]:
    """The status of a settled call."""
    return "completed" if status is ToolStatus.SUCCESS else "failed"


def display_of(display_json: str) -> Display | None:
    """The stored display of a call; None where there is none that can be read."""
    try:
        return decode_display(display_json) if display_json else None
    except (ValueError, msgspec.MsgspecError):
        return None


def build_content(display: Display | None, text: str) -> list[CallContent]:
    """Content of a call for the user, without diffs: those are made of files."""
    match display:
        case PlainDisplay(said):
            return [text_part(said)] if said else []
        case TerminalDisplay():
            lines = [display.output.rstrip("\n")] if display.output else []
            if display.timed_out:
                lines.append("[the time limit was reached]")
            elif display.exit_code:
                lines.append(f"[exit code {display.exit_code}]")
            if display.job:
                lines.append(f"[runs on as background job {display.job}]")
            return [code_part("\n".join(lines) or "[no output]")]
        case ImageDisplay(name, width, height):
            return [text_part(f"{name}, {width}x{height}")]
        case AgentsDisplay(agents):
            return [text_part(f"**{one.task}**: {one.status}\n\n{one.text or one.reason}") for one in agents]
        case DiffDisplay(checks=checks) if checks:
            return [code_part("\n".join(row for check in checks for row in check_lines(check)))]
        case DiffDisplay() | None:
            return [code_part(text)] if text else []


def output_of(result: ToolResult) -> dict[str, Any]:
    """The result as the model reads it."""
    return {"text": _cut(result.text), "status": result.status.value}


def file_of(display: DiffDisplay, paths: Sequence[Path], cwd: Path) -> Path:
    """The file that a diff is about."""
    return paths[0] if len(paths) == 1 else cwd / Path(display.path).expanduser()


def _cut(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


LARGEST_FILE: Final = 1024 * 1024
"""Bytes of a file that is sent whole."""
LARGEST_PART: Final = 512 * 1024
"""Characters of either side where only the changed parts are sent."""
GAP: Final = "…\n"
"""Line between two changed parts."""
NO_NEWLINE: Final = "\\ No newline"


class _Hunk(Struct, frozen=True):
    old_at: int
    old: tuple[str, ...]
    new_at: int
    new: tuple[str, ...]


async def make_edit(path: Path, display: DiffDisplay, *, is_done: bool) -> FileEditToolCallContent:
    """The change of a file that is about to be made, or is made: whole up to 1 MB, otherwise its parts."""
    hunks = _hunks(display.diff)
    whole = None if display.created else await asyncio.to_thread(_text_of, path)
    if whole is not None and (other := _apply_hunks(whole, hunks, back=is_done)) is not None:
        before, after = (other, whole) if is_done else (whole, other)
        return FileEditToolCallContent(type="diff", path=str(path), old_text=before, new_text=after)
    return make_parts(path, display)


def make_parts(path: Path, display: DiffDisplay) -> FileEditToolCallContent:
    """The change by its diff alone; of a new file that is all of it."""
    hunks = _hunks(display.diff)
    before, after = (
        GAP.join("".join(side) for side in sides) for sides in ([one.old for one in hunks], [one.new for one in hunks])
    )
    old = None if display.created else before[:LARGEST_PART]
    return FileEditToolCallContent(type="diff", path=str(path), old_text=old, new_text=after[:LARGEST_PART])


def _hunks(diff: str) -> list[_Hunk]:
    """The parts of a unified diff of `tools/files/content.py`."""
    lines = diff.split("\n")
    starts = [at for at, line in enumerate(lines) if line.startswith("@@ -")]
    return [_hunk(lines[first:last]) for first, last in pairwise([*starts, len(lines)])]


def _hunk(lines: Sequence[str]) -> _Hunk:
    head = lines[0].split(" ")
    old: list[str] = []
    new: list[str] = []
    for line, after in pairwise([*lines[1:], ""]):
        end = "" if after.startswith(NO_NEWLINE) else "\n"
        if line[:1] in {" ", "-"}:
            old.append(line[1:] + end)
        if line[:1] in {" ", "+"}:
            new.append(line[1:] + end)
    return _Hunk(_first(head[1], old), tuple(old), _first(head[2], new), tuple(new))


def _first(span: str, lines: Sequence[str]) -> int:
    """Index of the first line of a range; an empty range names the line before it."""
    number = int(span[1:].partition(",")[0])
    return number - 1 if lines else number


def _apply_hunks(text: str, hunks: Sequence[_Hunk], *, back: bool) -> str | None:
    """The text with the change made, or taken back; None where it is not the text that the diff is about."""
    *whole, rest = text.split("\n")
    lines = [f"{line}\n" for line in whole] + ([rest] if rest else [])
    done: list[str] = []
    at = 0
    for hunk in hunks:
        first, old, new = (hunk.new_at, hunk.new, hunk.old) if back else (hunk.old_at, hunk.old, hunk.new)
        if first < at or tuple(lines[first : first + len(old)]) != old:
            return None
        done += lines[at:first]
        done += new
        at = first + len(old)
    return "".join([*done, *lines[at:]])


def _text_of(path: Path) -> str | None:
    """The text of a regular file up to 1 MB, None for anything else; no link is followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_FILE:
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(LARGEST_FILE + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    finally:
        os.close(descriptor)
