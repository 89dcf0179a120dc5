"""What Phoenix and the zygote say to each other, and Phoenix and a supervisor over the control socket.

Phoenix sends one request, a length-prefixed list of NUL-joined fields; the end of the stream then
means "kill". The supervisor answers in lines: `ready PID`, `started PID TICKS`, `failed ERRNO`,
`exited STATUS`, `left NAME`, `stuck PID...`, `ended COUNT`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence

CONTROL = 3
TERMINAL = 4
"""Descriptors of the zygote."""
RUN = b"r"
CLEAN = b"c"
"""Words to the zygote: fork a supervisor; the terminal is in order."""

LENGTH = struct.Struct("!I")
FIELD = b"\0"

SUBREAPER = "subreaper"
NAMESPACE = "namespace"
LANDLOCK = "landlock"
SCAN = "scan"


class Request:
    """One command as its supervisor sees it; a plain class because `dataclasses` costs the zygote 15 ms."""

    __slots__ = ("argv", "denied", "environment", "hidden", "mechanism", "network", "pinned", "working_dir", "writable")

    def __init__(
        self,
        mechanism: str,
        working_dir: str,
        argv: Sequence[str],
        environment: Sequence[str],
        *,
        network: bool = True,
        writable: Sequence[str] = (),
        pinned: Sequence[str] = (),
        denied: Sequence[str] = (),
        hidden: Sequence[str] = (),
    ) -> None:
        self.mechanism = mechanism
        self.working_dir = working_dir
        self.argv = tuple(argv)
        self.environment = tuple(environment)
        self.network = network
        self.writable = tuple(writable)
        self.pinned = tuple(pinned)
        self.denied = tuple(denied)
        self.hidden = tuple(hidden)

    def encode(self) -> bytes:
        """The request as it travels.

        Raises:
            ValueError: a field holds a NUL or a lone surrogate, which no program can be given.
        """
        lists = (self.argv, self.environment, self.writable, self.pinned, self.denied, self.hidden)
        fields = [self.mechanism, self.working_dir, "1" if self.network else ""]
        for values in lists:
            fields += [str(len(values)), *values]
        if any("\0" in field for field in fields):
            raise ValueError("embedded null byte")
        body = FIELD.join(os.fsencode(field) for field in fields)
        return LENGTH.pack(len(body)) + body


def decode(body: bytes) -> Request:
    """Read what `Request.encode` wrote, without its length."""
    fields = iter([os.fsdecode(field) for field in body.split(FIELD)])
    mechanism, working_dir, network = next(fields), next(fields), next(fields)
    return Request(
        mechanism,
        working_dir,
        _list(fields),
        _list(fields),
        network=bool(network),
        writable=_list(fields),
        pinned=_list(fields),
        denied=_list(fields),
        hidden=_list(fields),
    )


def _list(fields: Iterator[str]) -> list[str]:
    return [next(fields) for _ in range(int(next(fields)))]
