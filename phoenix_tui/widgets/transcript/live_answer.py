"""The answer under way as a part that grows, and its change into a stored one without being laid out again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phoenix_tui.widgets.transcript.model import LiveReply
from phoenix_tui.widgets.transcript.parts import Part, PartKind

if TYPE_CHECKING:
    from phoenix_tui.markdown.stream import MarkdownStream


class LiveAnswer:
    """One part fed with the pieces of one reply; another reply starts another part."""

    def __init__(self) -> None:
        self._part: Part | None = None
        self._stream: MarkdownStream | None = None
        """Source of its lines."""
        self._reply: LiveReply | None = None
        self._fed = 0
        self.first_changed = -1
        """The first line that the last call of `part` changed, -1 for none."""

    def drop(self) -> None:
        """Forget the part: another width, another conversation."""
        self._part = self._stream = None

    def part(self, live: LiveReply, width: int) -> Part:
        """The part with all that has streamed so far."""
        from phoenix_tui.markdown.stream import MarkdownStream  # noqa: PLC0415 - 21 ms (docs/decisions/libraries.md)

        part, stream, self.first_changed = self._part, self._stream, -1
        if part is None or stream is None or self._reply is not live:
            stream = self._stream = MarkdownStream(width)
            part = self._part = Part("answer:live", PartKind.ANSWER, stream.lines, stream=stream, codes=stream.codes)
            self._reply, self._fed = live, 0
        if self._fed < len(live.pieces):
            self.first_changed = stream.add("".join(live.pieces[self._fed :]))
            self._fed = len(live.pieces)
            del part.strips[self.first_changed :]
        if part.dim is not (live.stopped is not None):
            part.dim, self.first_changed = live.stopped is not None, 0
            part.strips.clear()
        return part

    def finished(self, key: str, text: str, width: int, live: LiveReply) -> Part:
        """A stored answer; the one that just streamed, and is not `live` any more, keeps its lines and strips."""
        from phoenix_tui.markdown.stream import MarkdownStream  # noqa: PLC0415 - 21 ms (docs/decisions/libraries.md)

        part, growing = self._part, self._stream
        has_ended = self._reply is not live  # stopped text stays, and may begin like an earlier answer
        if has_ended and part is not None and growing is not None and text.startswith(growing.source):
            stream, strips = growing, part.strips
            del strips[stream.end(text[len(stream.source) :]) :]
            if part.dim:
                strips.clear()
            self._part = self._stream = None
        else:
            stream, strips = MarkdownStream(width), []
            stream.begin(text)
        waiting = stream if stream.jobs or stream.waiting else None
        return Part(key, PartKind.ANSWER, stream.lines, stream=waiting, codes=stream.codes, strips=strips)
