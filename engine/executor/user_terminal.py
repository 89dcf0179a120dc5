"""The terminal of the user's own shell lines: its size, the folder of the next line, and keys for the one that runs."""

from __future__ import annotations

from engine.executor.ready_calls import is_typed
from engine.executor.session import Session
from engine.machine.states import ToolExecuting
from tools.contract import ToolOutput
from tools.job_board import CallTerminal, LentTerminal
from tools.terminal.values import ShellTerminal, TerminalModes, TerminalSize


class UserTerminal:
    """Implements `engine.api.conversation.TerminalApi`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def folder(self) -> str:
        """Folder of the next line, where it is not the conversation's; else empty."""
        shell = self._session.shell
        return shell.folder if shell is not None else ""

    @property
    def modes(self) -> TerminalModes | None:
        """Modes that the running line has set; None while none runs in a terminal."""
        running = self._running
        return running.modes if running is not None else None

    @property
    def wants_screen(self) -> bool:
        """True while the program of the running line uses the alternate screen."""
        running = self._running
        return running is not None and running.wants_screen

    def lend(self, size: TerminalSize) -> LentTerminal | None:
        """Lend the running line the user's own terminal; None where none runs."""
        running = self._running
        return running.lend(size) if running is not None else None

    def fit(self, size: TerminalSize) -> None:
        """Run lines in a terminal of this size from now on, the running one included."""
        self._session.shell = ShellTerminal(size, self.folder)
        if (running := self._running) is not None:
            running.resize(size)

    def type(self, keys: bytes) -> None:
        """Type into the running line."""
        if (running := self._running) is not None:
            running.type(keys)

    @property
    def _running(self) -> CallTerminal | None:
        state = self._session.state
        if not isinstance(state, ToolExecuting) or not is_typed(self._session):
            return None
        return self._session.ports.jobs.terminal(self._session.record.id, state.round.current.id)


def shell_of(session: Session) -> ShellTerminal | None:
    """Terminal for the current call; None where it is no line of the user, or no screen shows it."""
    return session.shell if is_typed(session) else None


def go_on_from(session: Session, output: ToolOutput) -> None:
    """Take over the folder that a line of the user ended in. It counts for the next line alone."""
    if output.folder is not None and session.shell is not None and is_typed(session):
        session.shell = ShellTerminal(session.shell.size, output.folder)
