"""Actions on the block under the cursor: the text to copy, the file or image it names, and the row of its keys."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.machine.messages import ImageBlock, TextBlock, ThinkingBlock, ToolUseBlock
from phoenix_tui.keys.active_keys import keys
from phoenix_tui.keys.keymap import KEYS_BY_ID
from phoenix_tui.markdown.lines import QUIET, Span, TextStyle, TextTone, cells
from phoenix_tui.text.agent_text import read_submission
from phoenix_tui.widgets.blocks.diff_rows import diff_rows
from phoenix_tui.widgets.blocks.tool_row import output_of
from phoenix_tui.widgets.transcript.block_cursor import ChosenBlock, is_prompt
from phoenix_tui.widgets.transcript.drawing import DrawnKind, DrawnPart
from phoenix_tui.widgets.transcript.model import TranscriptModel, shows_nothing, text_of
from phoenix_tui.widgets.transcript.stack import Stack
from tools.contract import DiffDisplay, JsonValue

_PATHS: Final = ("path", "file_path", "file")


class BlockAction(StrEnum):
    """Actions on a block; the value is the name in the row of keys."""

    TOGGLE = "open"
    COPY = "copy"
    FORK = "fork here"
    EDIT = "edit and resend"
    OPEN_FILE = "open file"
    OPEN_IMAGE = "open image"


REFUSALS: Final = {
    BlockAction.TOGGLE: "This block cannot be opened.",
    BlockAction.COPY: "This block has no text to copy.",
    BlockAction.FORK: "This block is not saved yet; fork after the answer has ended.",
    BlockAction.EDIT: "Only your prompts can be edited and resent; [ goes to the previous one.",
    BlockAction.OPEN_FILE: "This block has no file.",
    BlockAction.OPEN_IMAGE: "This block has no image.",
}
"""Notice about a block without the requested action."""


class Target(Struct, frozen=True):
    """The block an action is done to."""

    conversation_id: str
    name: str
    """Name of the block, in a word or two."""
    seq: int = 0
    """Message of the block; 0 while that is not stored."""
    last_seq: int = 0
    """The last message of the same step: the results of its calls."""
    text: str = ""
    """Text to copy."""
    path: str = ""
    line: int = 0
    """The file a call names, and where in it something happened."""
    image_id: str = ""
    """The stored image it shows."""
    image_ids: tuple[str, ...] = ()
    """Images of the prompt."""
    actions: tuple[BlockAction, ...] = ()


def target_of(model: TranscriptModel, chosen: ChosenBlock) -> Target:
    part, seq = chosen.part, chosen.slot + 1
    stored = seq in model.messages
    target = Target(
        model.conversation.id if model.conversation is not None else "",
        _name(model, part, chosen.code),
        seq if stored else 0,
        _step_end(model, seq) if stored else 0,
        _text(model, chosen),
        *_file(model, chosen),
        image_id=part.picture.image_id if part.picture is not None else "",
        image_ids=_images(model, seq) if is_prompt(part) else (),
    )
    offered = (
        (BlockAction.TOGGLE, part.foldable),
        (BlockAction.COPY, bool(target.text)),
        (BlockAction.EDIT, is_prompt(part) and target.seq > 0),
        (BlockAction.OPEN_FILE, bool(target.path)),
        (BlockAction.OPEN_IMAGE, bool(target.image_id)),
        (BlockAction.FORK, target.seq > 0),
    )
    return replace(target, actions=tuple(action for action, possible in offered if possible))


def _name(model: TranscriptModel, part: DrawnPart, code: int) -> str:
    if code >= 0:
        block = part.codes[code]
        return f"{block.language or 'plain'} code"
    call = model.calls.get(part.key.partition(":")[2]) if part.kind is DrawnKind.TOOL else None
    if call is not None:
        return call.label
    return part.key.partition(":")[0] if part.kind is DrawnKind.NOTE else _NAMES[part.kind]


_NAMES: Final = {
    DrawnKind.PROMPT: "prompt",
    DrawnKind.ANSWER: "answer",
    DrawnKind.THINKING: "thinking",
    DrawnKind.TOOL: "call",
    DrawnKind.IMAGE: "image",
}


def _step_end(model: TranscriptModel, seq: int) -> int:
    """The last message that belongs to a step: the results of its calls follow it."""
    last = seq
    while (following := model.messages.get(last + 1)) is not None and shows_nothing(following):
        last += 1
    return last


def _images(model: TranscriptModel, seq: int) -> tuple[str, ...]:
    message = model.messages.get(seq)
    blocks = () if message is None else message.blocks
    return tuple(block.attachment_id for block in blocks if isinstance(block, ImageBlock))


def _text(model: TranscriptModel, chosen: ChosenBlock) -> str:
    part = chosen.part
    if chosen.code >= 0:
        return part.codes[chosen.code].text
    kind, _, name = part.key.partition(":")
    if part.key == "answer:live":
        return model.live.text
    if part.key == "thinking:live":
        return "".join(model.live.thinking.pieces)
    if kind in {"answer", "thinking"}:
        seq, _, position = name.partition(":")
        block = model.messages[int(seq)].blocks[int(position)]
        if isinstance(block, ToolUseBlock):
            return read_submission(block)
        return block.text if isinstance(block, TextBlock | ThinkingBlock) else ""
    if kind == "message":
        message = model.messages[int(name)]
        return text_of(message)
    if kind == "call":
        view = model.calls.get(name)
        if view is None:
            return ""
        return output_of(view).rstrip("\n") or view.summary
    return "" if part.picture is not None else "\n".join(line.text[line.margin :].rstrip() for line in part.lines)


def _file(model: TranscriptModel, chosen: ChosenBlock) -> tuple[str, int]:
    """The file a call names and the line to open it at."""
    kind, _, call_id = chosen.part.key.partition(":")
    view = model.calls.get(call_id) if kind == "call" else None
    if view is None:
        return "", 0
    if isinstance(view.display, DiffDisplay):
        changed = (row.number for row in diff_rows(view.display.diff) if row.sign in "+-")
        return view.display.path, next(changed, 1)
    message = model.messages.get(chosen.slot + 1)
    calls = () if message is None else (one for one in message.blocks if isinstance(one, ToolUseBlock))
    return next((_read_named_file(one.input_json) for one in calls if one.id == call_id), ("", 0))


def _read_named_file(input_json: str) -> tuple[str, int]:
    try:
        arguments: JsonValue = json.loads(input_json or "{}")
    except (ValueError, RecursionError):
        return "", 0
    if not isinstance(arguments, dict):
        return "", 0
    path = next((value for key in _PATHS if isinstance(value := arguments.get(key), str) and value), "")
    line = arguments.get("offset", arguments.get("line", 1))
    first = line if isinstance(line, int) and line > 0 else 1
    return (path, first) if path else ("", 0)


KEY_OF: Final[dict[BlockAction, str]] = {
    BlockAction.TOGGLE: "block_open",
    BlockAction.COPY: "block_copy",
    BlockAction.EDIT: "block_edit",
    BlockAction.OPEN_FILE: "block_file",
    BlockAction.OPEN_IMAGE: "block_file",
    BlockAction.FORK: "block_fork",
}
"""The key that asks for an action; a click on its words does the same."""


class KeyRow:
    """The row, built again only when another or a redrawn block is under the cursor."""

    def __init__(self) -> None:
        self._of: tuple[DrawnPart, int, bool, int] | None = None
        self._spans: tuple[Span, ...] = ()

    def spans(self, stack: Stack, chosen: ChosenBlock | None, width: int) -> tuple[Span, ...]:
        if chosen is None:
            return key_row(stack, None, width)
        of, seen = (chosen.part, chosen.code, stack.is_open(chosen.part.key), width), self._of
        if seen is None or seen[0] is not of[0] or seen[1:] != of[1:]:
            self._of, self._spans = of, key_row(stack, chosen, width)
        return self._spans


def key_row(stack: Stack, chosen: ChosenBlock | None, width: int) -> tuple[Span, ...]:
    """The words of the row; those without room are left out from the right."""
    if chosen is None:
        return (Span(" ▌", TextStyle(TextTone.YOU, bold=True)),)
    target = target_of(stack.model, chosen)
    spans = [Span(" ▌", TextStyle(TextTone.YOU, bold=True)), Span(target.name, TextStyle(bold=True))]
    entries = [_entry(KEY_OF[action], _words(action, stack, chosen)) for action in target.actions]
    if chosen.code < 0 and chosen.part.codes:
        entries.insert(1, _entry("block_down", "its code"))
    entries.append((keys("block_prompt_up", "block_prompt_down"), "prompts", ""))
    room = width - sum(cells(span.text) for span in spans)
    gap = "  "
    for key, words, action in entries:
        if not key:
            continue
        need = cells(gap) + cells(key) + cells(words) + 1
        if need > room:
            break
        room -= need
        spans += [Span(gap, QUIET), Span(key, TextStyle(TextTone.YOU), action), Span(f" {words}", QUIET, action)]
        gap = " · "
    return tuple(spans)


def _entry(key: str, words: str) -> tuple[str, str, str]:
    """The user's keys, their meaning, and the action of a click."""
    return keys(key), words, KEYS_BY_ID[key].action


def _words(action: BlockAction, stack: Stack, chosen: ChosenBlock) -> str:
    if action is not BlockAction.TOGGLE:
        return action.value
    is_open = stack.is_open(chosen.part.key)
    if chosen.part.picture is not None:
        return "smaller" if is_open else "larger"
    return "fold" if is_open else action.value
