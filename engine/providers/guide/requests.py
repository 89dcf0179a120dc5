"""The requests the guide understands, as values."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct


class Courtesy(StrEnum):
    """Small talk without tools."""

    HELLO = "hello"
    THANKS = "thanks"
    GOODBYE = "goodbye"
    WHO = "who"
    HOW = "how"


class SmallTalk(Struct, frozen=True):
    """A greeting, thanks, or a question about the guide itself."""

    kind: Courtesy


class Help(Struct, frozen=True):
    """Question about the guide's abilities."""


class ListRequest(Struct, frozen=True):
    """Request to list the files here, in a folder, or matching a glob."""

    folder: str = ""
    glob: str = ""


class ReadFiles(Struct, frozen=True):
    """Show one or more files."""

    paths: tuple[str, ...]


class SearchRequest(Struct, frozen=True):
    """Find a text, in all files or in those that match `glob`."""

    text: str
    glob: str = ""


class RunCommand(Struct, frozen=True):
    """Request to run a shell command verbatim."""

    command: str


class RunTests(Struct, frozen=True):
    """Find out how this project is tested, and do it."""


class GitChanges(Struct, frozen=True):
    """Question about the changes since the last commit."""


class Replace(Struct, frozen=True):
    """Replace one text by another in a file."""

    path: str
    old: str
    new: str


class WriteRequest(Struct, frozen=True):
    """Write a whole file."""

    path: str
    content: str


class Describe(Struct, frozen=True):
    """Question about the project."""


class CountTo(Struct, frozen=True):
    """Count aloud from 1 to `limit`."""

    limit: int


class CountLines(Struct, frozen=True):
    """Question about the number of lines of a file."""

    path: str


class ThinkRequest(Struct, frozen=True):
    """Note a thought with the think tool."""

    topic: str


class Summarize(Struct, frozen=True):
    """Request to summarize this conversation."""


GuideRequest: TypeAlias = (
    SmallTalk
    | Help
    | ListRequest
    | ReadFiles
    | SearchRequest
    | RunCommand
    | RunTests
    | GitChanges
    | Replace
    | WriteRequest
    | Describe
    | CountTo
    | CountLines
    | ThinkRequest
    | Summarize
)
