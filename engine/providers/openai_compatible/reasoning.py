"""The reasoning of one reply, in blocks with the signatures that a gateway to Claude passes on. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from engine.machine.messages import ThinkingBlock
from engine.providers.carried import is_carried
from tools.contract import JsonValue


class WireThinking(Struct):
    """A piece of Claude's reasoning as LiteLLM passes it on beside `reasoning_content`, which has its text, too."""

    thinking: str = ""
    signature: str = ""
    data: str = ""


class Reasoning(Struct, eq=False):
    """Feed it text and signatures in the order in which they come."""

    characters: int = 0
    _done: list[ThinkingBlock] = field(default_factory=list[ThinkingBlock])
    _open: list[str] = field(default_factory=list[str])

    @property
    def signed(self) -> int:
        """Number of blocks with a signature."""
        return len(self._done)

    def add(self, text: str, pieces: Sequence[WireThinking]) -> Iterator[str]:
        """Add the text of one event and the pieces beside it; returns the text missing in `text`.

        Pieces whose text is not that of the event bring signatures alone.
        """
        parted = bool(text) and text == "".join(piece.thinking for piece in pieces)
        self._write("" if parted else text)
        for piece in pieces:
            self._write(piece.thinking if parted else "")
            self._sign(piece)
            yield piece.signature + piece.data

    def _write(self, text: str) -> None:
        if text:
            self.characters += len(text)
            self._open.append(text)

    def _sign(self, piece: WireThinking) -> None:
        if piece.data:
            self._done.append(ThinkingBlock("", piece.data, redacted=True))
        elif piece.signature:
            self._done.append(ThinkingBlock("".join(self._open), piece.signature))
            self._open.clear()

    def blocks(self, rest: str) -> Iterator[ThinkingBlock]:
        """Every block; `rest` is reasoning that was found in the text."""
        yield from self._done
        if unsigned := "".join(self._open) + rest:
            yield ThinkingBlock(unsigned, "")


def written_back(blocks: Sequence[ThinkingBlock]) -> list[JsonValue]:
    """Signed blocks as a gateway to Claude takes them back."""
    return [
        {"type": "redacted_thinking", "data": block.signature}
        if block.redacted
        else {"type": "thinking", "thinking": block.text, "signature": block.signature}
        for block in blocks
        if block.signature and not is_carried(block)
    ]
