"""One connection with a host: lines in, frames out, and what happens to each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from phoenix_tui.cli.control.frames import fitting
from phoenix_tui.cli.control.handshake import decides
from phoenix_tui.cli.control.host import Host
from phoenix_tui.cli.control.lines import EndOfInput, HostLine, LineFault
from phoenix_tui.cli.control.requests import HostRequests
from phoenix_tui.cli.control.turns import Turns
from phoenix_tui.cli.control.user_message import host_message
from phoenix_tui.cli.exits import Exit
from phoenix_tui.cli.output import output_waits, write_progress, write_raw_line
from tools.contract import JsonObject

FEW: Final = 4 << 20
"""Bytes of output that may wait before pieces of replies are dropped."""
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
        write_raw_line(fitting(frame))


class Connection:
    """Sorts the lines of the host; those that come before Phoenix is ready wait."""

    def __init__(self, host: Host) -> None:
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
            if not self._first.done() and decides(line):
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
                message = host_message(line)
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
