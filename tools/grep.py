"""The search program for machines without ripgrep; a separate process, so that a slow pattern can be killed.

Run as a script, standard library only. Standard input: one JSON line with `pattern`, `ignore_case`, `context`
and `limit`, then NUL-separated paths. Standard output: ripgrep's JSON lines, as far as `matches.py` reads them, and
one of type `left_out` for each file that was not searched, or not to its end.
"""

from __future__ import annotations

import base64
import json
import os
import re
import stat
import sys
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import BinaryIO

BINARY = "binary"
_LOOKED_AT = 8192
_READ_AT_ONCE = 256 * 1024
_LONGEST_LINE = 256 * 1024


def main() -> int:
    """Search and print; exit code 0 with matches, 1 without, 2 for a malformed pattern, as grep's."""
    header, _, names = sys.stdin.buffer.read().partition(b"\n")
    wanted = json.loads(header)
    try:
        pattern = re.compile(wanted["pattern"].encode(), re.IGNORECASE if wanted["ignore_case"] else 0)
    except re.error as error:
        _emit({"type": "error", "message": f"{error}"})
        return 2
    left = wanted["limit"]
    for name in names.split(b"\0"):
        left -= _search(name, pattern, wanted["context"], left)
        if left <= 0:
            break
    return 0 if left < wanted["limit"] else 1


def _search(name: bytes, pattern: re.Pattern[bytes], context: int, limit: int) -> int:
    """Print the matching lines of a text file and those around them; reads it once, whatever its size."""
    hits, after = 0, 0
    before: deque[tuple[int, bytes]] = deque(maxlen=context)
    try:
        with _text_of(name) as lines:
            for number, line in lines:
                found = pattern.search(line)
                if found is None:
                    if after > 0:
                        _emit(_line(name, number, line, None))
                    else:
                        before.append((number, line))
                    after -= 1
                    continue
                for place, text in before:
                    _emit(_line(name, place, text, None))
                _emit(_line(name, number, line, found.start()))
                before.clear()
                hits, after = hits + 1, context
                if hits == limit:
                    break
    except OSError as error:
        _leave_out(name, error.strerror or "cannot be read")
    except ValueError as error:
        _leave_out(name, str(error))
    return hits


@contextmanager
def _text_of(name: bytes) -> Generator[Iterator[tuple[int, bytes]]]:
    """The lines of a text file with their numbers from 0.

    Raises:
        OSError: it cannot be opened or read.
        ValueError: it is binary, or no regular file.
    """
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb", buffering=_READ_AT_ONCE) as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("no regular file")
        if b"\0" in stream.read(_LOOKED_AT):
            raise ValueError(BINARY)
        stream.seek(0)
        yield _number_lines(stream, name)


def _number_lines(stream: BinaryIO, name: bytes) -> Iterator[tuple[int, bytes]]:
    number, is_cut = 0, False
    while line := stream.readline(_LONGEST_LINE):
        rest = line
        while len(rest) == _LONGEST_LINE and not rest.endswith(b"\n"):
            rest = stream.readline(_LONGEST_LINE)
            is_cut = True
        yield number, line.removesuffix(b"\n")
        number += 1
    if is_cut:
        _leave_out(name, f"of lines longer than {_LONGEST_LINE // 1024} KB the rest")


def _leave_out(name: bytes, why: str) -> None:
    _emit({"type": "left_out", "data": {"path": _text(name), "why": why}})


def _line(name: bytes, number: int, line: bytes, start: int | None) -> dict[str, object]:
    return {
        "type": "context" if start is None else "match",
        "data": {
            "path": _text(name),
            "line_number": number + 1,
            "lines": _text(line),
            "submatches": [] if start is None else [{"start": start}],
        },
    }


def _text(raw: bytes) -> dict[str, str]:
    try:
        return {"text": raw.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(raw).decode()}


def _emit(value: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")


if __name__ == "__main__":
    sys.exit(main())
