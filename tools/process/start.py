"""The public door of process control: settings in; runner, jobs and probe out.

The probe tests the enforcement that this system offers; `phoenix doctor` shows the sentences.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from tools.contract import Command, Enforcement, Sandbox, SandboxMode, SelfStarting
from tools.process.execution import NotSupervisedError
from tools.process.helper import close_helpers
from tools.process.host_proxy import PROGRAM, HostProxy
from tools.process.jobs import JobTable
from tools.process.link import ZygoteLink, spawn_zygote
from tools.process.plan import BUBBLEWRAP, Planner
from tools.process.sandbox import bubblewrap
from tools.process.supervision import SupervisedRunner, Supervision
from tools.process.zygote import wire

if TYPE_CHECKING:
    from tools.process.service import SupervisedServices


SUPERVISION_SENTENCES = {
    wire.SUBREAPER: "Each command runs under a supervisor that adopts every process it leaves, so none survives a "
    "stop; it sees and may signal the same processes as your shell.",
    wire.SCAN: "This system cannot keep a command's processes together, so they are found by looking every 0.2 s: "
    "best effort, a program that forks and detaches in between may survive.",
}
SANDBOX_SENTENCES = {
    wire.NAMESPACE: "Sandboxed commands run in namespaces of their own, which enforce files, keys, sockets, processes "
    "and the network. They write in the working directory, a private /tmp and copies of caches.",
    BUBBLEWRAP: "Sandboxed commands run under bubblewrap, which enforces files, keys, sockets, processes and the "
    "network. They write in the working directory and a private /tmp; caches are read-only.",
    wire.LANDLOCK: "Namespaces are blocked here, so Landlock enforces where sandboxed commands write, which keys they "
    "cannot read; sockets of other programs, .git/hooks and .git/config in the working directory are not protected. "
    "Commands ask in every mode.",
    "": "This system can enforce no sandbox: namespaces are blocked, bubblewrap does not work and Landlock is missing.",
}
ENFORCEMENT = {
    wire.NAMESPACE: Enforcement.FULL,
    BUBBLEWRAP: Enforcement.FULL,
    wire.LANDLOCK: Enforcement.FILES,
    "": Enforcement.NONE,
}
NOT_LINUX = "The sandbox needs Linux; here commands run as you."
TEST_SCRIPT = "echo x > inside; echo x > .git/hooks/denied; echo x > ../outside; exit 0"
TEST_LIMIT = 5.0


class ProcessSupport(Struct, frozen=True):
    """Protections in force and the reasons, one readable sentence each."""

    supervision: str
    supervision_sentence: str
    sandbox: str
    """Empty when none can be enforced."""
    sandbox_sentence: str
    guards_files: bool
    """True when the sandbox also keeps single files inside the working directory unchanged."""
    enforcement: Enforcement = Enforcement.NONE


async def find_sandbox(supervision: Supervision, planner: Planner) -> None:
    """Try the mechanisms, best first, until one refuses what it must; the planner remembers it."""
    if sys.platform != "linux":
        planner.sandbox, planner.sandbox_reason = "", NOT_LINUX
        return
    candidates = [wire.NAMESPACE, *([BUBBLEWRAP] if bubblewrap() else []), wire.LANDLOCK]
    for mechanism in candidates:
        if await _enforces(supervision, planner, mechanism):
            planner.sandbox = mechanism
            break
    else:
        planner.sandbox = ""
    planner.sandbox_reason = SANDBOX_SENTENCES[planner.sandbox]


def describe(planner: Planner) -> ProcessSupport:
    """The outcome of `find_sandbox` in words."""
    sandbox = planner.sandbox or ""
    return ProcessSupport(
        planner.mechanism,
        SUPERVISION_SENTENCES[planner.mechanism],
        sandbox,
        planner.sandbox_reason,
        sandbox in {wire.NAMESPACE, BUBBLEWRAP},
        ENFORCEMENT[sandbox],
    )


async def _enforces(supervision: Supervision, planner: Planner, mechanism: str) -> bool:
    """True when a command in the sandbox can write where it may and nowhere else."""
    with tempfile.TemporaryDirectory(prefix="phoenix-probe-") as folder:
        outside = Path(folder)
        workspace = outside / "workspace"
        hooks = workspace / ".git" / "hooks"
        for name in ("hooks", "objects", "refs"):
            (workspace / ".git" / name).mkdir(parents=True)
        (workspace / ".git" / "HEAD").write_text("ref: refs/heads/main\n", "ascii")
        command = Command(("/bin/sh", "-c", TEST_SCRIPT), workspace, timeout=TEST_LIMIT)
        plan = await planner.plan_confined(command, mechanism, Sandbox(SandboxMode.WORKSPACE), is_watched=False)
        try:
            running = await supervision.start_planned(command, plan)
        except (OSError, NotSupervisedError):
            return False
        try:
            await running.execution.over.wait()
        finally:
            await supervision.end(running)
        guarded = mechanism == wire.LANDLOCK or not (hooks / "denied").exists()
        return (workspace / "inside").exists() and not (outside / "outside").exists() and guarded


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
    taken_back: Path | None = None
    """Folder for what commands wrote into self-starting files that were restored; None: a temporary one."""
    proxy: tuple[str, ...] = PROGRAM
    """Command line of the proxy by which commands reach single hosts."""
    mechanism: str = ""
    """Forces a way of supervision (`tools.process.zygote.wire`); empty: the best there is."""


class Processes:
    """The service that starts programs."""

    def __init__(self, settings: ProcessSettings, link: ZygoteLink) -> None:
        self.link = link
        self._taken_back = settings.taken_back
        self.planner = Planner(
            settings.environment, settings.protected, settings.hidden, settings.mechanism, settings.journals
        )
        self._supervision = Supervision(link, self.planner)
        self._proxy = HostProxy(self._supervision, settings.proxy)
        self.planner.self_test = partial(find_sandbox, self._supervision, self.planner)
        self.runner = SupervisedRunner(self._supervision)
        self.jobs = JobTable(self._supervision)
        self._services: SupervisedServices | None = None

    @property
    def services(self) -> SupervisedServices:
        """Programs that Phoenix talks with."""
        if self._services is None:
            from tools.process.service import SupervisedServices  # noqa: PLC0415 - not before the first frame

            self._services = SupervisedServices(self._supervision)
        return self._services

    async def probe(self) -> ProcessSupport:
        """Test once which protections this system can enforce; later calls return the same answer."""
        await self.planner.test()
        return describe(self.planner)

    async def enforcement(self) -> Enforcement:
        """Level of enforcement on this system; the first call takes about 50 ms, others no time."""
        return (await self.probe()).enforcement

    async def trouble(self, folder: Path) -> str:
        """Reason why a program outside the sandbox should not start in `folder` now, as a clause; empty for none."""
        return await asyncio.to_thread(self.planner.watch.trouble, folder)

    async def sift_changes(self, folder: Path, changes: Sequence[SelfStarting]) -> tuple[SelfStarting, ...]:
        """The self-starting files among `changes` that are not as the user's own history has them; others are kept."""
        from tools.git.history import own_changes  # noqa: PLC0415 - only where a command changed such a file

        commits = await asyncio.to_thread(self.planner.watch.tips, folder)
        places = self.planner.watch.places(folder)
        own = await own_changes(self.runner, folder, commits, changes, places)
        if own:
            await self.keep_changes(folder, [change for change in changes if change.path in own])
        return tuple(change for change in changes if change.path not in own)

    async def keep_changes(self, folder: Path, changes: Sequence[SelfStarting]) -> tuple[str, ...]:
        """Take changed files for the user's own; returns a clause for each that was changed again since."""
        return await asyncio.to_thread(self.planner.watch.keep, folder, changes)

    async def take_back(self, folder: Path, changes: Sequence[SelfStarting]) -> tuple[str, ...]:
        """Restore changed files as they were; returns sentences: where the contents are now, and what failed."""
        return await asyncio.to_thread(self._take_back, folder, changes)

    def _take_back(self, folder: Path, changes: Sequence[SelfStarting]) -> tuple[str, ...]:
        base = self._taken_back or Path(tempfile.gettempdir()) / f"phoenix-taken-back-{os.getuid()}"
        aside = base / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        said = self.planner.watch.take_back(folder, changes, aside)
        kept = (f"What it wrote is kept in {aside}.",) if aside.is_dir() else ()
        return (*kept, *(f"{sentence[:1].upper()}{sentence[1:]}." for sentence in said))

    async def clear(self) -> None:
        """Remove leftovers in workspaces of the sandboxes of a killed Phoenix."""
        await self.planner.clear()

    async def close(self) -> None:
        """End every command, every job, the helpers and the zygote."""
        close_helpers()
        if self._services is not None:
            await self._services.close()
        await self.jobs.close()
        await self._proxy.close()
        await self._supervision.end_everything()
        await asyncio.to_thread(self.link.close)
        await asyncio.to_thread(self.planner.close)


async def start_processes(settings: ProcessSettings, link: ZygoteLink | None = None) -> Processes:
    """Make process control ready; `link` is the zygote when it was spawned earlier, as a screen does.

    The self-test of the sandbox waits for `probe()` or the first command in one.
    """
    return Processes(settings, link or spawn_zygote())
