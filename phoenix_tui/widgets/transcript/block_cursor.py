"""The block cursor: the block of the conversation that keys act on, where it can stop, and actions on it."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.machine.messages import ImageBlock, Origin, Role, TextBlock, ThinkingBlock, ToolUseBlock
from phoenix_tui.keys.active_keys import keys
from phoenix_tui.keys.keymap import KEYS_BY_ID
from phoenix_tui.markdown.lines import QUIET, Span, TextStyle, TextTone, cells
from phoenix_tui.text.agent_text import read_submission
from phoenix_tui.widgets.blocks.diff_rows import diff_rows
from phoenix_tui.widgets.blocks.tool_row import output_of
from phoenix_tui.widgets.transcript.drawing import STOPPED, Drawn, DrawnKind, DrawnPart
from phoenix_tui.widgets.transcript.model import TranscriptModel, shows_nothing, text_of
from phoenix_tui.widgets.transcript.stack import Stack, Viewport
from tools.contract import DiffDisplay, JsonValue

_WHOLE = -1


class Stop(Struct, frozen=True):
    """One place; `code` counts the pieces of code of its part, -1 is the part as a whole."""

    slot: int
    key: str
    code: int = _WHOLE


class Extent(Struct, frozen=True):
    """The part a stop names and the rows it takes in its slot; `after` is the row behind the last."""

    part: DrawnPart
    first: int
    after: int


def stops_of(slot: int, drawn: Drawn) -> list[Stop]:
    found: list[Stop] = []
    for part in drawn.parts:
        if part.lines and part.key != "welcome":
            found.append(Stop(slot, part.key))
            found.extend(Stop(slot, part.key, number) for number in range(len(part.codes)))
    return found


def extent(stop: Stop, drawn: Drawn) -> Extent | None:
    row = 0
    for part in drawn.parts:
        if part.key == stop.key:
            first = row + part.gap
            if stop.code == _WHOLE:
                return Extent(part, first, first + len(part.lines))
            if stop.code < len(part.codes):
                code = part.codes[stop.code]
                return Extent(part, first + code.first, first + code.after)
            return None
        row += part.height()
    return None


def next_stop(stack: Stack, stop: Stop, by: int) -> Stop | int | None:
    """The stop before or after; the number of a slot that must be loaded first; None at either end."""
    drawn = stack.draw(stop.slot)
    own = [] if drawn is None else stops_of(stop.slot, drawn)
    if stop in own:
        place = own.index(stop) + by
        if 0 <= place < len(own):
            return own[place]
    for slot in range(stop.slot + 1, len(stack.heights)) if by > 0 else range(stop.slot - 1, -1, -1):
        drawn = stack.draw(slot)
        if drawn is None:
            return slot
        found = stops_of(slot, drawn)
        if found:
            return found[0] if by > 0 else found[-1]
    return None


def still(stack: Stack, stop: Stop) -> Stop | None:
    """The stop as it is named now: a reply that was stored, or reads that were opened, change their key."""
    slot = min(stop.slot, stack.last)
    drawn = stack.draw(slot)
    own = [] if drawn is None else stops_of(slot, drawn)
    if stop in own:
        return stop
    kind, _, name = stop.key.partition(":")
    if kind == "reads" and Stop(slot, f"call:{name}") in own:
        return Stop(slot, f"call:{name}")
    return own[0] if own else None


def is_prompt(part: DrawnPart) -> bool:
    return part.kind is DrawnKind.PROMPT and part.key.startswith("message:")


def is_human(model: TranscriptModel, seq: int) -> bool | None:
    """True when a person wrote message `seq`; None while it is not in memory."""
    message = model.messages.get(seq)
    return None if message is None else message.role is Role.USER and message.origin is Origin.HUMAN


class ChosenBlock(Struct, frozen=True):
    """The block under the cursor; `code` is the piece of code under it, -1 for the whole part."""

    slot: int
    part: DrawnPart
    code: int


class BlockCursor:
    """Cursor on one stop of a stack that keeps it visible; off until it is requested."""

    def __init__(self, stack: Stack, viewport: Viewport) -> None:
        self._stack = stack
        self._viewport = viewport
        self._stop: Stop | None = None
        self._wanted: tuple[int, int] | None = None
        """A slot that is not in memory yet and the direction it is entered from."""

    @property
    def is_on(self) -> bool:
        return self._stop is not None

    @property
    def slot(self) -> int | None:
        """The message under it, or its pending target; None while it is off."""
        if self._wanted is not None:
            return self._wanted[0]
        return None if self._stop is None else self._stop.slot

    def leave(self) -> None:
        self._stop = self._wanted = None

    def start(self) -> bool:
        """Move to the lowest visible block; False where there is none."""
        seen = self._visible_stops()
        self._stop, self._wanted = (seen[-1] if seen else None), None
        return bool(seen)

    def come_along(self) -> None:
        """Move to the nearest visible block after the window was scrolled."""
        stop, seen = self._here(), self._visible_stops()
        if stop is None or self._wanted is not None or not seen or Stop(stop.slot, stop.key) in seen:
            return
        self._stop = seen[0] if stop.slot <= seen[0].slot else seen[-1]

    def _visible_stops(self) -> list[Stop]:
        """The blocks that have a row in the window, code within them left out, top down."""
        found: dict[Stop, None] = {}
        for slot, row, drawn in self._viewport.rows():
            for stop in () if drawn is None else stops_of(slot, drawn):
                place = None if drawn is None else extent(stop, drawn)
                if place is not None and place.first <= row < place.after and stop.code < 0:
                    found[stop] = None
        return list(found)

    def move(self, by: int) -> bool:
        stop = self._here()
        found = None if stop is None else next_stop(self._stack, stop, by)
        if isinstance(found, int):
            self._want(found, by)
        elif found is not None:
            self._stand(found)
        return found is not None

    def go(self, slot: int, by: int = 1) -> None:
        """Go to the first block of a slot (the last one when it is entered from below); loads it if needed."""
        drawn = self._stack.draw(slot)
        if drawn is None:
            self._want(slot, by)
            return
        found = stops_of(slot, drawn)
        if found:
            self._stand(found[0] if by > 0 else found[-1])

    def end(self, by: int) -> None:
        if by < 0:
            self.go(0)
            return
        for slot in range(self._stack.last, max(self._stack.last - 9, -1), -1):
            drawn = self._stack.draw(slot)
            if drawn is not None and stops_of(slot, drawn):
                self.go(slot, -1)
                self._viewport.following = True
                return

    def find_chosen(self) -> ChosenBlock | None:
        stop = self._here()
        place = None if stop is None else self._extent(stop)
        return None if stop is None or place is None else ChosenBlock(stop.slot, place.part, stop.code)

    def rows(self) -> tuple[int, int, int] | None:
        stop = self._here()
        place = None if stop is None else self._extent(stop)
        return None if stop is None or place is None else (stop.slot, place.first, place.after)

    def go_to_wanted(self) -> None:
        wanted = self._wanted
        if wanted is not None and self._stack.draw(wanted[0]) is not None:
            self._wanted = None
            self.go(*wanted)

    def on_prompt(self) -> bool:
        chosen = self.find_chosen()
        return chosen is not None and is_prompt(chosen.part)

    def _here(self) -> Stop | None:
        if self._stop is not None:
            self._stop = still(self._stack, self._stop) or self._stop
        return self._stop

    def _extent(self, stop: Stop) -> Extent | None:
        drawn = self._stack.draw(stop.slot)
        return None if drawn is None else extent(stop, drawn)

    def _stand(self, stop: Stop) -> None:
        self._stop, self._wanted = stop, None
        place = self._extent(stop)
        if place is not None:
            self._viewport.reveal(stop.slot, place.first, place.after)

    def _want(self, slot: int, by: int) -> None:
        self._wanted = (slot, by)
        self._viewport.stand_at(slot)


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
    blocks = model.messages[seq].blocks if stored and is_prompt(part) else ()
    target = Target(
        model.conversation.id if model.conversation is not None else "",
        _name(model, part, chosen.code),
        seq if stored else 0,
        _step_end(model, seq) if stored else 0,
        _text(model, chosen),
        *_file(model, chosen),
        image_id=part.picture.image_id if part.picture is not None else "",
        image_ids=tuple(block.attachment_id for block in blocks if isinstance(block, ImageBlock)),
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


def _text(model: TranscriptModel, chosen: ChosenBlock) -> str:
    part = chosen.part
    if chosen.code >= 0:
        return part.codes[chosen.code].text
    kind, _, name = part.key.partition(":")
    if part.key == "answer:live":
        return model.live.text
    if part.key == "thinking:live":
        return "".join(model.live.thinking.pieces)
    if part.key.startswith(STOPPED):
        seq, _, number = part.key.removeprefix(STOPPED).partition(":")
        return model.stopped[int(seq)][int(number)].text
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
