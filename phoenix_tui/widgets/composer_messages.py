"""Messages of the composer to its parents."""

from __future__ import annotations

from pathlib import Path

from textual.message import Message

from phoenix_tui.widgets.pasting import Pasted


class Submitted(Message, namespace="composer"):
    """Enter: the whole text, long pastes included, already out of the box; empty when nothing was written."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class KeyPasted(Message, namespace="composer"):
    """An API key alone was pasted into the empty box; it has not been shown."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key


class ImagesDropped(Message, namespace="composer"):
    """Paths of images were pasted or dropped."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        super().__init__()
        self.paths = paths


class QueueWanted(Message, namespace="composer"):
    """Tab while the agent works: the whole text waits its turn; already out of the box. `steer`: the running turn
    reads it with its next tool results.
    """

    def __init__(self, text: str, *, steer: bool = False) -> None:
        super().__init__()
        self.text = text
        self.steer = steer


class PasteOpened(Message, namespace="composer"):
    """Enter or a click on the mark of a long paste."""

    def __init__(self, mark: str) -> None:
        super().__init__()
        self.mark = mark


class PasteTaken(Message, namespace="composer"):
    """Posted after a paste that may need a remark."""

    def __init__(self, taken: Pasted, length: int) -> None:
        super().__init__()
        self.taken = taken
        self.length = length


class KeyRefused(Message, namespace="composer"):
    """A key had no effect on the text; `why` also names the key that has one."""

    def __init__(self, why: str) -> None:
        super().__init__()
        self.why = why


class HelpWanted(Message, namespace="composer"):
    """`?` on an empty line."""


class ImageDropped(Message, namespace="composer"):
    """Backspace at the start of an empty text: the last image goes."""


class LeaveWanted(Message, namespace="composer"):
    """Ctrl+D on an empty text."""


class ModeChanged(Message, namespace="composer"):
    """Vim's mode, or whether its keys are the composer's, is another now."""
