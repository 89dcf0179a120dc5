"""Next steps for a request from the results of tools: call tools or answer, at most `ROUNDS` rounds."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TypeAlias, assert_never

from msgspec import Struct

from engine.machine.messages import Block, Role, TextBlock, ToolResultBlock, ToolUseBlock, text_in
from engine.ports import ModelMessage
from engine.providers.guide.understand import (
    CountLines,
    CountTo,
    Describe,
    GitChanges,
    GuideRequest,
    Help,
    ListRequest,
    ReadFiles,
    Replace,
    RunCommand,
    RunTests,
    SearchRequest,
    SmallTalk,
    Summarize,
    ThinkRequest,
    WriteRequest,
)
from tools.wording import pluralize

ASK_USER = "ask_user"
_TRANSIENT = re.compile(r"^\s*\[.*\]\s*$", re.DOTALL)
"""Pattern of a text that Phoenix itself added to the user's text or tool results (SPEC UNI-33)."""


class Answered(Struct, frozen=True):
    """A tool call of this turn and its result."""

    name: str
    input_json: str
    text: str
    is_error: bool


class Dialogue(Struct, frozen=True):
    """One turn as far as it has come."""

    request: str
    """Last message that the person typed."""
    earlier: tuple[str, ...] = ()
    """Earlier messages of the person, oldest first."""
    rounds: tuple[tuple[Answered, ...], ...] = ()
    """The tool rounds of this turn, each with its calls in order."""

    @property
    def answered(self) -> tuple[Answered, ...]:
        """All calls of this turn in order."""
        return tuple(call for calls in self.rounds for call in calls)


def read_dialogue(messages: Sequence[ModelMessage]) -> Dialogue:
    """Split the messages of a request into the question and the later results of tools."""
    spoken: list[str] = []
    rounds: list[tuple[Answered, ...]] = []
    pending: tuple[ToolUseBlock, ...] = ()
    for message in messages:
        if message.role is Role.ASSISTANT:
            pending = tuple(block for block in message.blocks if isinstance(block, ToolUseBlock))
            continue
        results = {block.tool_use_id: block for block in message.blocks if isinstance(block, ToolResultBlock)}
        if results:
            rounds.append(tuple(_pair_answer(call, results.get(call.id)) for call in pending))
        text = _read_typed_text(message.blocks, beside_results=bool(results))
        if text or not results:
            spoken.append(text)
            rounds.clear()
        pending = ()
    return Dialogue(spoken[-1] if spoken else "", tuple(spoken[:-1]), tuple(rounds))


def _read_typed_text(blocks: Sequence[Block], *, beside_results: bool) -> str:
    """Text that the person typed. A bracketed text counts only when there is no other."""
    texts = [block.text for block in blocks if isinstance(block, TextBlock) and not block.attached]
    typed = [text for text in texts if not _TRANSIENT.search(text)]
    return "\n".join(typed if typed or beside_results else texts).strip()


def _pair_answer(call: ToolUseBlock, result: ToolResultBlock | None) -> Answered:
    if result is None:
        return Answered(call.name, call.input_json, "no result", is_error=True)
    text = text_in(result.content, "\n")
    return Answered(call.name, call.input_json, text, result.is_error)


_NUMBERED = re.compile(r"^\s*\d+\t(.*)$")
_NOTICE = re.compile(r"^\[(?:no |\d|still alive|timed out|exit code|ended by|…)")
"""Bracketed line of a tool about its result."""
_MATCH = re.compile(r"^(?P<path>[^:\n]+):(?P<line>\d+): ?(?P<text>.*)$")
_TOTALS = re.compile(r"\b(\d+) (passed|failed|errors?|skipped|xfailed|tests? ran)\b")


_FILES_CUT = re.compile(r"^\[([\d,]+) of (more than )?([\d,]+) files shown", re.MULTILINE)
_CUT = re.compile(r"^\[[\d,]+ (?:lines?|match(?:es)?) shown[;,]", re.MULTILINE)


class PlanMatch(Struct, frozen=True):
    """One line a search found."""

    path: str
    line: int
    text: str


def parse_file_list(text: str) -> tuple[str, ...]:
    """The paths in an answer of list_files, one a line; notices are left out."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line.removeprefix("./") for line in lines if line and not _NOTICE.match(line))


class FileCount(Struct, frozen=True):
    """Number of files found by list_files; its answer names the first of them."""

    number: int
    at_least: bool = False
    """True where it stopped counting."""
    named: int = 0
    """Files that are named, where they are not all."""

    @property
    def words(self) -> str:
        """`1,485 files`, `more than 50,000 files`."""
        return f"{'more than ' if self.at_least else ''}{pluralize(self.number, 'file')}"


def file_count(text: str) -> FileCount:
    """The count in an answer of list_files, also where it names only some."""
    named = len(parse_file_list(text))
    cut = _FILES_CUT.search(text)
    if cut is None:
        return FileCount(named)
    return FileCount(int(cut[3].replace(",", "")), bool(cut[2]), named)


def goes_on(text: str) -> bool:
    """True where read_file or search left the rest out."""
    return _CUT.search(text) is not None


def plain_lines(text: str) -> list[str]:
    """The lines of an answer of read_file without their numbers."""
    numbered = (_NUMBERED.match(line) for line in text.splitlines())
    return [found.group(1) for found in numbered if found]


def matches(text: str) -> tuple[PlanMatch, ...]:
    """The matches in an answer of search."""
    found = (_MATCH.match(line) for line in text.splitlines())
    return tuple(PlanMatch(one["path"], int(one["line"]), one["text"].strip()) for one in found if one)


def test_totals(text: str) -> str:
    """`12 passed, 1 failed` as test runners print it last; empty when nothing like it is there."""
    totals: dict[str, str] = {}
    for line in text.splitlines()[-40:]:
        found = _TOTALS.findall(line)
        if found:
            totals = {what: number for number, what in found}
    return ", ".join(f"{number} {what}" for what, number in totals.items())


ROUNDS = 3
"""Tool rounds of one turn; the longest plan (tests) needs three."""
FILES_AT_ONCE = 8
"""Files read for one request."""


class ReadStep(Struct, frozen=True):
    """read_file."""

    path: str


class ListStep(Struct, frozen=True):
    """list_files."""

    folder: str = ""
    glob: str = ""


class SearchStep(Struct, frozen=True):
    """search for a regular expression."""

    pattern: str
    glob: str = ""


class BashStep(Struct, frozen=True):
    """bash; `slow` allows it minutes."""

    command: str
    slow: bool = False


class WriteStep(Struct, frozen=True):
    """write_file."""

    path: str
    content: str


class PatchStep(Struct, frozen=True):
    """patch with one replacement."""

    path: str
    old: str
    new: str


class ThinkStep(Struct, frozen=True):
    """think."""

    thoughts: str


class AskStep(Struct, frozen=True):
    """ask_user before a command that the person did not write."""

    command: str


PlanStep: TypeAlias = AskStep | ReadStep | ListStep | SearchStep | BashStep | WriteStep | PatchStep | ThinkStep

TEST_COMMANDS: tuple[tuple[str, str], ...] = (
    ("pyproject.toml", "python -m pytest -q"),
    ("pytest.ini", "python -m pytest -q"),
    ("setup.py", "python -m pytest -q"),
    ("package.json", "npm test --silent"),
    ("Cargo.toml", "cargo test --quiet"),
    ("go.mod", "go test ./..."),
    ("Makefile", "make test"),
)
"""Files that identify the test runner of a project, and the command; the first one present wins."""

TELLING_FILES = (
    "README.md", "README.rst", "README.txt", "README", "pyproject.toml", "package.json", "Cargo.toml", "go.mod",
)  # fmt: skip
"""Files that describe a project, in the order read."""


def next_steps(request: GuideRequest, dialogue: Dialogue, *, asks: bool = False) -> tuple[PlanStep, ...]:
    """The calls of the next round; empty when it is time to answer. With `asks` there is a person who can be asked."""
    done = len(dialogue.rounds)
    if done >= ROUNDS:
        return ()
    match request:
        case Describe():
            match len(dialogue.rounds):
                case 0:
                    return (ListStep(),)
                case 1:
                    files = set(_find_files(dialogue))
                    return tuple(ReadStep(name) for name in TELLING_FILES if name in files)[:4]
                case _:
                    return ()
        case RunTests():
            return _test_steps(dialogue, asks=asks)
        case WriteRequest(path, content) if done == 1 and _unread(dialogue):
            return (ReadStep(path), WriteStep(path, content))
        case _:
            return () if done else _first(request)


def _test_steps(dialogue: Dialogue, *, asks: bool) -> tuple[PlanStep, ...]:
    """List the files, ask about the command that they point to, and run it on a yes."""
    if not dialogue.rounds:
        return (ListStep(),)
    command, last = test_command(_find_files(dialogue)), dialogue.rounds[-1]
    if not command or (len(dialogue.rounds) > 1 and not (last and is_yes(last[0]))):
        return ()
    return (AskStep(command),) if asks and len(dialogue.rounds) == 1 else (BashStep(command, slow=True),)


RUN_IT = "Run it"
LEAVE_IT = "Leave it"
_YES = re.compile(rf'="(?:{RUN_IT}|yes|y)"\s*$', re.IGNORECASE)


def is_yes(call: Answered) -> bool:
    """True for the answer of ask_user that lets a command run."""
    return call.name == ASK_USER and not call.is_error and _YES.search(call.text) is not None


def _first(request: GuideRequest) -> tuple[PlanStep, ...]:
    """The only round of a request that needs one."""
    match request:
        case ListRequest() | ReadFiles() | SearchRequest():
            return _look(request)
        case RunCommand() | GitChanges() | CountLines():
            return _shell(request)
        case Replace(path, old, new):
            return (ReadStep(path), PatchStep(path, old, new))
        case WriteRequest(path, content):
            return (WriteStep(path, content),)
        case ThinkRequest(topic):
            return (ThinkStep(f"The request is to think about: {topic}"),)
        case SmallTalk() | Help() | CountTo() | Summarize() | Describe() | RunTests():
            return ()
        case _:
            assert_never(request)


def _look(request: ListRequest | ReadFiles | SearchRequest) -> tuple[PlanStep, ...]:
    match request:
        case ListRequest(folder, glob):
            return (ListStep(folder, glob),)
        case ReadFiles(paths):
            return tuple(ReadStep(path) for path in paths[:FILES_AT_ONCE])
        case SearchRequest(text, glob):
            return (SearchStep(re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", text), glob),)
        case _:
            assert_never(request)


def _shell(request: RunCommand | GitChanges | CountLines) -> tuple[PlanStep, ...]:
    match request:
        case RunCommand(command):
            return (BashStep(command),)
        case GitChanges():
            return (BashStep("git status --short --branch"), BashStep("git diff --stat HEAD"))
        case CountLines(path):
            return (BashStep(f"wc -l -- {shlex.quote(path)}"),)
        case _:
            assert_never(request)


def test_command(files: tuple[str, ...]) -> str:
    """The command that tests a project with these files; empty when none is known."""
    return next((command for name, command in TEST_COMMANDS if name in files), "")


def _unread(dialogue: Dialogue) -> bool:
    """True when write_file refused because the file exists and was not read."""
    call = dialogue.rounds[0][0]
    return call.is_error and bool(re.search(r"\bread\b", call.text, re.IGNORECASE))


def _find_files(dialogue: Dialogue) -> tuple[str, ...]:
    first = dialogue.rounds[0]
    return parse_file_list(first[0].text) if first and not first[0].is_error else ()
