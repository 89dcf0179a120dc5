"""The facts that a question showed, and their differences from the present ones (SECURITY V7)."""

from __future__ import annotations

from msgspec import Struct

from engine.permissions.policy import Limits
from tools.contract import Enforcement, SandboxMode, ToolRequest


class AskedCall(Struct, frozen=True):
    """The facts that a question showed."""

    call_id: str
    request: ToolRequest
    limits: Limits
    times: int = 1


def differences(asked: AskedCall, request: ToolRequest, limits: Limits) -> str:
    """Differences between a request and its question, in words; empty without any."""
    before, shown = asked.request, asked.limits
    checks = (
        ("the command", before.command != request.command),
        (f"it now leads to {', '.join(map(str, request.paths))}", before.paths != request.paths),
        ("the change it makes", before.preview != request.preview or before.summary != request.summary),
        ("the access it needs", (before.access, before.mode) != (request.access, request.mode)),
        (f"the mode is {limits.mode.value}", shown.mode is not limits.mode),
        (f"the sandbox is {limits.sandbox.value}", _sandbox(shown) != _sandbox(limits)),
    )
    return ", ".join(words for words, differs in checks if differs)


def _sandbox(limits: Limits) -> tuple[SandboxMode, bool, bool, Enforcement]:
    return limits.sandbox, limits.required, limits.network, limits.enforcement
