"""Phoenix's side of the lexing process: the kinds of pieces in a text, or nothing after a timeout."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from tools.process.helper import Helper, HelperFailed

TIMEOUT: Final = 8.0
"""Seconds of a clock for one text, on a machine that is busy with other things too."""
MOST_LEXED: Final = 100_000
"""Characters of a text that are lexed, up to a whole line."""
STRIKES: Final = 3
"""Texts in one language that killed the process; after them that language stays plain."""
KEPT: Final = 256
"""Texts that are remembered for having killed it."""
_WORKER: Final = Path(__file__).parent / "worker.py"
LexedLine: TypeAlias = Sequence[tuple[int, int]]
"""Pieces of one line: the index of a kind, -1 for none, and the number of characters."""


class Lexing:
    """Asks the process; blocks for as long as it works, so call it from a thread."""

    def __init__(self, argv: Sequence[str] = (sys.executable, "-I", str(_WORKER)), timeout: float = TIMEOUT) -> None:
        self.helper = Helper(argv, timeout=timeout)
        self._strikes: dict[str, int] = {}
        self._deadly: OrderedDict[bytes, None] = OrderedDict()

    def lines(self, text: str, language: str, kinds: Sequence[str]) -> list[LexedLine]:
        """The pieces of the first lines of a text, up to where a lexer took too long; none for an unknown language."""
        if not language or self._strikes.get(language, 0) >= STRIKES:
            return []
        if len(text) > MOST_LEXED:
            text = text[: text.rfind("\n", 0, MOST_LEXED) + 1]
        raw = text.encode("utf-8", "replace")
        name = hashlib.blake2b(raw + language.encode("utf-8", "replace"), digest_size=16).digest()
        if not text or name in self._deadly:
            return []
        header = json.dumps({"language": language, "size": len(raw), "kinds": list(kinds)})
        try:
            answer = self.helper.ask(header.encode() + b"\n" + raw, b"[]")
        except HelperFailed as failure:
            answer = failure.lines
            self._strikes[language] = self._strikes.get(language, 0) + 1
            self._deadly[name] = None
            if len(self._deadly) > KEPT:
                self._deadly.popitem(last=False)
        return [tuple(zip(flat[::2], flat[1::2], strict=True)) for line in answer for flat in _decode(line)]


def _decode(line: bytes) -> list[list[int]]:
    try:
        return msgspec.json.decode(line, type=list[list[int]])
    except msgspec.DecodeError:
        return []


lexing: Final = Lexing()
"""The one of this Phoenix; its process starts with the first text."""
