"""search and list_files: lines that match a regular expression, in a child process that can be ended, and paths."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from tools.arguments import Arguments, ToolFailure, explain, failure_output, object_schema
from tools.contract import (
    HELPER_SANDBOX,
    Command,
    JsonObject,
    ProcessRunner,
    ToolClass,
    ToolContext,
    ToolInputError,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)
from tools.files.location import admit, resolve, show_path, spills_of
from tools.files.walking import MOST_WALKED, WalkedFiles, matcher, walk
from tools.process.programs import find_program
from tools.wording import pluralize

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
                found.append(_read_line(msgspec.json.decode(event.data, type=_Line), event.type == "match"))
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
        yield f"{show_path(Path(line.path), working_dir)}{mark}{line.number}{mark} {line.text}"
        previous = line


def _path(path: _Text) -> str:
    return os.fsdecode(path.raw())


def _read_line(line: _Line, is_match: bool) -> FoundLine:
    raw = line.lines.raw().rstrip(b"\r\n")
    start = line.submatches[0].start if line.submatches else 0
    first = max(0, start - LONGEST_SHOWN // 3) if len(raw) > LONGEST_SHOWN else 0
    text = raw[first : first + LONGEST_SHOWN].decode("utf-8", "replace")
    text = f"{'…' if first else ''}{text}{'…' if first + LONGEST_SHOWN < len(raw) else ''}"
    return FoundLine(_path(line.path), line.line_number or 0, text, is_match)


MOST_MATCHES = 200
MOST_CONTEXT = 10
LARGE = 64 * 1024 * 1024
"""Bytes of a file from which a match in it comes with its size."""
MOST_NAMED = 5
"""Files that were not searched and are named."""
TIMEOUT = 30.0
"""Seconds for one search program."""
MOST_OUTPUT = 4 * 1024 * 1024
ARGUMENT_BYTES = 96 * 1024
"""Paths per ripgrep; well under every system's limit for a command line."""

_GREP = Path(__file__).parent / "grep.py"
_SCHEMA = object_schema(
    {
        "pattern": {"type": "string", "description": "A regular expression, matched line by line."},
        "path": {"type": "string", "description": "A folder or file; the working directory if not given."},
        "glob": {"type": "string", "description": "Only these files: *.py looks at names, src/**/*.py at paths."},
        "ignore_case": {"type": "boolean"},
        "context": {"type": "integer", "minimum": 0, "maximum": MOST_CONTEXT, "description": "Lines around a match."},
    },
    ["pattern"],
)
_SPEC = ToolSpec(
    "search",
    f"Find lines by regular expression in the files under a folder, at most {MOST_MATCHES} matches. Skips binary "
    "files and what ignore files exclude. Gives path:line: text.",
    _SCHEMA,
    ToolClass.READ,
)


class SearchInput(Struct, frozen=True):
    """Input of search."""

    pattern: str
    path: str
    glob: str
    ignore_case: bool
    context: int

    @classmethod
    def parse(cls, args: JsonObject) -> SearchInput:
        """Read the arguments.

        Raises:
            ToolInputError: they are invalid.
        """
        fields = Arguments(args, ("pattern", "path", "glob", "ignore_case", "context"))
        wanted = cls(
            fields.text("pattern"),
            fields.text("path", "."),
            fields.text("glob", ""),
            fields.flag("ignore_case"),
            fields.whole("context", 0, 0, MOST_CONTEXT),
        )
        if not wanted.pattern or "\n" in wanted.pattern or "\0" in wanted.pattern:
            raise ToolInputError("pattern must be one non-empty line; every line of a file is matched for itself.")
        matcher(wanted.glob)
        return wanted


class Search(Struct, frozen=True):
    """The tool; of `spills` the part of the working directory may be searched, too."""

    runner: ProcessRunner
    spills: tuple[Path, ...] = ()
    spec: ToolSpec = _SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Name the pattern and the place."""
        wanted = SearchInput.parse(args)
        path = await asyncio.to_thread(resolve, wanted.path, working_dir)
        place = show_path(path, working_dir)
        glob = f" ({wanted.glob})" if wanted.glob else ""
        return ToolRequest(summary=f'"{wanted.pattern}" in {place}{glob}', paths=(path,))

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Walk, then search the files found."""
        wanted = SearchInput.parse(args)
        try:
            also = tuple(spills_of(folder, context.working_dir) for folder in self.spills)
            walked = await asyncio.to_thread(_walk, wanted, context, also)
            return await self._search_files(wanted, walked, context.working_dir)
        except ToolFailure as failure:
            return failure_output(str(failure))
        except OSError as error:
            return failure_output(explain(error, wanted.path))

    async def _search_files(self, wanted: SearchInput, walked: WalkedFiles, working_dir: Path) -> ToolOutput:
        lines: list[FoundLine] = []
        left_out: dict[str, str] = {}
        whole = walked.complete
        for command in _commands(wanted, walked.files, working_dir):
            finished = await self.runner.run(command)
            found = parse(finished.captured.head)
            if finished.timed_out and not found.lines:
                raise ToolFailure(
                    f"The search took longer than {TIMEOUT:g} s; use a simpler pattern or a smaller folder."
                )
            if found.problem and finished.exit_code == 2 and not found.lines:
                raise ToolFailure(f"The pattern cannot be searched: {found.problem}")
            lines.extend(found.lines)
            left_out |= found.left_out
            whole = whole and not finished.captured.dropped and not finished.timed_out
            if sum(line.is_match for line in lines) >= MOST_MATCHES:
                break
        return _output(lines, whole, len(walked.files), _not_searched(left_out, working_dir), working_dir)


def _walk(wanted: SearchInput, context: ToolContext, also: tuple[Path, ...]) -> WalkedFiles:
    location = admit(wanted.path, context, also)
    if stat.S_ISREG(location.path.stat(follow_symlinks=False).st_mode):
        return WalkedFiles((str(location.path),))
    return walk(location.path, glob=wanted.glob, without=context.kept_out)


def _commands(wanted: SearchInput, files: Sequence[str], working_dir: Path) -> Iterator[Command]:
    """One command for our own program, or as many as it takes for ripgrep."""
    if not files:
        return
    ripgrep = find_program("rg", working_dir)
    if not ripgrep:
        yield _command((sys.executable, "-I", str(_GREP)), working_dir, _grep_input(wanted, files))
        return
    case = "--ignore-case" if wanted.ignore_case else "--case-sensitive"
    amount = (f"--max-count={MOST_MATCHES}", f"--context={wanted.context}")
    options = ("--json", "--no-config", "--no-ignore", case, *amount)
    for batch in _batches(files):
        yield _command((ripgrep, *options, "-e", wanted.pattern, "--", *batch), working_dir, None)


def _command(argv: tuple[str, ...], working_dir: Path, stdin: bytes | None) -> Command:
    return Command(argv, working_dir, TIMEOUT, stdin=stdin, keep_head=MOST_OUTPUT, keep_tail=0, sandbox=HELPER_SANDBOX)


def _grep_input(wanted: SearchInput, files: Sequence[str]) -> bytes:
    header = {
        "pattern": wanted.pattern,
        "ignore_case": wanted.ignore_case,
        "context": wanted.context,
        "limit": MOST_MATCHES,
    }
    return json.dumps(header).encode() + b"\n" + b"\0".join(map(os.fsencode, files))


def _batches(files: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for path in files:
        batch.append(path)
        size += len(os.fsencode(path)) + 1
        if size > ARGUMENT_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _NotSearched(NamedTuple):
    """Files that were not searched: their number, and the words about all of them and about those that are text."""

    files: int
    words: str
    texts: str


def _not_searched(left_out: Mapping[str, str], working_dir: Path) -> _NotSearched:
    texts = [(path, why) for path, why in left_out.items() if why != BINARY]
    named = [f"{show_path(Path(path), working_dir)} ({why})" for path, why in sorted(texts)[:MOST_NAMED]]
    if len(texts) > MOST_NAMED:
        named.append(f"{pluralize(len(texts) - MOST_NAMED, 'more file')}")
    binary = len(left_out) - len(texts)
    everything = [*([pluralize(binary, "binary file")] if binary else []), *named]
    return _NotSearched(len(left_out), ", ".join(everything), ", ".join(named))


def _large_files(lines: Sequence[FoundLine], working_dir: Path) -> Iterator[str]:
    """A line for each file that is too long to be read as a whole."""
    for path in dict.fromkeys(line.path for line in lines):
        with suppress(OSError):
            size = Path(path).stat().st_size
            if size > LARGE:
                yield f"[{show_path(Path(path), working_dir)} is large, {size >> 20:,} MB; read it in parts]"


def _output(
    lines: Sequence[FoundLine], whole: bool, files: int, not_searched: _NotSearched, working_dir: Path
) -> ToolOutput:
    matches = [place for place, line in enumerate(lines) if line.is_match]
    if not matches:
        rest = f"; not searched: {not_searched.words}" if not_searched.words else ""
        count = files - not_searched.files
        return ToolOutput(
            f"[no match in {count:,} files{rest}]" if whole else f"[no match in the part that was searched{rest}]"
        )
    cut = len(matches) >= MOST_MATCHES
    shown_lines = lines[: matches[MOST_MATCHES]] if len(matches) > MOST_MATCHES else lines
    out = list(render(shown_lines, working_dir))
    if cut or not whole:
        count = min(len(matches), MOST_MATCHES)
        out.append(f"[{count} matches shown, there may be more; narrow it with path, glob or a longer pattern]")
    if not_searched.texts:
        out.append(f"[not searched: {not_searched.texts}]")
    out += _large_files(shown_lines, working_dir)
    return ToolOutput("\n".join(out), truncated=cut or not whole)


MOST_FILES = 1000

_LIST_SCHEMA = object_schema({
    "path": {"type": "string", "description": "The folder; the working directory if not given."},
    "glob": {
        "type": "string",
        "description": "Only these files: *.py looks at names, src/**/*.py at paths under the folder.",
    },
    "ignored": {"type": "boolean", "description": "Also what .gitignore and .ignore exclude."},
})
_LIST_SPEC = ToolSpec(
    "list_files",
    f"List the files under a folder, sorted, at most {MOST_FILES:,}. Paths are relative to the working directory. "
    "An odd name is shown as $'…'; give it back to other tools in the same form.",
    _LIST_SCHEMA,
    ToolClass.READ,
)


class ListFilesInput(Struct, frozen=True):
    """Input of list_files."""

    path: str
    glob: str
    ignored: bool

    @classmethod
    def parse(cls, args: JsonObject) -> ListFilesInput:
        """Read the arguments.

        Raises:
            ToolInputError: they are invalid.
        """
        fields = Arguments(args, ("path", "glob", "ignored"))
        wanted = cls(fields.text("path", "."), fields.text("glob", ""), fields.flag("ignored"))
        matcher(wanted.glob)
        return wanted


class ListFiles(Struct, frozen=True):
    """The tool."""

    spec: ToolSpec = _LIST_SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Name the folder and the pattern."""
        wanted = ListFilesInput.parse(args)
        path = await asyncio.to_thread(resolve, wanted.path, working_dir)
        name = show_path(path, working_dir)
        return ToolRequest(summary=f"{wanted.glob} in {name}" if wanted.glob else name, paths=(path,))

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """List them."""
        wanted = ListFilesInput.parse(args)
        try:
            return await asyncio.to_thread(_list, wanted, context)
        except ToolFailure as failure:
            return failure_output(str(failure))
        except OSError as error:
            return failure_output(explain(error, wanted.path))


def _list(wanted: ListFilesInput, context: ToolContext) -> ToolOutput:
    location = admit(wanted.path, context)
    if not stat.S_ISDIR(location.path.stat(follow_symlinks=False).st_mode):
        raise ToolFailure(f"{location.shown} is a file, not a folder; use read_file.")
    walked = walk(location.path, glob=wanted.glob, ignored=wanted.ignored, without=context.kept_out)
    return _list_output(walked, wanted, context)


def _list_output(walked: WalkedFiles, wanted: ListFilesInput, context: ToolContext) -> ToolOutput:
    if not walked.files:
        rest = "" if wanted.ignored else " Files that .gitignore excludes are listed with ignored: true."
        return ToolOutput(f"[no files{f' match {wanted.glob}' if wanted.glob else ''}]{rest}")
    lines = [show_path(Path(path), context.working_dir) for path in walked.files[:MOST_FILES]]
    total = len(walked.files)
    if total > MOST_FILES:
        count = f"{total:,}" if walked.complete else f"more than {MOST_WALKED:,}"
        lines.append(f"[{MOST_FILES:,} of {count} files shown; narrow it with path or glob]")
    return ToolOutput("\n".join(lines), truncated=total > MOST_FILES)
