"""The public door of process control: settings in, runner, jobs and probe out."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from tools.contract import Enforcement
from tools.process.helper import close_helpers
from tools.process.jobs import JobTable
from tools.process.link import ZygoteLink, spawn_zygote
from tools.process.plan import Planner
from tools.process.probe import ProcessSupport, describe, find_sandbox
from tools.process.runner import SupervisedRunner
from tools.process.supervision import Supervision

if TYPE_CHECKING:
    from tools.process.service_runner import SupervisedServices


class ProcessSettings(Struct, frozen=True):
    """Settings of commands, independent of their limits."""

    protected: tuple[Path, ...] = ()
    """Read-only to every sandboxed command."""
    hidden: tuple[Path, ...] = ()
    """Phoenix's own folders: empty to every sandboxed command."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """Environment of Phoenix; commands see the harmless part."""
    journals: Path | None = None
    """Folder of the journals of every Phoenix of this user; None when no other Phoenix shares workspaces."""
    mechanism: str = ""
    """Forces a way of supervision (`tools.process.zygote.wire`); empty: the best there is."""


class Processes:
    """The service that starts programs."""

    def __init__(self, settings: ProcessSettings, link: ZygoteLink) -> None:
        self.link = link
        self.planner = Planner(
            settings.environment, settings.protected, settings.hidden, settings.mechanism, settings.journals
        )
        self._supervision = Supervision(link, self.planner)
        self.planner.self_test = partial(find_sandbox, self._supervision, self.planner)
        self.runner = SupervisedRunner(self._supervision)
        self.jobs = JobTable(self._supervision)
        self._services: SupervisedServices | None = None

    @property
    def services(self) -> SupervisedServices:
        """Programs that Phoenix talks with."""
        if self._services is None:
            from tools.process.service_runner import SupervisedServices  # noqa: PLC0415 - not before the first frame

            self._services = SupervisedServices(self._supervision)
        return self._services

    async def probe(self) -> ProcessSupport:
        """Test once which protections this system can enforce; later calls return the same answer."""
        await self.planner.test()
        return describe(self.planner)

    async def enforcement(self) -> Enforcement:
        """Level of enforcement on this system; the first call takes about 50 ms, others no time."""
        return (await self.probe()).enforcement

    async def clear(self) -> None:
        """Remove leftovers in workspaces of the sandboxes of a killed Phoenix."""
        await self.planner.clear()

    async def close(self) -> None:
        """End every command, every job, the helpers and the zygote."""
        close_helpers()
        if self._services is not None:
            await self._services.close()
        await self.jobs.close()
        await self._supervision.end_everything()
        await asyncio.to_thread(self.link.close)
        await asyncio.to_thread(self.planner.close)


async def start_processes(settings: ProcessSettings, link: ZygoteLink | None = None) -> Processes:
    """Make process control ready; `link` is the zygote when it was spawned earlier, as a screen does.

    The self-test of the sandbox waits for `probe()` or the first command in one.
    """
    return Processes(settings, link or spawn_zygote())
