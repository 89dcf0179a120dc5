"""The requests the guide understands, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Courtesy(StrEnum):
    """Small talk that wants no tool."""

    HELLO = "hello"
    THANKS = "thanks"
    GOODBYE = "goodbye"
    WHO = "who"
    HOW = "how"


@dataclass(frozen=True, slots=True)
class SmallTalk:
    """A greeting, thanks, or a question about the guide itself."""

    kind: Courtesy


@dataclass(frozen=True, slots=True)
class Help:
    """What can you do?"""


@dataclass(frozen=True, slots=True)
class ListFiles:
    """Which files are here, in a folder, or match a glob."""

    folder: str = ""
    glob: str = ""


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """Show one or more files."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """Find a text, in all files or in those that match `glob`."""

    text: str
    glob: str = ""


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Run this shell command as it stands."""

    command: str


@dataclass(frozen=True, slots=True)
class RunTests:
    """Find out how this project is tested, and do it."""


@dataclass(frozen=True, slots=True)
class GitChanges:
    """What changed since the last commit."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace one text by another in a file."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Write a whole file."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Describe:
    """What is this project?"""


@dataclass(frozen=True, slots=True)
class CountTo:
    """Count aloud from 1 to `limit`."""

    limit: int


@dataclass(frozen=True, slots=True)
class CountLines:
    """How many lines a file has."""

    path: str


@dataclass(frozen=True, slots=True)
class Think:
    """Note a thought with the think tool."""

    topic: str


@dataclass(frozen=True, slots=True)
class Summarize:
    """What was said in this conversation."""


Request: TypeAlias = (
    SmallTalk
    | Help
    | ListFiles
    | ReadFiles
    | Search
    | RunCommand
    | RunTests
    | GitChanges
    | Replace
    | WriteFile
    | Describe
    | CountTo
    | CountLines
    | Think
    | Summarize
)
