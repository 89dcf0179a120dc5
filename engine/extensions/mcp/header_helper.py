"""`headersHelper`: a program of the definition that prints the headers of a server over HTTP, as a JSON object."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from engine.extensions.mcp.last_words import error_line
from engine.extensions.mcp.starting import start_command
from engine.ports.mcp import ServerDefinition, ServerOrigin
from engine.ports.services import ServiceRunner
from tools.contract import Captured, Sandbox
from tools.refusals import reason_words
from tools.services import ProgramLimits

SECONDS: Final = 10.0
MOST_BYTES: Final = 64 * 1024
MOST_HEADERS: Final = 50
AGAIN: Final = 60.0
"""Seconds after a run before a refusal of the server (401, 403) runs it again by itself."""
WAY_OUT: Final = "define the server in your own config.toml, whose headersHelper runs outside"
HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]{0,8192}")


class NoHeaders(OSError):
    """A helper that gave no headers; the message is a clause."""


class HelpedHeaders(Struct, eq=False):
    """Headers of one server: the written ones, and those of its helper in their place."""

    root: Path
    sandbox: Sandbox
    found: Mapping[str, str] = field(default_factory=dict[str, str])
    start_in: Path | None = None
    """Neutral folder in which the helper starts, as that of a server."""
    ran_at: float = 0.0
    """Monotonic time of the last run; 0 before one."""

    async def load(self, services: ServiceRunner, definition: ServerDefinition) -> None:
        """Run the helper, where there is one, for the next connection.

        Raises:
            NoHeaders: it failed, took longer than 10 s, or printed anything else.
            OSError: it cannot be started.
        """
        self.found = definition.headers
        if definition.headers_helper:
            self.ran_at = time.monotonic()
            self.found = {**definition.headers, **await self._printed(services, definition)}

    @property
    def may_have_expired(self) -> bool:
        """True where a helper ran a while ago: a refusal of the server is reason to run it again."""
        return bool(self.ran_at) and time.monotonic() - self.ran_at > AGAIN

    async def _printed(self, services: ServiceRunner, definition: ServerDefinition) -> Mapping[str, str]:
        """Headers that the helper prints; a project's gets no variables of the definition, which may be secrets."""
        is_projects = definition.origin is ServerOrigin.PROJECT
        environment: Mapping[str, str] = dict[str, str]() if is_projects else definition.environment
        command = replace(
            start_command(definition, definition.headers_helper, self.root, self.start_in),
            environment=environment,
            sandbox=self.sandbox,
        )
        ended = await services.run_program(command, None, ProgramLimits(SECONDS, MOST_BYTES))
        if ended.timed_out:
            raise _no_headers(f"took longer than {SECONDS:.0f} s")
        if ended.exit_code != 0:
            words = error_line(ended.stderr)
            reason = reason_words(ended.refused, WAY_OUT)
            raise _no_headers(f"failed: {words}{reason}" if words else f"failed{reason}")
        return _read(ended.stdout)


def _read(printed: Captured) -> Mapping[str, str]:
    wrong = _no_headers(f"printed no JSON object of at most {MOST_HEADERS} headers")
    if printed.dropped:
        raise wrong
    try:
        found = msgspec.json.decode(printed.head + printed.tail, type=dict[str, str])
    except (msgspec.MsgspecError, RecursionError):
        raise wrong from None
    valid = all(HEADER.fullmatch(name) and _VALUE.fullmatch(value) for name, value in found.items())
    if len(found) > MOST_HEADERS or not valid:
        raise wrong
    return found


def _no_headers(why: str) -> NoHeaders:
    return NoHeaders(0, f"its headersHelper {why}")
