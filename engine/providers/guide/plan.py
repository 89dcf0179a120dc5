"""Next steps for a request: call tools or answer. At most `ROUNDS` tool rounds, whatever comes back."""

from __future__ import annotations

import re
import shlex
from typing import TypeAlias, assert_never

from msgspec import Struct

from engine.providers.guide.dialogue import Dialogue
from engine.providers.guide.requests import (
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
from engine.providers.guide.results import listed_files

ROUNDS = 3
"""Tool rounds of one turn; the longest plan (describe) needs two."""
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


PlanStep: TypeAlias = ReadStep | ListStep | SearchStep | BashStep | WriteStep | PatchStep | ThinkStep

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


def next_steps(request: GuideRequest, dialogue: Dialogue) -> tuple[PlanStep, ...]:
    """The calls of the next round; empty when it is time to answer."""
    done = len(dialogue.rounds)
    if done >= ROUNDS:
        return ()
    match request:
        case Describe():
            return _describe(dialogue)
        case RunTests():
            return _run_tests(dialogue)
        case WriteRequest(path, content) if done == 1 and _unread(dialogue):
            return (ReadStep(path), WriteStep(path, content))
        case _:
            return () if done else _first(request)


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
            return (SearchStep(_literal(text), glob),)
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


def _literal(text: str) -> str:
    """A regular expression for `text` itself, in the dialect every search engine shares."""
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", text)


def _describe(dialogue: Dialogue) -> tuple[PlanStep, ...]:
    match len(dialogue.rounds):
        case 0:
            return (ListStep(),)
        case 1:
            files = set(_found(dialogue))
            return tuple(ReadStep(name) for name in TELLING_FILES if name in files)[:4]
        case _:
            return ()


def _run_tests(dialogue: Dialogue) -> tuple[PlanStep, ...]:
    match len(dialogue.rounds):
        case 0:
            return (ListStep(),)
        case 1:
            command = test_command(_found(dialogue))
            return (BashStep(command, slow=True),) if command else ()
        case _:
            return ()


def test_command(files: tuple[str, ...]) -> str:
    """The command that tests a project with these files; empty when none is known."""
    return next((command for name, command in TEST_COMMANDS if name in files), "")


def _unread(dialogue: Dialogue) -> bool:
    """True when write_file refused because the file exists and was not read."""
    call = dialogue.rounds[0][0]
    return call.is_error and bool(re.search(r"\bread\b", call.text, re.IGNORECASE))


def _found(dialogue: Dialogue) -> tuple[str, ...]:
    first = dialogue.rounds[0]
    return listed_files(first[0].text) if first and not first[0].is_error else ()
