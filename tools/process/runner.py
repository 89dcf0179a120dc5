"""The runner that tools are given: one command, its output bounded, its tree gone at the end."""

from __future__ import annotations

import asyncio

from tools.contract import Command, Finished, Report
from tools.process.supervision import Supervision


class SupervisedRunner:
    """Implements `tools.contract.ProcessRunner`."""

    def __init__(self, supervision: Supervision) -> None:
        self._supervision = supervision

    async def run(self, command: Command, report: Report | None = None) -> Finished:
        """Run to the end. On cancellation the tree is dead before this returns.

        Raises:
            OSError: the program cannot be started.
        """
        running = await self._supervision.start(command, report)
        finished = await self._supervision.see_through(running, command.timeout, asyncio.Event())
        assert finished is not None, "nobody else has the event"
        return finished
