"""The text of one reply while it arrives: reasoning, answer and calls, separated when the server does not. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct, field

from engine.ports import StreamItem, TextDelta, ThinkingDelta
from engine.providers.openai_compatible.json_protocol import StepReader
from engine.providers.openai_compatible.text_calls import CallSpotter
from engine.providers.openai_compatible.thinking_tags import TaggedPiece, ThinkingSplitter, split_at_closing

AT_ONCE: Final = 1024
"""Characters processed together: both readers take lines off their buffers, and a reply may come in one piece."""


class WholeText(Struct, frozen=True):
    """The complete text of a reply. `calls` are (id, name, arguments); the id is always empty."""

    thinking: str = ""
    text: str = ""
    calls: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    is_cut: bool = False
    """True when the output limit cut a call."""


class AnswerText:
    """Feed it the text as it arrives. `reader` knows calls: by the JSON protocol, or those left in the text."""

    def __init__(self, reader: StepReader | CallSpotter | None = None) -> None:
        self._reader = reader
        self._splitter = ThinkingSplitter()
        self._plain: list[str] = []
        self._thinking: list[str] = []

    def feed(self, text: str) -> Iterator[StreamItem]:
        """Feed `text`; yields the visible additions."""
        for at in range(0, len(text), AT_ONCE):
            found = self._splitter.feed(text[at : at + AT_ONCE])
            yield from _joined(item for piece in found for item in self._take(piece))

    def flush(self, *, cut: bool, called: bool) -> Iterator[StreamItem]:
        """Yield held text that turned out to be plain; the arguments are those of `finish`."""
        for piece in self._splitter.finish():
            yield from self._take(piece)
        if isinstance(self._reader, CallSpotter):
            yield from self._reader.flush(cut=cut, called=called)

    def finish(self, *, cut: bool, called: bool = False) -> WholeText:
        """The whole. `cut`: the output limit ended it; `called`: the server has read calls, so none is in the text."""
        for piece in self._splitter.finish():
            for _ in self._take(piece):
                pass
        whole = self._read(cut=cut, called=called)
        thinking = "".join(self._thinking)
        if self._splitter.unclosed and not cut and not whole.text.strip() and not whole.calls:
            # It never ended, so it may have been the answer (SPEC T-SAN 14).
            return WholeText(text=self._splitter.unclosed + thinking)
        before, text = split_at_closing(whole.text)
        return WholeText(thinking or before, text, whole.calls, whole.is_cut)

    def _take(self, piece: TaggedPiece) -> Iterator[StreamItem]:
        if piece.is_thinking:
            self._thinking.append(piece.text)
            yield ThinkingDelta(piece.text)
        elif self._reader is not None:
            yield from self._reader.feed(piece.text)
        else:
            self._plain.append(piece.text)
            yield TextDelta(piece.text)

    def _read(self, *, cut: bool, called: bool) -> WholeText:
        match self._reader:
            case StepReader() as steps:
                step = steps.finish(cut=cut)
                return WholeText("", step.reply, step.calls, step.truncated)
            case CallSpotter() as spotter:
                found = spotter.finish(cut=cut, called=called)
                return WholeText("", found.text, [("", *call) for call in found.calls], found.is_cut)
            case None:
                return WholeText(text="".join(self._plain))


def _joined(items: Iterable[StreamItem]) -> Iterator[StreamItem]:
    """The items with texts that follow each other in one: the readers give one a line."""
    texts: list[str] = []
    for item in items:
        if isinstance(item, TextDelta):
            texts.append(item.text)
            continue
        if texts:
            yield TextDelta("".join(texts))
            texts = []
        yield item
    if texts:
        yield TextDelta("".join(texts))
