"""The search program for machines without ripgrep; a separate process, so that a slow pattern can be killed.

Run as a script, standard library only. Standard input: one JSON line with `pattern`, `ignore_case`, `context`
and `limit`, then NUL-separated paths. Standard output: ripgrep's JSON lines, as far as `matches.py` reads them.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys

_LARGEST = 64 * 1024 * 1024
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
    lines = _lines(name)
    hits = [number for number, line in enumerate(lines) if pattern.search(line)][:limit]
    matched = set(hits)
    around = {n for hit in hits for n in range(max(0, hit - context), min(len(lines), hit + context + 1))}
    for number in sorted(around):
        found = pattern.search(lines[number]) if number in matched else None
        _emit(_line(name, number, lines[number], found.start() if found else None))
    return len(hits)


def _lines(name: bytes) -> list[bytes]:
    """The lines of a text file; none of one that is binary, huge, gone or no regular file."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            raw = stream.read(_LARGEST + 1)
    except OSError:
        return []
    if len(raw) > _LARGEST or b"\0" in raw[:8192]:
        return []
    return [line[:_LONGEST_LINE] for line in raw.removesuffix(b"\n").split(b"\n")]


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
