"""Messages of a transcript to its screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from textual.message import Message
from textual.widget import Widget

if TYPE_CHECKING:
    from phoenix_tui.widgets.transcript.block_cursor import BlockAction, Target


class TranscriptMessage(Message):
    """Message of a transcript; `control` is the transcript."""

    def __init__(self, view: Widget) -> None:
        super().__init__()
        self.view = view

    @property
    def control(self) -> Widget:
        return self.view


class LinkClicked(TranscriptMessage):
    """A link was clicked; nothing was opened."""

    def __init__(self, view: Widget, target: str) -> None:
        super().__init__(view)
        self.target = target


class SelectionCopied(TranscriptMessage):
    """Text to be put on the clipboard."""

    def __init__(self, view: Widget, text: str) -> None:
        super().__init__(view)
        self.text = text


class CursorMoved(TranscriptMessage):
    """The block cursor was taken or left."""

    def __init__(self, view: Widget, *, is_on: bool) -> None:
        super().__init__(view)
        self.is_on = is_on


class Rewrapped(TranscriptMessage):
    """The transcript has another width: that of the screen changed, or the list or a pane came or went."""


class BlockRequest(Struct, frozen=True):
    """Action on a block that the transcript cannot do itself."""

    action: BlockAction
    target: Target


class FarPrompt(Struct, frozen=True):
    """The prompt before (-1) or behind (1) message `seq`, which is not in memory."""

    seq: int
    by: int


class Remark(Struct, frozen=True):
    """A passing notice."""

    text: str


BlockSignal: TypeAlias = BlockRequest | FarPrompt | Remark


class BlockWanted(TranscriptMessage):
    """Posted for an action that needs the engine, the editor or a notice to the user."""

    def __init__(self, view: Widget, request: BlockSignal) -> None:
        super().__init__(view)
        self.request = request
