"""Findings of the doctor about parts that not every installation or system has: the MCP helper, terminals of lines."""

from __future__ import annotations

import os

from phoenix_tui.cli.findings import Finding, Health
from tools.mcp_host.launch import missing

OWN_TERMINAL = "a line after ! runs in a terminal of its own"
NO_TERMINAL = "the system gives no terminal ({why}); a line after ! runs without one, and gets no keys"


def part_findings() -> list[Finding]:
    """The findings; nothing is started."""
    why = missing()
    helper = Finding("mcp helper", Health.NOTE if why else Health.OK, why or "can be started")
    return [helper, _terminals()]


def _terminals() -> Finding:
    try:
        pair = os.openpty()
    except OSError as error:
        why = error.strerror or "no reason given"
        return Finding("shell lines", Health.NOTE, NO_TERMINAL.format(why=why))
    for descriptor in pair:
        os.close(descriptor)
    return Finding("shell lines", Health.OK, OWN_TERMINAL)
