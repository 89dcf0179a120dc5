"""A conversation as Markdown, and the new file that an export is written to."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, assert_never

from engine.codec import CodecError, decode_display
from engine.machine.messages import (
    Block,
    ImageBlock,
    Origin,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from engine.records import ConversationRecord, StoredMessage, ToolCallRecord
from engine.updates import AgentView
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.output import local_time
from phoenix_tui.text.agent_text import ENDS, read_submission, task_words
from tools.call_titles import tool_label
from tools.clean import clean, clean_line, reveal
from tools.contract import DiffDisplay
from tools.files.own_files import new_file

SPEAKERS: Final = {Role.USER: "You", Role.ASSISTANT: "Phoenix", Role.SYSTEM: "Note"}
BACKTICKS: Final = re.compile("`{3,}")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
PARENT: Final = "Parent"
"""Speaker of messages to a sub-agent."""
_HEADING: Final = re.compile(r"^(?: {0,3}(?:>|[-*+](?=\s)|\d{1,9}[.)](?=\s)))*[ \t]{0,3}#{1,4}(?=[ \t]|$)")
"""Pattern of a heading, also in a quote or a list."""
_UNDERLINE: Final = re.compile(r" {0,3}(?:-+|=+)[ \t]*")
_TAG: Final = re.compile(r"<(?=/?h[12]\b)", re.IGNORECASE)


def markdown(
    record: ConversationRecord, messages: Sequence[StoredMessage], calls: Iterable[ToolCallRecord] = ()
) -> str:
    """The whole conversation; no text in it can control a terminal (FAULTS 59) or appear as another speaker's.

    Headings of the first two levels are Phoenix's own, those of a text are lowered by two levels. Each change of
    speaker has a heading; changes of files are shown as diffs where `calls` has them.
    """
    lines = [
        f"# {clean_line(record.title) or 'Untitled'}",
        "",
        f"- Conversation: {record.id}",
        f"- Folder: {clean_line(str(record.cwd))}",
        f"- Model: {clean_line(record.model)}",
        f"- Started: {local_time(record.created_at)}",
    ]
    return "\n".join((*lines, *_transcript(messages, calls, SPEAKERS))) + "\n"


def agent_markdown(view: AgentView, messages: Sequence[StoredMessage], calls: Iterable[ToolCallRecord] = ()) -> str:
    """One sub-agent of a conversation, to follow it."""
    ended = ENDS[view.outcome.status] if view.outcome is not None else "running"
    lines = [
        "",
        f"# Sub-agent: {task_words(view.task)}",
        "",
        f"- Conversation: {view.id}",
        f"- Profile: {clean_line(view.profile)}",
        f"- Model: {clean_line(view.model)}",
        f"- Ended: {ended}",
    ]
    return "\n".join((*lines, *_transcript(messages, calls, SPEAKERS | {Role.USER: PARENT}))) + "\n"


def write_interrupted(record: ConversationRecord, calls: Sequence[ToolCallRecord]) -> list[str]:
    """Section about an interrupted last run, with the stored results of its calls."""
    lines = ["", "# Interrupted", "", f"The last run was interrupted; `phoenix --resume {record.id[:8]}` continues it."]
    for call in calls:
        lines += ["", f"**{clean_line(tool_label(call.name))}**: {call.status.value}"]
        lines += ["", _fence(clean(call.output_text), "")] if call.output_text else []
    return lines


def _transcript(
    messages: Sequence[StoredMessage], calls: Iterable[ToolCallRecord], speakers: Mapping[Role, str]
) -> list[str]:
    known = {call.tool_use_id: call for call in calls}
    lines: list[str] = []
    speaker: Role | None = None
    for message in messages:
        texts = [] if message.silent else [text for block in message.blocks if (text := _block(block, known))]
        if texts and message.origin is not Origin.TOOL and speaker is not message.role:
            speaker = message.role
            lines += ["", f"## {speakers[speaker]}"]
        lines += [line for text in texts for line in ("", text)]
    return lines


def _block(block: Block, calls: Mapping[str, ToolCallRecord]) -> str:
    match block:
        case TextBlock(text, attached) if attached:
            return f"*Attached: {clean_line(attached)}*\n\n{_fence(clean(text), '')}"
        case TextBlock(text):
            return "\n".join(_honest(clean(text)))
        case ImageBlock(_, width, height):
            return f"*Image, {width}x{height}*"
        case ThinkingBlock(text):
            quoted = (f"> {line}".rstrip() for line in clean(text).strip().split("\n"))
            return "\n".join(("> *Thinking*", ">", *quoted)) if text.strip() else ""
        case ToolUseBlock(_, name, input_json):
            result = read_submission(block)
            shown = "\n".join(_honest(clean(result))) if result else _fence(reveal(input_json), "json")
            return f"**{clean_line(tool_label(name))}**\n\n{shown}"
        case ToolResultBlock(call_id, content, is_error):
            texts = (clean(part.text) if isinstance(part, TextBlock) else _block(part, {}) for part in content)
            output = _fence("\n".join(texts), "")
            parts = ("*Failed*" if is_error else "", _diff(calls.get(call_id)), output)
            return "\n\n".join(part for part in parts if part)
        case _:
            assert_never(block)


def _diff(call: ToolCallRecord | None) -> str:
    """The change a call made, empty where it made none."""
    try:
        display = decode_display(call.display_json) if call is not None and call.display_json else None
    except CodecError:
        return ""
    return _fence(clean(display.diff), "diff") if isinstance(display, DiffDisplay) else ""


def _honest(text: str) -> Iterator[str]:
    """The lines of a text that is Markdown itself: a fence left open is closed, no heading is of the first levels."""
    fence = before = ""
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line)
        if fence:
            ends = found is not None and found[1].startswith(fence) and not found[2].strip()
            fence = "" if ends else fence
            yield line
        elif found is not None and not (found[1][0] == "`" and "`" in found[2]):
            fence = found[1]
            yield line
        else:
            if before.strip() and _UNDERLINE.fullmatch(line):
                yield ""  # it would turn the line above into a heading
            yield _TAG.sub("&lt;", _HEADING.sub(r"\g<0>##", line))
        before = line
    if fence:
        yield fence


def _fence(text: str, language: str) -> str:
    longest = max((len(found[0]) for found in BACKTICKS.finditer(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


UNREAD = "no program reads from it"


def write_new(path: Path, text: str) -> None:
    """Write a file that was not there; a pipe or a device that is there is written to.

    Raises:
        CommandError: one sentence that says why not.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            _write_through(path, text)
            return
        opened = new_file(path)
    except FileExistsError as error:
        raise CommandError(f"{path} already exists; give another file name.") from error
    except OSError as error:
        reason = UNREAD if error.errno == errno.ENXIO else error.strerror
        raise CommandError(f"{path} cannot be written: {reason}.") from error
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError as error:
        path.unlink(missing_ok=True)
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error


def _write_through(path: Path, text: str) -> None:
    """Write to an existing path other than a regular file; raises OSError (ENXIO) for an unread pipe."""
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode("utf-8", "replace"))
