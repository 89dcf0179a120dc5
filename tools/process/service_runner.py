"""The door to programs that Phoenix talks with: services, one-shot programs, programs in a terminal."""

from __future__ import annotations

import asyncio

from tools.contract import Command
from tools.process.one_shot import run_to_end
from tools.process.pseudo_terminal import PseudoTerminal, TerminalStreams
from tools.process.service import DuplexService, EndingProgram, ServiceStreams
from tools.process.supervision import Supervision
from tools.services import ProgramLimits, ProgramResult, ServiceCommand, TerminalSize

USUAL_LIMITS = ProgramLimits()
USUAL_SIZE = TerminalSize()


class SupervisedServices:
    """Implements `engine.ports.services.ServiceRunner`."""

    def __init__(self, supervision: Supervision) -> None:
        self._supervision = supervision
        self._services: list[DuplexService] = []
        self._terminals: list[PseudoTerminal] = []

    async def open(self, command: ServiceCommand) -> DuplexService:
        """Start a service and return once it runs; call its `end` in any case, which closes its descriptors.

        Raises:
            OSError: it cannot be started, or its sandbox cannot be enforced.
        """
        running, streams = await self._supervision.start_with(_planned(command), command.owner, ServiceStreams)
        streams.claimed = True
        service = DuplexService(EndingProgram(self._supervision, running), streams)
        self._forget_the_closed()
        self._services.append(service)
        return service

    async def open_terminal(self, command: ServiceCommand, size: TerminalSize = USUAL_SIZE) -> PseudoTerminal:
        """Start a program in a terminal of its own, as `open`; `TERM` is xterm-256color.

        Raises:
            OSError: it cannot be started, its sandbox cannot be enforced, or the system has no pty left.
        """
        planned = _planned(command, terminal=True)
        running, streams = await self._supervision.start_with(planned, command.owner, lambda: TerminalStreams(size))
        streams.claimed = True
        terminal = PseudoTerminal(EndingProgram(self._supervision, running), streams)
        self._forget_the_closed()
        self._terminals.append(terminal)
        return terminal

    async def run_program(
        self, command: ServiceCommand, stdin: bytes | None = None, limits: ProgramLimits = USUAL_LIMITS
    ) -> ProgramResult:
        """Run a program to its end or its limit; stdin is /dev/null unless given. Cancelled, its tree is dead before
        this returns.

        Raises:
            OSError: it cannot be started, or its sandbox cannot be enforced.
        """
        return await run_to_end(self._supervision, _planned(command), command.owner, stdin, limits)

    async def close(self) -> None:
        """End all of them at once."""
        self._forget_the_closed()
        await asyncio.gather(
            *(service.end(grace=0) for service in self._services),
            *(terminal.end(grace=0) for terminal in self._terminals),
        )
        self._forget_the_closed()

    def _forget_the_closed(self) -> None:
        self._services = [service for service in self._services if not service.closed]
        self._terminals = [terminal for terminal in self._terminals if not terminal.closed]


def _planned(command: ServiceCommand, *, terminal: bool = False) -> Command:
    return Command(
        command.argv,
        command.working_dir,
        environment=command.environment,
        sandbox=command.sandbox,
        terminal=terminal,
        readable=command.readable,
        start_in=command.start_in,
        kept=command.kept,
    )
