"""Starts a tab: no shell, no import from the working directory, no key in its environment (SECURITY V1, V11).

A new process shows its first environment to every program of the same user until it has hardened itself. So it gets the
harmless part, hardens itself, reports that over a socket, and receives the rest there.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from tools.process.hardening import is_shown

BOOT: Final = (
    "import sys; sys.path[:] = sys.argv.pop(1).split(':'); "
    "from phoenix_tui.terminal.serving.tab import main; sys.exit(main(sys.argv[1:]))"
)
READY: Final = b"."
SECONDS: Final = 30.0
"""The longest a new process may take until it listens."""


def program(descriptor: int, arguments: Sequence[str]) -> list[str]:
    """Command line of a tab: the modules of this process and no others."""
    return [sys.executable, "-I", "-c", BOOT, ":".join(sys.path), str(descriptor), *arguments]


def filter_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that the system may show of a new process."""
    return {name: value for name, value in environment.items() if is_shown(name)}


def hand_over(ours: socket.socket, environment: Mapping[str, str]) -> None:
    """Send the new process its whole environment once it is ready; blocks, so call it in a thread."""
    with ours, suppress(OSError):  # the process may be gone
        ours.settimeout(SECONDS)
        if ours.recv(1) == READY:
            ours.sendall(json.dumps(dict(environment)).encode("utf-8", "surrogateescape"))


def take_over(descriptor: int) -> None:
    """Set the environment received from `hand_over`; the system's view of the process shows none of it."""
    with socket.socket(fileno=descriptor) as theirs:
        theirs.settimeout(SECONDS)
        theirs.sendall(READY)
        told = b""
        while piece := theirs.recv(65_536):
            told += piece
    os.environ.clear()
    os.environ.update(json.loads(told.decode("utf-8", "surrogateescape")))
