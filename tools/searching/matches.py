"""ripgrep's JSON lines as values, and the values as text for a model."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from tools.files.location import shown

BINARY = "binary"
_UNREADABLE = re.compile(rb"(?:rg: )?(?P<path>.+): (?P<why>[^:]+) \(os error \d+\)")
"""Line of ripgrep about a file that it could not read."""
LONGEST_SHOWN = 300
"""Characters of a line that are shown, chosen around the match."""


class _Text(msgspec.Struct):
    text: str | None = None
    encoded: str | None = msgspec.field(name="bytes", default=None)

    def raw(self) -> bytes:
        if self.text is not None:
            return self.text.encode("utf-8", "surrogateescape")
        return base64.b64decode(self.encoded or "")


class _Submatch(msgspec.Struct):
    start: int


class _Line(msgspec.Struct):
    path: _Text
    lines: _Text
    line_number: int | None = None
    submatches: list[_Submatch] = []


class _End(msgspec.Struct):
    path: _Text
    binary_offset: int | None = None


class _LeftOut(msgspec.Struct):
    path: _Text
    why: str


class _Event(msgspec.Struct):
    type: str
    data: msgspec.Raw = msgspec.Raw(b"null")
    message: str = ""


class FoundLine(Struct, frozen=True):
    """One line of a result: a match, or a line around one."""

    path: str
    number: int
    text: str
    is_match: bool


class SearchMatches(Struct, frozen=True):
    """Output of a search program."""

    lines: tuple[FoundLine, ...]
    problem: str = ""
    """Error message of the program, if it printed one."""
    left_out: Mapping[str, str] = {}
    """Paths of files that were not searched, or not to their end, and why."""


def parse(output: bytes) -> SearchMatches:
    """Read JSON lines, sorted by path, without binary files; anything else is taken for a complaint."""
    found: list[FoundLine] = []
    left_out: dict[str, str] = {}
    problems: list[str] = []
    decoder = msgspec.json.Decoder(_Event)
    for raw in output.split(b"\n"):
        if not raw:
            continue
        try:
            event = decoder.decode(raw)
            if event.type in {"match", "context"}:
                found.append(_found(msgspec.json.decode(event.data, type=_Line), event.type == "match"))
            elif event.type == "end":
                end = msgspec.json.decode(event.data, type=_End)
                left_out |= {} if end.binary_offset is None else {_path(end.path): BINARY}
            elif event.type == "left_out":
                one = msgspec.json.decode(event.data, type=_LeftOut)
                left_out[_path(one.path)] = one.why
            elif event.message:
                problems.append(event.message)
        except msgspec.DecodeError:
            told = _UNREADABLE.fullmatch(raw)
            if told is not None:
                left_out[os.fsdecode(told["path"])] = told["why"].decode("utf-8", "replace")
            else:
                problems.append(raw.decode("utf-8", "replace"))
    found = sorted((line for line in found if left_out.get(line.path) != BINARY), key=lambda line: line.path)
    return SearchMatches(tuple(found), "\n".join(problems[:5]), left_out)


def render(lines: Sequence[FoundLine], working_dir: Path) -> Iterator[str]:
    """`path:12: text` for matches, `path-11- text` around them, `--` between separate places."""
    previous: FoundLine | None = None
    separated = any(not line.is_match for line in lines)
    for line in lines:
        adjoining = previous and previous.path == line.path and previous.number + 1 == line.number
        if separated and previous and not adjoining:
            yield "--"
        mark = ":" if line.is_match else "-"
        yield f"{shown(Path(line.path), working_dir)}{mark}{line.number}{mark} {line.text}"
        previous = line


def _path(path: _Text) -> str:
    return os.fsdecode(path.raw())


def _found(line: _Line, is_match: bool) -> FoundLine:
    raw = line.lines.raw().rstrip(b"\r\n")
    start = line.submatches[0].start if line.submatches else 0
    first = max(0, start - LONGEST_SHOWN // 3) if len(raw) > LONGEST_SHOWN else 0
    text = raw[first : first + LONGEST_SHOWN].decode("utf-8", "replace")
    text = f"{'…' if first else ''}{text}{'…' if first + LONGEST_SHOWN < len(raw) else ''}"
    return FoundLine(_path(line.path), line.line_number or 0, text, is_match)
