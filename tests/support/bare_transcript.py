"""Parts of a transcript without an app: a canvas, and a recording replacement of its widget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.color import Color
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView

from engine.records import StoredMessage, ToolCallRecord
from phoenix_tui.widgets.transcript.model import TranscriptModel
from phoenix_tui.widgets.transcript.painter import Colours, Painter
from phoenix_tui.widgets.transcript.scroller import Canvas
from phoenix_tui.widgets.transcript.view import follow
from tests.support.screens import snapshot

BLACK, WHITE = Color(0, 0, 0), Color(255, 255, 255)


class RecordedView(ScrollView):
    """Remembers what is asked of it; nothing is mounted, so nothing is carried out."""

    def __init__(self, width: int, height: int) -> None:
        super().__init__()
        self.has = Size(width, height)
        self.painted: list[Region] = []
        self.moves: list[float] = []
        self.told: list[Message] = []

    @property
    def size(self) -> Size:
        return self.has

    def refresh(self, *regions: Region, **_: Any) -> RecordedView:
        self.painted.extend(regions or (Region(0, 0, *self.has),))
        return self

    def scroll_to(self, x: float | None = None, y: float | None = None, **_: Any) -> None:
        assert y is not None
        self.moves.append(y)

    def post_message(self, message: Message) -> bool:
        self.told.append(message)
        return True


class RecordedBar:
    """A scrollbar that keeps its last values."""

    def __init__(self) -> None:
        self.stood: tuple[int, int, float] | None = None

    def stand(self, total: int, window: int, y: float) -> None:
        self.stood = total, window, y


def canvas_of(
    messages: Sequence[StoredMessage], calls: Sequence[ToolCallRecord] = (), *, width: int = 60, height: int = 12
) -> Canvas:
    """A conversation as it is shown first: from its end."""
    model = TranscriptModel()
    follow(snapshot(messages, calls), model)
    canvas = Canvas(model)
    canvas.reset()
    canvas.resize(width, height)
    canvas.place()
    return canvas


def plain_painter(width: int = 60) -> Painter:
    """A painter in black and white."""
    return Painter(Colours(BLACK, BLACK, WHITE, WHITE, WHITE, WHITE, WHITE, WHITE, WHITE, BLACK), width)
