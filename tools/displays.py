"""Content of the screen for the result of a tool: the model sees no display, the screen no text beside one."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from tools.agent_end import AgentEnd
from tools.edit_checks import EditCheck
from tools.terminal.values import TextRun


class PlainDisplay(Struct, frozen=True, tag="plain"):
    """Text as it is."""

    text: str


class HostUse(Struct, frozen=True):
    """Connections of a command to one host, through Phoenix's proxy."""

    host: str
    requests: int = 0
    received: int = 0
    sent: int = 0
    """Bytes."""
    refused: int = 0
    why: str = ""
    """Reason of the last refusal."""


class TerminalDisplay(Struct, frozen=True, tag="terminal"):
    """The outcome of a shell command."""

    output: str
    exit_code: int | None
    timed_out: bool = False
    ended: tuple[str, ...] = ()
    """Names of processes the command left behind, ended with it."""
    job: str = ""
    """The background job as which it runs on, where the user sent it there."""
    lines: int = 0
    """Lines of the whole output where `output` holds only its ends, else 0."""
    runs: tuple[TextRun, ...] = ()
    """Coloured pieces of the lines of `output`."""
    folder: str = ""
    """Folder of a line of the user; empty for the conversation's."""
    hosts: tuple[HostUse, ...] = ()
    """Hosts that it reached or was refused."""


class DiffDisplay(Struct, frozen=True, tag="diff"):
    """One changed file as a unified diff."""

    path: str
    diff: str
    added: int
    removed: int
    created: bool = False
    checks: tuple[EditCheck, ...] = ()
    """Findings of language servers about it, as the model reads them."""


class ImageDisplay(Struct, frozen=True, tag="image"):
    """An image that went to the model."""

    name: str
    width: int
    height: int


class AgentsDisplay(Struct, frozen=True, tag="agents"):
    """Outcomes of the sub-agents of a call, in its order."""

    agents: tuple[AgentEnd, ...]


Display: TypeAlias = PlainDisplay | TerminalDisplay | DiffDisplay | ImageDisplay | AgentsDisplay
