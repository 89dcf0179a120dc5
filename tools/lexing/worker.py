"""The lexing process: reads texts from standard input, answers with the kinds of their pieces, and ends when idle.

Run as a script with `python -I`. Lexers are regular expressions, and some take exponential time on hostile text while
they hold the interpreter: so the kernel ends this process when a text has used up its processor time.

A request is one JSON line with `language`, `size` in bytes and `kinds` (names of token types), then the text. The
answer is JSON lines: lists of source lines, each a flat list of index into `kinds` and length; an empty list is last.
"""

from __future__ import annotations

import importlib
import json
import resource
import select
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

CPU_SECONDS = 2.0
"""Seconds of processor time for one text; 100,000 characters of honest code take 0.3 to 0.8 s."""
MEMORY = 400 * 1024 * 1024
IDLE = 30.0
"""Seconds without a text after which it ends: it takes 12 MB."""
SLICE = 200
"""Source lines in one line of an answer."""


def main() -> None:
    """Answer requests until the input ends."""
    for kind, value in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0)):
        with suppress(ValueError, OSError):  # macOS refuses one on memory
            resource.setrlimit(kind, (value, value))
    source = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115 - for as long as it lives
    while select.select([source], [], [], IDLE)[0] and (header := _line(source)):
        wanted = json.loads(header)
        content = bytearray()
        while more := source.read(wanted["size"] - len(content)):
            content += more
        text = content.decode()
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        for lines in _slices(text, wanted["language"], wanted["kinds"]):
            _answer(lines)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _answer([])


def _line(source: Any) -> bytes:
    """Read one line byte by byte, so that the text behind it stays in the pipe."""
    line = bytearray()
    while (byte := source.read(1)) and byte != b"\n":
        line += byte
    return bytes(line)


def _answer(lines: Sequence[Sequence[int]]) -> None:
    sys.stdout.buffer.write(json.dumps(lines, separators=(",", ":")).encode() + b"\n")
    sys.stdout.buffer.flush()


def _slices(text: str, language: str, kinds: Sequence[str]) -> Iterator[list[list[int]]]:
    # Not those of plug-ins: finding them takes longer than lexing.
    lexers: Any = importlib.import_module("pygments.lexers")  # behind the limits, and it ships no types
    known = {alias for _, _, aliases, _, _ in lexers.LEXERS.values() for alias in aliases}
    lexer = lexers.get_lexer_by_name(language, stripnl=False, ensurenl=True) if language in known else None
    waiting: list[list[int]] = []
    for line in () if lexer is None else _lines(lexer.get_tokens(text), {name: at for at, name in enumerate(kinds)}):
        waiting.append(line)
        if len(waiting) == SLICE:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _lines(tokens: Iterable[tuple[Any, str]], kinds: dict[str, int]) -> Iterator[list[int]]:
    known: dict[Any, int] = {}
    line: list[int] = []
    for kind, text in tokens:
        if kind not in known:
            known[kind] = _index(kind, kinds)
        first, *others = text.split("\n")
        if first:
            line += (known[kind], len(first))
        for other in others:
            yield line
            line = [known[kind], len(other)] if other else []
    if line:
        yield line


def _index(kind: Any, kinds: dict[str, int]) -> int:
    """The index of a token type, or of its nearest ancestor that has one; -1 for none."""
    while kind is not None:
        if (found := kinds.get(str(kind).removeprefix("Token."))) is not None:
            return found
        kind = kind.parent
    return -1


if __name__ == "__main__":
    main()
