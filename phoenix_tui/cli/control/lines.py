"""Lines of the host on stdin, read and parsed by a thread, so that nothing that a host sends delays the engine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct

from tools.contract import JsonObject

LONGEST: Final = 16 << 20
"""Bytes of one line: a message with some large images."""
PIECE: Final = 1 << 16
"""Bytes of one read: the capacity of a pipe."""
AHEAD: Final = 64
"""Lines that may wait for the loop; the pipe holds the rest."""
TOO_LONG: Final = f"a line on stdin is longer than {LONGEST >> 20} MiB"


class LineFault(Struct, frozen=True):
    """A line that is no message; the rest of stdin cannot be trusted."""

    reason: str


class EndOfInput(Struct, frozen=True):
    """The host has closed stdin."""


HostLine: TypeAlias = "JsonObject | LineFault | EndOfInput"


def parsed(line: bytes) -> JsonObject | LineFault | None:
    """One line as a JSON object; None for a blank one."""
    text = line.decode("utf-8", "replace").strip()
    if not text:
        return None
    try:
        value: Any = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        return LineFault(f"a line on stdin is no JSON ({reason})")
    return cast("JsonObject", value) if isinstance(value, dict) else LineFault("a line on stdin is no JSON object")


def split(read: Callable[[], bytes], longest: int = LONGEST) -> Iterator[bytes | LineFault]:
    """Whole lines of a stream; the last one may have no end. Ends behind a line that is too long."""
    waiting = bytearray()
    while piece := read():
        start = len(waiting)
        waiting += piece
        while (end := waiting.find(b"\n", start)) >= 0:
            if end > longest:
                yield LineFault(TOO_LONG)
                return
            yield bytes(waiting[:end])
            del waiting[: end + 1]
            start = 0
        if len(waiting) > longest:
            yield LineFault(TOO_LONG)
            return
    if waiting:
        yield bytes(waiting)


class HostLines:
    """Hands every line to `deliver`, in the loop, in order; at last `EndOfInput`, or a fault and nothing more."""

    def __init__(self, deliver: Callable[[HostLine], None], descriptor: int = 0, ahead: bytes = b"") -> None:
        """`ahead` was read of the descriptor before."""
        self._deliver = deliver
        self._descriptor, self._ahead = descriptor, ahead
        self._loop = asyncio.get_running_loop()
        self._room = threading.Semaphore(AHEAD)
        threading.Thread(target=self._run, name="host lines", daemon=True).start()

    def _run(self) -> None:
        for line in split(self._read):
            found = line if isinstance(line, LineFault) else parsed(line)
            if found is None:
                continue
            self._hand_on(found)
            if isinstance(found, LineFault):
                return
        self._hand_on(EndOfInput())

    def _read(self) -> bytes:
        if self._ahead:
            ahead, self._ahead = self._ahead, b""
            return ahead
        try:
            return os.read(self._descriptor, PIECE)
        except OSError:
            return b""

    def _hand_on(self, line: HostLine) -> None:
        self._room.acquire()
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._take, line)

    def _take(self, line: HostLine) -> None:
        self._room.release()
        self._deliver(line)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")
