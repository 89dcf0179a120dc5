"""The port to background commands: `tools.process` implements it, the tools and the engine are given it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from tools.contract import Captured, Command, Finished, JobInfo, Report
from tools.terminal.values import TerminalModes, TerminalSize


class Caller(Struct, frozen=True):
    """Conversation and call of a command, and its title as a job."""

    conversation_id: str
    call_id: str
    title: str
    terminal: TerminalSize | None = None
    """Size of the terminal for the command; None: it has a pipe and no input."""
    mark: str = ""
    """Beginning of the system command (OSC) with which its shell names the folder it ends in."""


class LentTerminal(Protocol):
    """The user's own terminal while a running command has it."""

    @property
    def is_drawing(self) -> bool:
        """True while its program uses the alternate screen."""
        ...

    async def read(self) -> bytes:
        """The next output for the terminal, at most 128 KB; empty once the program has ended, or it was given back."""
        ...

    def type(self, keys: bytes) -> None:
        """Type into the program; keys wait while it does not read."""
        ...

    def resize(self, size: TerminalSize) -> None:
        """Set the size of the terminal."""
        ...

    def draw_again(self, size: TerminalSize) -> None:
        """Let the program draw all on a terminal that shows nothing of it."""
        ...

    def give_back(self) -> None:
        """Give the terminal back; the program runs on."""
        ...


class CallTerminal(Protocol):
    """Terminal of a running command; nothing happens in it after its end."""

    @property
    def modes(self) -> TerminalModes:
        """Modes that its program has set."""
        ...

    @property
    def wants_screen(self) -> bool:
        """True while its program uses the alternate screen."""
        ...

    def lend(self, size: TerminalSize) -> LentTerminal:
        """Lend it the user's terminal, which has this size."""
        ...

    def type(self, keys: bytes) -> None:
        """Type into it; keys wait while the program does not read."""
        ...

    def resize(self, size: TerminalSize) -> None:
        """Give it another size."""
        ...


class JobBoard(Protocol):
    """Background commands of all conversations, and those in the foreground that may become some."""

    async def start(self, command: Command, conversation_id: str, title: str) -> JobInfo:
        """Start it and return at once."""
        ...

    async def run(self, command: Command, caller: Caller, report: Report | None = None) -> Finished | JobInfo:
        """Run to the end as `ProcessRunner.run` does; the job it has become where `background` let it go before.

        Raises:
            OSError: the program cannot be started.
        """
        ...

    def background(self, conversation_id: str, call_id: str) -> JobInfo | None:
        """Let the command of a call continue as a job without a time limit; None when it does not run."""
        ...

    def terminal(self, conversation_id: str, call_id: str) -> CallTerminal | None:
        """Terminal of the command that a call waits for; None where it has none."""
        ...

    def watch(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener` with the conversation whose jobs have changed, whenever one begins or ends; the result ends
        it.
        """
        ...

    def jobs(self, conversation_id: str) -> tuple[JobInfo, ...]:
        """Jobs of one conversation, oldest first, ended ones included."""
        ...

    def output(self, job_id: str) -> Captured:
        """Output of a job so far. Raises KeyError for an unknown id."""
        ...

    def settle(self, job_id: str, note: str) -> None:
        """Note that the files which an ended job changed are kept or taken back; nothing for an unknown id."""
        ...

    async def kill(self, job_id: str) -> JobInfo:
        """End its whole tree. Raises KeyError for an unknown id."""
        ...

    async def end_all(self, conversation_id: str) -> None:
        """End every job of a conversation that goes away."""
        ...
