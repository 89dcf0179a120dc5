"""Phoenix's end of the zygote: spawned before threads exist, handed descriptors, spawned again if it dies."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import fcntl
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from tools.process.zygote import terminal as terminals
from tools.process.zygote.wire import ALARMS, BEGUN, BOUND, CLEAN, CONTROL, MEMORY, RUN, TERMINAL, Streams

ROOT = Path(__file__).resolve().parents[2]
BOOT = "import sys; sys.path.append(sys.argv[1]); from tools.process.zygote.main import main; main(sys.argv[2])"
SAFE_DESCRIPTOR = 16
"""Descriptors are moved above this before the spawn, so that moving one to 3 or 4 overwrites no other."""
FAREWELL = 2.5
"""Seconds to wait for the zygote's own end."""


class NoHelper(OSError):
    """Raised when the zygote cannot be started; the error of the system."""


class ZygoteLink:
    """The one zygote of this Phoenix."""

    def __init__(self, terminal: int | None = None) -> None:
        self._terminal = -1 if terminal is None else os.dup(terminal)
        self._settings = "" if terminal is None else terminals.describe(terminal)
        self._alarms = {number: _pipe() for number in ALARMS.values()}
        """Pipes by signal: the zygote's end and ours."""
        self._memory = 0
        self.pid: int
        self._socket: socket.socket
        self._socket, self.pid = self._spawn()
        atexit.register(self.say_goodbye)

    def send(self, control: socket.socket, streams: Streams) -> None:
        """Have a supervisor forked that owns these descriptors.

        Raises:
            OSError: no zygote can be started.
        """
        descriptors = [control.fileno(), *streams]
        try:
            socket.send_fds(self._socket, [RUN], descriptors)
        except (BrokenPipeError, ConnectionResetError):
            self.restart(self.pid)
            socket.send_fds(self._socket, [RUN], descriptors)

    def restart(self, failed: int) -> None:
        """Replace the zygote `failed` that died or does not answer; its supervisors continue without it.

        Of several commands that saw it fail, the first replaces it.
        """
        if failed != self.pid:
            return
        if not self._reap():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        spawned = self._spawn()  # may fail, and then the next command tries again
        self._socket.close()
        self._socket, self.pid = spawned
        if self._memory:
            self.limit_memory(self._memory)

    def arm(self, numbers: Iterable[int]) -> None:
        """Let the zygote see these signals, whatever Phoenix is doing; its own handlers must be set already.

        Ignored signals stay ignored.
        """
        for number in numbers:
            if signal.getsignal(number) not in {signal.SIG_IGN, None}:
                faulthandler.register(number, self._alarms[signal.Signals(number)][1], all_threads=False, chain=True)

    def disarm(self) -> None:
        """Leave the signals to Phoenix's own handlers again, as before a change of them."""
        for number in self._alarms:
            faulthandler.unregister(number)
            if threading.current_thread() is threading.main_thread():
                # faulthandler restores the handler it found, which asyncio may have removed since.
                signal.signal(number, signal.getsignal(number))

    def report_end_begun(self) -> None:
        """Report that the requested end is in progress: the zygote waits longer."""
        self._tell(BEGUN)

    def limit_memory(self, memory: int) -> None:
        """Let the zygote kill Phoenix above `memory` bytes, for code that holds the interpreter lock and so all
        threads.
        """
        self._memory = memory
        self._tell(BOUND + MEMORY.pack(memory))

    def wait_for_signal(self, seconds: float) -> int:
        """Wait at most `seconds` for a signal to Phoenix; returns its number, 0 for none. For a separate thread."""
        control = self._socket
        with contextlib.suppress(OSError, ValueError):
            poller = select.poll()
            poller.register(control, select.POLLIN)
            if not poller.poll(seconds * 1000):
                return 0
            if word := control.recv(1, socket.MSG_DONTWAIT):
                return word[0]
        time.sleep(seconds)  # the zygote is gone: the next command starts another
        return 0

    def _tell(self, word: bytes) -> None:
        with contextlib.suppress(OSError):
            self._socket.send(word, socket.MSG_DONTWAIT)

    def say_goodbye(self) -> None:
        """Tell the zygote that the terminal is in order: an end after this is no accident."""
        with contextlib.suppress(OSError):
            self._socket.send(CLEAN)

    def close(self) -> None:
        """End the zygote and everything below it; blocks until it is gone, at most `FAREWELL`."""
        atexit.unregister(self.say_goodbye)
        self.say_goodbye()
        self.disarm()
        with contextlib.suppress(OSError):  # a listening thread (`heard`) would keep it open for the zygote
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for ends in self._alarms.values():
            for descriptor in ends:
                os.close(descriptor)
        self._alarms = {}
        if self._terminal >= 0:
            os.close(self._terminal)
            self._terminal = -1
        if not self._reap():
            os.kill(self.pid, signal.SIGCONT)  # a stopped one would never see the end
        deadline = time.monotonic() + FAREWELL
        while not self._reap() and time.monotonic() < deadline:
            time.sleep(0.002)

    def _reap(self) -> bool:
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] == self.pid
        except ChildProcessError:
            return True

    def _spawn(self) -> tuple[socket.socket, int]:
        ours, theirs = socket.socketpair()
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        moved = [_lift(theirs.fileno()), _lift(null)]
        actions = [(os.POSIX_SPAWN_DUP2, moved[1], number) for number in range(3)]
        actions.append((os.POSIX_SPAWN_DUP2, moved[0], CONTROL))
        if self._terminal >= 0:
            moved.append(_lift(self._terminal))
            actions.append((os.POSIX_SPAWN_DUP2, moved[2], TERMINAL))
        for target, number in ALARMS.items():
            moved.append(_lift(self._alarms[number][0]))
            actions.append((os.POSIX_SPAWN_DUP2, moved[-1], target))
        arguments = [sys.executable, "-I", "-S", "-c", BOOT, str(ROOT), self._settings]
        try:
            pid = os.posix_spawn(sys.executable, arguments, {"PATH": os.defpath}, file_actions=actions)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
            for descriptor in (null, *moved):
                os.close(descriptor)
        return ours, pid


def _pipe() -> tuple[int, int]:
    """A pipe that never blocks the signal handler that writes into it."""
    ends = os.pipe()
    for descriptor in ends:
        os.set_blocking(descriptor, False)
    return ends


def _lift(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, SAFE_DESCRIPTOR)


def spawn_zygote(terminal: int | None = None) -> ZygoteLink:
    """Start the zygote without waiting for it: call this before threads and before the terminal is touched.

    `terminal` is a descriptor of the user's terminal, whose present settings are what is restored
    should Phoenix be killed; None for a run without a screen.

    Raises:
        NoHelper: the system starts no process, or opens no more files.
    """
    try:
        return ZygoteLink(terminal)
    except OSError as error:
        raise NoHelper(error.errno, error.strerror, error.filename) from error
