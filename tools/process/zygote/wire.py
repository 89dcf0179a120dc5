"""Messages between Phoenix and the zygote, and between Phoenix and a supervisor over the control socket.

Phoenix sends one request, a length-prefixed list of NUL-joined fields; the end of the stream then
means "kill". The supervisor answers in lines: `ready PID`, `started PID TICKS`, `failed ERRNO`,
`listening` with a descriptor, `exited STATUS`, `left NAME`, `killed PID PORTS NAME` (PID 0 in a namespace, PORTS `-`
for none), `stuck PID...`, `ended COUNT`.
"""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Iterator, Sequence

from tools.process.zygote.mount_places import MountPlace

CONTROL = 3
TERMINAL = 4
"""Descriptors of the zygote."""
FILTER = 9
"""Descriptor of the filter of system calls in a bubblewrap that starts."""
DOOR = 8
"""Descriptor of the control socket in a bubblewrap that hands a listener out."""
ALARMS = {5: signal.SIGTERM, 6: signal.SIGHUP, 7: signal.SIGINT}
"""Pipes into which Phoenix's stack is written when one of these signals comes to it."""
RUN = b"r"
CLEAN = b"c"
BEGUN = b"b"
BOUND = b"m"
"""Words to the zygote: fork a supervisor; the terminal is in order; the end that a signal asked for has begun; no
more memory than the number that follows (`MEMORY`).

The zygote says one thing by itself: a byte with the number of a signal that came to Phoenix.
"""
MEMORY = struct.Struct("!Q")
BEYOND = 1.25
"""Times the memory that Phoenix may use, at which it is killed: it had its time to end by itself."""

DOOR_PORT = 47128
"""Port of the proxy on the loopback of a command's network namespace."""

LENGTH = struct.Struct("!I")
FIELD = b"\0"

SUBREAPER = "subreaper"
NAMESPACE = "namespace"
LANDLOCK = "landlock"
SCAN = "scan"

Streams = tuple[int, int, int]
"""Descriptors that become stdin, stdout and stderr; a terminal as stdin becomes the controlling terminal."""


class SupervisorRequest:
    """One command as its supervisor sees it; a plain class because `dataclasses` costs the zygote 15 ms."""

    __slots__ = (
        "argv",
        "door",
        "environment",
        "filtered",
        "mechanism",
        "network",
        "places",
        "secret",
        "shown",
        "working_dir",
        "writable",
    )

    def __init__(
        self,
        mechanism: str,
        working_dir: str,
        argv: Sequence[str],
        environment: Sequence[str],
        *,
        network: bool = True,
        filtered: bool = False,
        door: bool = False,
        places: Sequence[MountPlace] = (),
        writable: Sequence[str] = (),
        secret: Sequence[str] = (),
        shown: Sequence[str] = (),
    ) -> None:
        self.mechanism = mechanism
        self.working_dir = working_dir
        self.argv = tuple(argv)
        self.environment = tuple(environment)
        self.network = network
        self.filtered = filtered
        """Hand the filter of system calls to the program as descriptor `FILTER`: bubblewrap installs it itself."""
        self.door = door
        """Listen on `DOOR_PORT` inside, and hand that socket out."""
        self.places = tuple(places)
        self.writable = tuple(writable)
        self.secret = tuple(secret)
        """Secret paths for Landlock alone, which knows folders and no single places."""
        self.shown = tuple(shown)
        """Folders inside these that may be read."""

    def encode(self) -> bytes:
        """The request as it travels.

        Raises:
            ValueError: a field holds a NUL or a lone surrogate, which no program can be given.
        """
        places = [field for place in self.places for field in place.fields()]
        lists = (self.argv, self.environment, places, self.writable, self.secret, self.shown)
        flags = (self.network, self.filtered, self.door)
        fields = [self.mechanism, self.working_dir, *("1" if flag else "" for flag in flags)]
        for values in lists:
            fields += [str(len(values)), *values]
        if any("\0" in field for field in fields):
            raise ValueError("embedded null byte")
        body = FIELD.join(os.fsencode(field) for field in fields)
        return LENGTH.pack(len(body)) + body


def decode(body: bytes) -> SupervisorRequest:
    """Decode the output of `SupervisorRequest.encode`, without its length."""
    fields = iter([os.fsdecode(field) for field in body.split(FIELD)])
    mechanism, working_dir, network, filtered, door = (next(fields) for _ in range(5))
    return SupervisorRequest(
        mechanism,
        working_dir,
        _list(fields),
        _list(fields),
        network=bool(network),
        filtered=bool(filtered),
        door=bool(door),
        places=_places(_list(fields)),
        writable=_list(fields),
        secret=_list(fields),
        shown=_list(fields),
    )


def _places(flat: list[str]) -> list[MountPlace]:
    return [MountPlace(*flat[start : start + 3]) for start in range(0, len(flat), 3)]


def _list(fields: Iterator[str]) -> list[str]:
    return [next(fields) for _ in range(int(next(fields)))]
