"""The row at the foot of a transcript while the block cursor is on: the block's name and its keys."""

from __future__ import annotations

from typing import Final

from phoenix_tui.keys.active_keys import keys
from phoenix_tui.keys.keymap import KEYS_BY_ID
from phoenix_tui.markdown.lines import QUIET, Span, TextStyle, TextTone, cells
from phoenix_tui.widgets.transcript.block_cursor import ChosenBlock
from phoenix_tui.widgets.transcript.parts import Part
from phoenix_tui.widgets.transcript.stack import Stack
from phoenix_tui.widgets.transcript.targets import BlockAction, target_of

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
        self._of: tuple[Part, int, bool, int] | None = None
        self._spans: tuple[Span, ...] = ()

    def spans(self, stack: Stack, chosen: ChosenBlock | None, width: int) -> tuple[Span, ...]:
        """Words of the row."""
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
