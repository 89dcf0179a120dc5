"""Programs with a terminal of their own: a pty as controlling terminal, below the supervisor of commands."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios

from tools.contract import Captured
from tools.process.readiness import Readiness
from tools.process.service import EndingProgram
from tools.process.zygote.wire import Streams
from tools.services import ProgramExit, ServiceEndedError, TerminalSize

READ_SIZE = 64 * 1024
MOST_CELLS = 0xFFFF
NOTHING = Captured(b"")


class TerminalStreams:
    """A pty whose slave is all three streams of the program."""

    def __init__(self, size: TerminalSize) -> None:
        self.claimed = False
        """True once the program runs: its owner closes the master."""
        self.master, self._slave = os.openpty()
        try:
            os.set_blocking(self.master, False)
            set_size(self.master, size)
        except OSError:
            self.close()
            raise

    def child_ends(self) -> Streams:
        """The slave, three times."""
        return (self._slave, self._slave, self._slave)

    def start(self) -> None:
        """Close the slave: with the program's last copy the terminal ends."""
        self._close_slave()

    def fall_silent(self) -> None:
        """Do nothing: no progress is reported."""

    def captured(self) -> Captured:
        """Return no output: the owner reads it."""
        return NOTHING

    async def finish(self) -> Captured:
        """Close what has no owner; output that was not read yet stays readable."""
        self._close_slave()
        if not self.claimed:
            self.close()
        return NOTHING

    def close(self) -> None:
        """Close both ends."""
        self._close_slave()
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def _close_slave(self) -> None:
        if self._slave >= 0:
            os.close(self._slave)
            self._slave = -1


class PseudoTerminal:
    """Implements `engine.ports.services.RunningTerminal`."""

    def __init__(self, ending: EndingProgram, streams: TerminalStreams) -> None:
        self._ending = ending
        self._streams = streams
        self._readiness = Readiness()
        self._reading = asyncio.Lock()
        self._writing = asyncio.Lock()

    @property
    def pid(self) -> int:
        """Process id, as seen outside of a sandbox."""
        return self._ending.pid

    @property
    def closed(self) -> bool:
        """True once `end` has closed the terminal."""
        return self._readiness.closed

    async def read(self) -> bytes:
        """Output as it comes, at most `READ_SIZE` bytes; empty once no process has the terminal any more."""
        await asyncio.sleep(0)  # before the read, so that a cancel loses nothing: a flood must not hold the event loop
        async with self._reading:
            while not self._readiness.closed:
                try:
                    return os.read(self._streams.master, READ_SIZE)
                except BlockingIOError:
                    await self._readiness.readable(self._streams.master)
                except OSError:  # EIO: hung up
                    break
            return b""

    async def write(self, keys: bytes) -> None:
        """Type into the terminal; waits while the program does not read. A cancelled write may have typed a part.

        Raises:
            ServiceEndedError: the program is gone.
        """
        rest = memoryview(keys)
        async with self._writing:
            while rest:
                if self._readiness.closed:
                    raise ServiceEndedError("The program of this terminal has ended.")
                try:
                    rest = rest[os.write(self._streams.master, rest) :]
                except BlockingIOError:
                    await self._readiness.writable(self._streams.master)
                except OSError as error:
                    raise ServiceEndedError("The program of this terminal has ended.") from error

    def resize(self, size: TerminalSize) -> None:
        """Set another size; the program receives SIGWINCH. Nothing happens after its end."""
        if not self._readiness.closed:
            set_size(self._streams.master, size)

    async def ended(self) -> ProgramExit:
        """Wait until its tree is gone; what it wrote can still be read. Cancelling stops the waiting alone."""
        return await self._ending.ended()

    async def end(self, grace: float = 0) -> ProgramExit:
        """Wait `grace` seconds for its end, then kill the tree and close the terminal."""
        try:
            return await self._ending.kill_after(grace)
        finally:
            self._readiness.close()
            self._streams.close()


def set_size(terminal: int, size: TerminalSize) -> None:
    """Set the window size; a number outside of 1 to 65,535 counts as the nearest one."""
    rows, columns = (min(max(number, 1), MOST_CELLS) for number in (size.rows, size.columns))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
