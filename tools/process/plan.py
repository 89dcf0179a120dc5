"""From a command to the request its supervisor gets: environment, mechanism, sandbox."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from tools.contract import Command, SandboxMode
from tools.process.environment import WAYS_OUT, scrubbed
from tools.process.placeholders import Placeholders
from tools.process.sandbox import Confinement, SandboxPolicy, bubblewrap_arguments, confine, temp_folders
from tools.process.zygote import wire

BUBBLEWRAP = "bubblewrap"
UNCONFINED = Confinement()


class SandboxUnavailableError(OSError):
    """This system cannot enforce the sandbox in force; the message says why."""


class Plan(Struct, frozen=True):
    """How one command will run."""

    request: wire.Request
    confinement: Confinement = UNCONFINED


class Planner:
    """Knows the environment, the policy and the mechanisms of this system."""

    def __init__(self, environment: Mapping[str, str], policy: SandboxPolicy, mechanism: str = "") -> None:
        self.policy = policy
        self.mechanism = mechanism or supervision_mechanism()
        self.sandbox: str | None = None
        """Mechanism the self-test found; empty when there is none, None before it ran."""
        self.sandbox_reason = ""
        self._environment = scrubbed(environment)
        self._placeholders = Placeholders()
        self._temps = temp_folders()

    async def plan(self, command: Command) -> Plan:
        """The plan for `command`.

        Raises:
            SandboxUnavailableError: the policy asks for a sandbox and there is none.
        """
        if not command.sandboxed or self.policy.mode is SandboxMode.OFF:
            return Plan(self._request(command, self.mechanism, UNCONFINED))
        if not self.sandbox:
            raise SandboxUnavailableError(self.sandbox_reason or "no sandbox was found")
        return await self.confined(command, self.sandbox, self.policy, self._temps)

    async def confined(self, command: Command, sandbox: str, policy: SandboxPolicy, temps: tuple[Path, ...]) -> Plan:
        """The plan for `command` in a sandbox of the given mechanism."""
        confinement = await asyncio.to_thread(confine, policy, command.working_dir, temps, self._placeholders)
        return Plan(self._request(command, sandbox, confinement, network=policy.network), confinement)

    async def release(self, plan: Plan) -> None:
        """Undo what planning left on disk, once the command is over."""
        if plan.confinement.placeholders:
            await asyncio.to_thread(self._placeholders.release, plan.confinement.placeholders)

    def _request(
        self, command: Command, mechanism: str, confinement: Confinement, *, network: bool = True
    ) -> wire.Request:
        argv = list(command.argv)
        if mechanism == BUBBLEWRAP:
            mechanism = self.mechanism
            argv = [*bubblewrap_arguments(bubblewrap(), confinement, command.working_dir, network=network), *argv]
        left_out = frozenset[str]() if confinement is UNCONFINED else WAYS_OUT
        inherited = {name: value for name, value in self._environment.items() if name not in left_out}
        environment = {**inherited, "PWD": str(command.working_dir), **command.environment}
        return wire.Request(
            mechanism,
            str(command.working_dir),
            argv,
            [f"{name}={value}" for name, value in environment.items()],
            network=network,
            writable=[str(path) for path in confinement.writable],
            pinned=[str(path) for path in confinement.pinned],
            denied=[str(path) for path in confinement.denied],
            hidden=[str(path) for path in confinement.hidden],
        )


def supervision_mechanism() -> str:
    """The best way to keep a tree together here: subreaper on Linux, else looking at `ps`."""
    if sys.platform == "linux" and Path(f"/proc/self/task/{os.getpid()}/children").exists():
        return wire.SUBREAPER
    return wire.SCAN


def bubblewrap() -> str:
    """The system's own bwrap: AppArmor profiles know it by this path; empty when it is not installed."""
    return next((path for path in ("/usr/bin/bwrap", "/usr/local/bin/bwrap") if os.access(path, os.X_OK)), "")
