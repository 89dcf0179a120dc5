"""The facts that a question showed, and their differences from the present ones (SECURITY V7)."""

from __future__ import annotations

from msgspec import Struct

from engine.permissions.policy import Limits
from tools.clean import reveal_name
from tools.contract import Enforcement, ProgramFact, SandboxMode, ToolRequest


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
        (f"it would reach {', '.join(request.hosts) or 'any host'}", _hosts(before) != _hosts(request)),
        ("the change it makes", before.preview != request.preview or before.summary != request.summary),
        (_programs(before.programs, request.programs), before.programs != request.programs),
        ("the access it needs", (before.access, before.mode) != (request.access, request.mode)),
        (f"the mode is {limits.mode.value}", shown.mode is not limits.mode),
        (f"the sandbox is {limits.sandbox.value}", _sandbox(shown) != _sandbox(limits)),
    )
    return ", ".join(words for words, differs in checks if differs)


def _programs(before: tuple[ProgramFact, ...], now: tuple[ProgramFact, ...]) -> str:
    """The first program that is another one than was shown."""
    shown = {fact.name: fact for fact in before}
    for fact in now:
        known = shown.pop(fact.name, None)
        if known is None or known.path != fact.path:
            return f"{reveal_name(fact.name)} is now {reveal_name(fact.path)}"
        if known.stamp != fact.stamp:
            return f"the program {reveal_name(fact.path)} is another file"
    return f"{reveal_name(next(iter(shown), 'a program'))} is no longer found"


def _hosts(request: ToolRequest) -> tuple[tuple[str, ...], bool]:
    return request.hosts, request.any_host


def _sandbox(limits: Limits) -> tuple[SandboxMode, bool, bool, Enforcement, tuple[str, ...] | None]:
    return limits.sandbox, limits.required, limits.network, limits.enforcement, limits.hosts
