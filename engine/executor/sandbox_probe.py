"""Finds out how far a system can enforce a sandbox."""

from __future__ import annotations

from typing import Final, Protocol

from tools.contract import Enforcement


class SandboxProbe(Protocol):
    """Knows what this system can enforce."""

    async def enforcement(self) -> Enforcement:
        """Level of sandbox enforcement; the first call starts a program."""
        ...


class NoSandbox:
    """A system without a sandbox."""

    async def enforcement(self) -> Enforcement:
        """Enforce nothing."""
        return Enforcement.NONE


NO_SANDBOX: Final = NoSandbox()
