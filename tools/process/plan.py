"""The way from a command to the request of its supervisor: environment, mechanism, sandbox."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from tools.contract import HELPER_SANDBOX, UNCONFINED, Command, PathOrder, Sandbox, SandboxMode
from tools.process.environment import UNSANDBOXED_SERVICES, in_terminal, scrub_environment, without_relative_entries
from tools.process.network import ENVIRONMENT
from tools.process.placeholders import Placeholders
from tools.process.programs import (
    agent_folders,
    find_program,
    helper_environment,
    note_workspace,
    order_path,
    outside_variables,
    start_of,
)
from tools.process.sandbox import (
    Confinement,
    SandboxPlaces,
    SandboxRequest,
    bubblewrap,
    bubblewrap_arguments,
    confine,
    door_arguments,
    folder_of_temporary_files,
)
from tools.process.scratch import Lease
from tools.process.workspace_watch import Left, WorkspaceWatch
from tools.process.zygote import wire

Result = TypeVar("Result")


async def to_the_end(task: asyncio.Task[Result]) -> Result:
    """Wait for `task` however often the caller is cancelled; the cancellation follows then."""
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    return task.result()


BUBBLEWRAP = "bubblewrap"
NOTHING = Confinement()
NOTHING_LEFT = Left()


class SandboxUnavailableError(OSError):
    """Raised when this system cannot enforce the sandbox in force; the message gives the reason."""


class CommandPlan(Struct, frozen=True):
    """Request and confinement of one command."""

    request: wire.SupervisorRequest
    confinement: Confinement = NOTHING
    sandbox: Sandbox = UNCONFINED
    """Limits that are in force."""
    folder: Path = Path("/")
    """Working directory, as it is named."""


class Planner:
    """Knows the environment, the protected paths and the mechanisms of this system."""

    def __init__(
        self,
        environment: Mapping[str, str],
        protected: tuple[Path, ...] = (),
        hidden: tuple[Path, ...] = (),
        mechanism: str = "",
        journals: Path | None = None,
    ) -> None:
        self.mechanism = mechanism or supervision_mechanism()
        self.sandbox: str | None = None
        """Mechanism the self-test found; empty when there is none, None before it ran."""
        self.sandbox_reason = ""
        self.self_test: Callable[[], Awaitable[None]] | None = None
        """Sets `sandbox`; the first command in a sandbox waits for it."""
        self._testing = asyncio.Lock()
        self._environment = scrub_environment(environment)
        self._around = SandboxPlaces(environment, protected, hidden, Placeholders(journals))
        self._temporary = folder_of_temporary_files()

    async def plan(self, command: Command, owner: str = "") -> CommandPlan:
        """The plan for `command` of the conversation `owner`.

        Raises:
            SandboxUnavailableError: the command must have a sandbox and there is none.
        """
        limits = command.sandbox
        if limits.mode is SandboxMode.WORKSPACE or limits.path in {PathOrder.LAST, PathOrder.AS_GIVEN}:
            note_workspace(command.working_dir)
        if limits.mode is not SandboxMode.OFF:
            await self.test()
        if limits.mode is not SandboxMode.OFF and self.sandbox:
            return await self.plan_confined(command, self.sandbox, limits, owner)
        if limits.mode is not SandboxMode.OFF and limits.required:
            raise SandboxUnavailableError(self.sandbox_reason or "no sandbox was found")
        trouble = await asyncio.to_thread(self.watch.trouble, command.working_dir)
        if trouble and not limits.unseen:
            raise SandboxUnavailableError(f"not started outside the sandbox: {trouble}")
        return CommandPlan(self._request(command, self.mechanism, NOTHING))

    async def test(self) -> None:
        """Run the self-test of the sandbox, once."""
        async with self._testing:
            if self.sandbox is None and self.self_test is not None:
                await self.self_test()

    async def plan_confined(
        self, command: Command, mechanism: str, limits: Sandbox, owner: str = "", *, is_watched: bool = True
    ) -> CommandPlan:
        """The plan for `command` in a sandbox of the given mechanism; `is_watched` where its folder is looked at."""
        shown = (*command.readable, *(() if command.spill is None else (command.spill.parent,)))
        shown += () if command.start_in is None else (command.start_in,)
        shown += () if command.kept is None else command.kept.programs
        is_helper = limits == HELPER_SANDBOX
        about = (is_helper, limits.unreadable, is_watched, command.kept)
        wanted = SandboxRequest(limits.mode, command.working_dir, owner, shown, *about)
        planning = asyncio.create_task(asyncio.to_thread(confine, wanted, self._around))
        try:
            confinement = await to_the_end(planning)
        except asyncio.CancelledError:
            if planning.exception() is None:  # its resources would never be returned otherwise
                await self._undo(planning.result())
            raise
        request = self._request(command, mechanism, confinement, network=limits.network)
        return CommandPlan(request, confinement, limits, command.start_in or command.working_dir)

    async def look(self, plan: CommandPlan) -> float:
        """Set aside what a running command planted; returns the seconds that the look took."""
        watched = plan.confinement.watched
        return 0.0 if watched is None else await asyncio.to_thread(self.watch.look, watched)

    async def release(self, plan: CommandPlan) -> Left:
        """Undo the planner's changes on disk once the command is over; what it left behind."""
        return await self._undo(plan.confinement)

    def put_off(self, plan: CommandPlan, left: Left) -> Left:
        """Leftovers of a program without the files that it changed: the end of the next command asks about these."""
        if plan.confinement.watched is not None:
            self.watch.put_off(plan.confinement.watched.workspace, left.changed)
        return Left(left.said)

    async def forget(self, owner: str) -> None:
        """Remove the temporary files of a conversation that goes away."""
        await asyncio.to_thread(self._around.scratch.forget, owner)

    @property
    def scratch_folder(self) -> Path | None:
        """The folder that holds all private ones; None before a command needed one."""
        return self._around.scratch.base

    @property
    def watch(self) -> WorkspaceWatch:
        """Looks at the workspaces of sandboxed commands."""
        return self._around.watch

    async def clear(self) -> None:
        """Remove the placeholders that a killed Phoenix left."""
        await asyncio.to_thread(self._around.placeholders.clear)

    def close(self) -> None:
        """Remove all private folders; blocks."""
        self._around.placeholders.close()
        self._around.scratch.close()

    async def _undo(self, confinement: Confinement) -> Left:
        if confinement.lease is None:
            return NOTHING_LEFT
        return await asyncio.to_thread(self._give_back, confinement, confinement.lease)

    def _give_back(self, confinement: Confinement, lease: Lease) -> Left:
        self._around.placeholders.release(confinement.placeholders)
        if confinement.server_home is not None:
            confinement.server_home.close()
        left = self.watch.end(confinement.watched) if confinement.watched is not None else NOTHING_LEFT
        self._around.scratch.give_back(lease)
        return left

    def _request(
        self, command: Command, mechanism: str, confinement: Confinement, *, network: bool = True
    ) -> wire.SupervisorRequest:
        start_in = command.start_in or command.working_dir
        argv, environment = self._start_of(command, mechanism, confinement, start_in)
        filtered, door = mechanism == BUBBLEWRAP, _has_door(command, mechanism)
        if filtered:
            mechanism = self.mechanism
            writable = bool(confinement.writable)
            words = (bubblewrap(), confinement.places, start_in)
            options = bubblewrap_arguments(*words, network=network, writable=writable, terminal=command.terminal)
            argv = (*options, *(door_arguments() if door else ()), *argv)
        resolved = confinement.temporary is not None  # the link to it may be in a covered folder
        return wire.SupervisorRequest(
            mechanism,
            str(start_in.resolve() if resolved else start_in),
            argv,
            [f"{name}={value}" for name, value in environment.items()],
            network=network,
            filtered=filtered,
            door=door,
            places=confinement.places,
            writable=[str(path) for path in confinement.writable],
            secret=[str(path) for path in confinement.secret],
            shown=[str(path) for path in confinement.shown],
        )

    def _start_of(
        self, command: Command, mechanism: str, confinement: Confinement, start_in: Path
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """Words and environment of a program: the one place that decides which file its name means, and what it
        inherits (SECURITY S3).

        Raises:
            FileNotFoundError: there is no such program that it may be.
        """
        is_confined = confinement is not NOTHING
        left_out = UNSANDBOXED_SERVICES if is_confined else frozenset[str]()
        inherited = {name: value for name, value in self._environment.items() if name not in left_out}
        if confinement.temporary is not None:
            inherited |= self._temporary_folder(confinement, mechanism)
        if _has_door(command, mechanism):
            inherited |= ENVIRONMENT
        if command.sandbox == HELPER_SANDBOX:
            found = find_program(command.argv[0], command.working_dir) if "/" not in command.argv[0] else ""
            name = found or (command.argv[0] if "/" in command.argv[0] else f"/dev/null/{command.argv[0]}")
            inherited = helper_environment(inherited, command.working_dir)
            return (name, *command.argv[1:]), self._environment_of(command, inherited, start_in)
        order = command.sandbox.path or (PathOrder.AS_GIVEN if is_confined else PathOrder.LEFT_OUT)
        if order is PathOrder.AS_GIVEN:
            return command.argv, self._environment_of(command, inherited, start_in)
        folders = agent_folders(command.working_dir)
        environment = self._environment_of(command, outside_variables(inherited, folders), start_in)
        path = environment.get("PATH", os.defpath)
        argv = start_of(command.argv, path, command.working_dir)
        return argv, environment | {"PATH": order_path(path, folders, order)}

    def _environment_of(self, command: Command, inherited: Mapping[str, str], start_in: Path) -> dict[str, str]:
        """The inherited variables and those that are given to this program, with its folder."""
        inherited = in_terminal(inherited) if command.terminal else inherited
        return without_relative_entries({**inherited, "PWD": str(start_in), **command.environment})

    def _temporary_folder(self, confinement: Confinement, mechanism: str) -> dict[str, str]:
        path = str(confinement.temporary) if mechanism == wire.LANDLOCK else self._temporary
        return dict.fromkeys(("TMPDIR", "TMP", "TEMP"), path)


def _has_door(command: Command, mechanism: str) -> bool:
    """True where the command reaches single hosts through the proxy."""
    limits = command.sandbox
    return limits.hosts is not None and not limits.network and mechanism in {wire.NAMESPACE, BUBBLEWRAP}


def supervision_mechanism() -> str:
    """The best way to keep a tree together here: subreaper on Linux, else looking at `ps`."""
    if sys.platform == "linux" and Path(f"/proc/self/task/{os.getpid()}/children").exists():
        return wire.SUBREAPER
    return wire.SCAN
