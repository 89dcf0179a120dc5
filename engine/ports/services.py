"""Programs that Phoenix talks with over their streams, checks by language servers, and work that the engine ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tools.contract import Captured
from tools.displays import EditCheck
from tools.lsp.contract import CheckPlace, EditBegun, LanguageServerView
from tools.services import ProgramExit, ProgramLimits, ProgramResult, ServiceCommand, TerminalSize


class SupervisedProgram(Protocol):
    """A program whose whole tree ends with `end`, with Phoenix, or by itself."""

    @property
    def pid(self) -> int:
        """Process id, as seen outside of a sandbox."""
        ...

    async def ended(self) -> ProgramExit:
        """Wait until its tree is gone. Cancelling stops the waiting alone."""
        ...


class ServiceChannel(Protocol):
    """JSON objects, one a line, to and from a program."""

    async def read_object(self) -> dict[str, object] | None:
        """The next object; None at the end of the stream.

        Raises:
            LineTooLongError: the line exceeds the limit; the next call continues behind it.
            InvalidLineError: the line is no JSON object; the next call continues behind it.
        """
        ...

    async def write_object(self, value: object) -> None:
        """Write one object as a line; waits while the other side does not read.

        Raises:
            LineTooLongError: it exceeds the limit; nothing was written.
            ServiceEndedError: the other side does not read any more.
        """
        ...


class RunningService(SupervisedProgram, Protocol):
    """A service with separate stdin, stdout and stderr."""

    @property
    def stdin(self) -> int:
        """Descriptor to write to, non-blocking; -1 once it is closed or taken."""
        ...

    @property
    def stdout(self) -> int:
        """Descriptor to read from, non-blocking; -1 once it is closed or taken."""
        ...

    @property
    def stderr(self) -> Captured:
        """The last 64 KB of stderr so far; the rest was counted and dropped."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what it keeps."""
        ...

    async def refusals(self, text: str = "") -> str:
        """Clauses on what its sandbox refused, by these words, without any by its stderr; empty without a refusal."""
        ...

    def channel(self, limit: int = ...) -> ServiceChannel:
        """The one channel over stdin and stdout; `limit` is in bytes a line."""
        ...

    def take(self) -> tuple[int, int]:
        """Hand over stdin and stdout; the caller closes them. For `socket.send_fds`."""
        ...

    def close_stdin(self) -> None:
        """Let the program see the end of its input."""
        ...

    async def end(self, grace: float = ...) -> ProgramExit:
        """Close stdin, wait `grace` seconds, then kill the tree. Cancelling ends the grace at once."""
        ...


class RunningTerminal(SupervisedProgram, Protocol):
    """A program with a terminal of its own."""

    async def read(self) -> bytes:
        """Output as it comes, at most 64 KB; empty at the end."""
        ...

    async def write(self, keys: bytes) -> None:
        """Type into the terminal.

        Raises:
            ServiceEndedError: the program is gone.
        """
        ...

    def resize(self, size: TerminalSize) -> None:
        """Tell the program another size."""
        ...

    async def end(self, grace: float = ...) -> ProgramExit:
        """Hang up, wait `grace` seconds, then kill the tree."""
        ...


class ServiceRunner(Protocol):
    """Starts programs below the supervisor of commands."""

    async def open(self, command: ServiceCommand) -> RunningService:
        """Start a service and return once it runs; call its `end` in any case.

        Raises:
            OSError: it cannot be started, or its sandbox cannot be enforced.
        """
        ...

    async def open_terminal(self, command: ServiceCommand, size: TerminalSize = ...) -> RunningTerminal:
        """Start a program in a terminal of its own, as `open`."""
        ...

    async def run_program(
        self, command: ServiceCommand, stdin: bytes | None = None, limits: ProgramLimits = ...
    ) -> ProgramResult:
        """Run a program to its end or its limit. Cancelled, its tree is dead before this returns.

        Raises:
            OSError: it cannot be started, or its sandbox cannot be enforced.
        """
        ...


class EditChecker(Protocol):
    """Tells the new errors of an edit. Nothing of it raises or waits longer than its bound."""

    async def begin(self, place: CheckPlace, path: Path) -> EditBegun | None:
        """Keep a file as it is before an edit; None, at once, where no server would look at it."""
        ...

    async def finish(self, begun: EditBegun, shown: str) -> Sequence[EditCheck]:
        """Checks of the edit that was made, one of each server that has an answer or a reason to have none."""
        ...

    def late(self, conversation_id: str) -> Sequence[EditCheck]:
        """Checks of earlier edits that came since the last question; each is given once."""
        ...

    def forget_conversation(self, conversation_id: str) -> None:
        """Forget a conversation that closes."""
        ...


class LanguageServers(Protocol):
    """The language servers of folders, for front ends."""

    @property
    def notices(self) -> Sequence[str]:
        """Sentences about settings that are left out, once the servers were listed."""
        ...

    async def views(self, place: CheckPlace) -> Sequence[LanguageServerView]:
        """All servers that are known or configured, those that run first."""
        ...

    async def restart(self, place: CheckPlace, name: str) -> None:
        """End a server; its next use starts it again, however often it has ended."""
        ...

    def is_allowed(self, folder: Path) -> bool:
        """True where the user lets servers run what the project in a folder contains."""
        ...

    async def allow(self, folder: Path, *, allowed: bool) -> None:
        """Keep the user's answer about a folder; servers of it end, and start again by it.

        Raises:
            OSError: it cannot be written.
        """
        ...


class Closable(Protocol):
    """Work that ends with the engine."""

    async def close(self) -> None:
        """End it; returns within a few seconds."""
        ...
