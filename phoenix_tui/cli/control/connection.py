"""One connection with a host: lines in, frames out, and what happens to each."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from typing import Final

from phoenix_tui.cli.control.frames import (
    PIECE,
    EndOfInput,
    HostChannel,
    HostLine,
    HostRequests,
    LineFault,
    encode_frame,
    parse_line,
    read_message,
    split_lines,
)
from phoenix_tui.cli.control.turns import Turns
from phoenix_tui.cli.exits import Exit
from phoenix_tui.cli.output import output_waits, write_progress, write_raw_line
from tools.contract import JsonObject

FEW: Final = 4 << 20
"""Bytes of output that may wait before pieces of replies are dropped."""
AHEAD: Final = 64
"""Lines that may wait for the loop; the pipe holds the rest."""
DROPPED: Final = "phoenix: The host reads too slowly; pieces of replies are left out until it has caught up."


class FrameWriter:
    """Writes frames on stdout, each as one line that the host can read; pieces of replies go first where it is slow."""

    def __init__(self) -> None:
        self._has_dropped = False
        self.lost: Callable[[], None] = lambda: None
        """Called once where the host is gone, or has stopped reading; no frame is written then."""
        self._is_lost = False

    def __call__(self, frame: JsonObject) -> None:
        """Write one frame."""
        if self._is_lost:
            return
        try:
            self._write(frame)
        except BrokenPipeError:
            self._is_lost = True
            self.lost()

    def _write(self, frame: JsonObject) -> None:
        if frame.get("type") == "stream_event" and output_waits() > FEW:
            if not self._has_dropped:
                self._has_dropped = True
                write_progress(DROPPED)
            return
        write_raw_line(encode_frame(frame))


class HostLines:
    """Hands every line to `deliver`, in the loop, in order; at last `EndOfInput`, or a fault and nothing more."""

    def __init__(self, deliver: Callable[[HostLine], None], ahead: bytes = b"") -> None:
        """`ahead` was read from stdin before."""
        self._deliver = deliver
        self._ahead = ahead
        self._loop = asyncio.get_running_loop()
        self._room = threading.Semaphore(AHEAD)
        threading.Thread(target=self._run, name="host lines", daemon=True).start()

    def _run(self) -> None:
        for line in split_lines(self._read):
            found = line if isinstance(line, LineFault) else parse_line(line)
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
            return os.read(0, PIECE)
        except OSError:
            return b""

    def _hand_on(self, line: HostLine) -> None:
        self._room.acquire()
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._take, line)

    def _take(self, line: HostLine) -> None:
        self._room.release()
        self._deliver(line)


class ControlConnection:
    """Sorts the lines of the host; those that come before Phoenix is ready wait."""

    def __init__(self, host: HostChannel) -> None:
        self.host = host
        self.faults = False
        """True once a line was no message."""
        self._early: list[HostLine] | None = []
        self._first: asyncio.Future[HostLine] = asyncio.get_running_loop().create_future()
        self._requests: HostRequests | None = None
        self._turns: Turns | None = None

    async def first(self) -> HostLine:
        """The first line that a conversation can be made for; it is handled once the connection is open."""
        return await self._first

    def open(self, requests: HostRequests, turns: Turns) -> None:
        """Handle lines from now on, and those that came before."""
        self._requests, self._turns = requests, turns
        early, self._early = self._early or [], None
        for line in early:
            self.take(line)

    def take(self, line: HostLine) -> None:
        """Handle one line; an unknown type is ignored."""
        if self._early is not None or self._requests is None or self._turns is None:
            assert self._early is not None, "lines wait until the connection is open"
            self._early.append(line)
            begins = isinstance(line, LineFault | EndOfInput) or line.get("type") in {"control_request", "user"}
            if begins and not self._first.done():
                self._first.set_result(line)
            return
        if self.faults:
            return
        if isinstance(line, LineFault):
            self._give_up(line.reason)
        elif isinstance(line, EndOfInput):
            self.host.leave()
            self._turns.close()
        else:
            self._sort(line, self._requests, self._turns)

    def _sort(self, line: JsonObject, requests: HostRequests, turns: Turns) -> None:
        match line.get("type"):
            case "control_request":
                requests.take(line)
            case "control_response":
                self.host.take_answer(line)
            case "control_cancel_request":
                requests.withdraw(line)
            case "user":
                message = read_message(line)
                if message is None:
                    self._give_up("a user message on stdin has no content")
                elif why := turns.add(message):
                    self._give_up(why)
            case _:
                pass  # of a newer protocol

    def _give_up(self, reason: str) -> None:
        """End with the run under way: what comes after such a line cannot be trusted."""
        write_progress(f"phoenix: The connection ends: {reason}.")
        self.faults = True
        self.host.leave()
        if self._turns is not None:
            self._turns.stop(Exit.FAILED)
