"""Choices of a host about an MCP server inside it: tools that always ask, or are never offered, and time for a call."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from tools.contract import JsonValue

LEAST_MS: Final = 1_000
"""Milliseconds below which a time for a call does not count, as in the program that the SDKs were written for."""
MOST_TOOLS: Final = 1_000
ASKS: Final = "the host wants to be asked about each call of this tool"


class ServerPolicy(Struct, frozen=True):
    """Choices of a host about one server."""

    seconds: float | None = None
    """Time for a call; None: the usual one."""
    asks: frozenset[str] = frozenset()
    """Tools of the server that ask before each call, whatever mode and rules say."""
    denies: frozenset[str] = frozenset()
    """Tools that no model is offered."""

    def joined(self, other: ServerPolicy) -> ServerPolicy:
        """Add the tools of another, and take its time where it has one."""
        return ServerPolicy(other.seconds or self.seconds, self.asks | other.asks, self.denies | other.denies)


NO_POLICY: Final = ServerPolicy()


def policy_of(value: JsonValue) -> ServerPolicy:
    """The choices in an entry of `sdkMcpServerConfigs`; parts of another shape are left out."""
    if not isinstance(value, dict):
        return NO_POLICY
    timeout, tools = value.get("timeout"), value.get("tools")
    is_time = isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout >= LEAST_MS
    named: dict[str, set[str]] = {"always_ask": set(), "always_deny": set()}
    for tool in tools[:MOST_TOOLS] if isinstance(tools, list) else []:
        name, policy = (tool.get("name"), tool.get("permission_policy")) if isinstance(tool, dict) else (None, None)
        if isinstance(name, str) and isinstance(policy, str) and policy in named:
            named[policy].add(name)
    seconds = float(timeout) / 1_000 if is_time and isinstance(timeout, int | float) else None
    return ServerPolicy(seconds, frozenset(named["always_ask"]), frozenset(named["always_deny"]))
