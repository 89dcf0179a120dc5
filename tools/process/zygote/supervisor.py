"""The supervisor: one process per command, which starts it and ends only when its tree is empty."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import time
from collections.abc import Callable

from tools.process.zygote import wire
from tools.process.zygote.tree import (
    descendants,
    freeze,
    kill_below,
    leave_room,
    listening_ports,
    name_of,
    read_proc,
    reads_own_output,
    send,
    short_name,
    start_ticks,
)
from tools.process.zygote.wire import Streams, SupervisorRequest

GRACE = 0.2
"""Seconds a finished command's children keep to write their last words (FAULTS 3.2)."""
STUCK_AFTER = 0.8
"""Seconds of killing after which the pids still present are reported; the killing continues."""
PATIENT_PAUSE = 0.05
BRISK_PAUSE = 0.002
LONGEST_PAUSE = 30.0
CROWD = 96
"""Processes of one command from which on they leave a processor to Phoenix: more than a build starts at once."""
CROWD_PAUSE = 1.0
CROWD_RUNS, CROWD_RESTS = 0.2, 0.8
"""Seconds in turns where there is one processor; until a crowd rests takes up to a second more."""
NAMES_LIMIT = 20
TOLD_LIMIT = 8
"""Stopped processes that are named: reading of each takes a part of a millisecond."""
CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class Supervisor:
    """Starts a command, reaps all the time, and leaves nothing behind."""

    look_again = 0.5
    """Seconds until the first look at a running tree, for programs that wait for a key (FAULTS 13)."""
    looks_when_woken = False
    """True where each change in the tree is followed by a look."""

    def __init__(self, control: socket.socket, streams: wire.Streams, guarded: tuple[int, ...] = ()) -> None:
        self._control = control
        self._guarded = guarded
        self._streams = streams
        self._pipe = 0 if os.isatty(streams[0]) else os.fstat(streams[1]).st_ino
        self._main = 0
        self._exited = False
        self._cancelled = False
        self._killed: set[int] = set()
        self._told = False
        """True once the processes of a stop were named."""
        self._wake = _wake_on_child()
        self.also: tuple[int, Callable[[], None]] | None = None
        """Descriptor that is waited for too, and the answer to it."""

    def run(self, request: wire.SupervisorRequest, shown_pid: int = 0) -> None:
        """See one command through, from its start to the empty tree."""
        self._main, failure = launch(request, self._streams, self._guarded, self._control.fileno())
        for stream in self._streams:
            os.close(stream)
        if self._program_runs(failure):
            self.tell(f"started {shown_pid or self._main} {start_ticks(os.getpid() if shown_pid else self._main)}")
            self._wait_until_over()
        self._empty(namespace=request.mechanism == wire.NAMESPACE)
        self.tell(f"ended {len(self._killed)}")

    def tell(self, line: str) -> None:
        """Send one line; Phoenix may be gone, which changes nothing here."""
        with contextlib.suppress(OSError):
            self._control.sendall(line.encode("utf-8", "replace") + b"\n")

    def hand_out(self, listening: int) -> None:
        """Send Phoenix the listener of this namespace, and keep none of it."""
        with contextlib.suppress(OSError):
            socket.send_fds(self._control, [b"listening\n"], [listening])
        os.close(listening)

    def _program_runs(self, failure: int) -> bool:
        watched = [failure, self._control.fileno()]
        ready, _, _ = select.select(watched, [], [])
        if failure not in ready:
            self._cancelled = True
            os.close(failure)
            return False
        number = os.read(failure, 16)
        os.close(failure)
        if number:
            self.tell(f"failed {number.decode()}")
        return not number

    def _wait_until_over(self) -> None:
        pause = self.look_again
        due = time.monotonic() + pause
        while self._reap() and not self._exited and not self._cancelled:
            stopped = self._pause(max(0.0, due - time.monotonic()))
            # A tree that forks without end wakes this all the time, and leaves it a sliver of the processor.
            if stopped or (time.monotonic() < due and not self.looks_when_woken):
                continue
            pids = self.pids_below()
            for pid in pids:
                if reads_own_output(pid, self._pipe):
                    send(pid, signal.SIGHUP)
            pause = self.look_later(pause)
            if len(pids) >= CROWD:
                pause = min(pause, CROWD_PAUSE)
                if not leave_room(os.getpid()):
                    self._rest_crowd()
                    pause = CROWD_RUNS
            due = time.monotonic() + pause
        deadline = time.monotonic() + GRACE
        while self.anything_left() and not self._cancelled and (left := deadline - time.monotonic()) > 0:
            self._pause(left)
        if not self._cancelled:
            self._name_leftovers()

    def _rest_crowd(self) -> None:
        """Stop the whole tree for a while: with one processor nothing else leaves some of it to Phoenix."""
        resting = freeze(os.getpid())
        over = time.monotonic() + CROWD_RESTS
        while (left := over - time.monotonic()) > 0 and not self._pause(left):
            self._reap()
        if not self._cancelled:
            for pid in resting:  # stopped parents reap no child, so these pids are still theirs (FAULTS 20)
                send(pid, signal.SIGCONT)

    def _name_leftovers(self) -> None:
        names = self.names_below()
        for name in names[:NAMES_LIMIT]:
            self.tell(f"left {name}")
        if len(names) > NAMES_LIMIT:
            self.tell(f"left and {len(names) - NAMES_LIMIT} more")

    def _empty(self, *, namespace: bool) -> None:
        """Kill until `waitpid` knows of no child: at a subreaper that proves the tree is empty."""
        began = time.monotonic()
        told = False
        while self.anything_left():
            if namespace:
                send(-1, signal.SIGSTOP)  # all processes of this namespace but PID 1, at once: none is outrun
            self._killed |= self.kill_once()
            if namespace:
                send(-1, signal.SIGKILL)
            late = time.monotonic() - began > STUCK_AFTER
            if self.anything_left():
                self._pause(PATIENT_PAUSE if late else BRISK_PAUSE)
            if late and not told:
                told = True
                self.tell("stuck " + " ".join(str(pid) for pid in self.pids_below()))

    def look_later(self, pause: float) -> float:
        """The pause after `pause`: ever longer, so that a job of hours costs nothing."""
        return min(2 * pause, LONGEST_PAUSE)

    def anything_left(self) -> bool:
        """True while part of the command's tree is alive."""
        return self._reap()

    def pids_below(self) -> list[int]:
        """The command's tree as it is now."""
        return descendants(os.getpid())

    def names_below(self) -> list[str]:
        """Names of the living processes of the tree, for a human."""
        return [name for pid in self.pids_below() if (name := name_of(pid))]

    def kill_once(self) -> set[int]:
        """Kill all that is seen now; returns the pids. A stop names the first of them before."""
        wanted, self._told = self._cancelled and not self._told, True
        return kill_below(os.getpid(), look=self._name_stopped if wanted else None)

    def _name_stopped(self, pids: set[int]) -> None:
        for pid in sorted(pids)[:TOLD_LIMIT]:
            if name := short_name(pid):
                ports = ",".join(str(port) for port in listening_ports(pid))
                self.tell(f"killed {0 if os.getpid() == 1 else pid} {ports or '-'} {name}")

    def _reap(self) -> bool:
        """Collect every dead child; False once there is no child at all."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._main:
                self._exited = True
                self.tell(f"exited {status}")

    def _pause(self, seconds: float) -> bool:
        """Sleep until a child changes, Phoenix closes the control socket, or `seconds` are over; True once closed."""
        watched = [self._wake] if self._cancelled else [self._wake, self._control.fileno()]
        watched += [self.also[0]] if self.also is not None else []
        ready, _, _ = select.select(watched, [], [], seconds)
        if self.also is not None and self.also[0] in ready:
            self.also[1]()
        if self._wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
        if self._control.fileno() in ready:
            self._cancelled = True
        return self._cancelled


def _wake_on_child() -> int:
    """A descriptor that becomes readable when a child changes; the usual deadly signals only wake, too."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, *CAUGHT):
        signal.signal(number, _carry_on)
    return reader


def _carry_on(_number: int, _frame: object) -> None:
    return


OUT_OF_MEMORY_BIAS = 500
"""Added to oom_score_adj, so that a command that eats the memory dies before Phoenix (FAULTS 3.1)."""
OUT_OF_MEMORY_LIMIT = 1000
EXEC_FAILED = 127
WRITER, KEPT = 64, 65
"""Descriptors of the report to the supervisor and of its control socket, beyond those that the program is given."""


def launch(
    request: SupervisorRequest, streams: Streams, guarded: tuple[int, ...], control: int = -1
) -> tuple[int, int]:
    """Start the command in a session of its own; returns its pid and a descriptor to read.

    The descriptor ends empty when the program runs, or gives the errno that kept it from running.
    `guarded` are pids the command must not signal. Over `control`, the socket to Phoenix, a bubblewrap hands its
    listener out.
    """
    reader, low = os.pipe()
    writer = os.dup2(low, WRITER, inheritable=False)
    os.close(low)
    pid = os.fork()
    if pid == 0:
        try:
            if request.door and request.filtered:
                os.dup2(control, KEPT, inheritable=False)
            _run(request, streams, writer, guarded)
        finally:
            os._exit(EXEC_FAILED)
    os.close(writer)
    return pid, reader


def _run(request: SupervisorRequest, streams: Streams, writer: int, guarded: tuple[int, ...]) -> None:
    """Become the program; comes back only when that failed."""
    number = errno.EIO
    try:
        _become(request, streams, writer, guarded)
    except OSError as error:
        number = error.errno or number
    except ValueError:  # an environment entry without a name
        number = errno.EINVAL
    os.write(writer, str(number).encode())


def _become(request: SupervisorRequest, streams: Streams, writer: int, guarded: tuple[int, ...]) -> None:
    os.setsid()
    for target, source in enumerate(streams):
        os.dup2(source, target)
    os.closerange(3, writer)
    os.closerange(KEPT + 1 if request.door and request.filtered else writer + 1, 1 << 20)
    if os.isatty(0):
        _take_terminal()
    _reset_signals()
    _offer_to_the_memory_killer()
    os.chdir(request.working_dir)
    environment = dict(entry.split("=", 1) for entry in request.environment)
    if request.mechanism == wire.NAMESPACE:
        from tools.process.zygote import kernel, landlock, syscalls  # noqa: PLC0415 - Linux alone can load it

        kernel.drop_capabilities()
        if request.network:
            landlock.hide_abstract_sockets()
        syscalls.restrict()
    elif request.mechanism == wire.LANDLOCK:
        from tools.process.zygote import kernel, landlock, syscalls  # noqa: PLC0415 - Linux alone can load it

        kernel.drop_capabilities()
        landlock.restrict(request.writable, request.secret, request.shown, network=request.network)
        syscalls.restrict(internet=request.network)
    elif request.mechanism == wire.SUBREAPER:
        from tools.process.zygote import guard  # noqa: PLC0415 - Linux alone can load it

        guard.protect(guarded)
        if request.filtered:
            _offer_filter()
        if request.filtered and request.door:
            os.dup2(KEPT, wire.DOOR)
    os.execvpe(request.argv[0], request.argv, environment)


def _reset_signals() -> None:
    """Undo what Python ignores, and what Phoenix or its own parent ignored or blocked."""
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _take_terminal() -> None:
    """Make stdin the controlling terminal of this new session."""
    import fcntl  # noqa: PLC0415 - only a command with a terminal needs these two
    import termios  # noqa: PLC0415 - as above

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _offer_filter() -> None:
    """Open the filter of system calls for a bubblewrap to read."""
    from tools.process.zygote import syscalls  # noqa: PLC0415 - Linux alone can load it

    descriptor = os.memfd_create("filter")
    os.write(descriptor, syscalls.compile_filter())
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.dup2(descriptor, wire.FILTER)


def _offer_to_the_memory_killer() -> None:
    path = "/proc/self/oom_score_adj"
    with contextlib.suppress(OSError, ValueError):
        wanted = min(int(read_proc(path)) + OUT_OF_MEMORY_BIAS, OUT_OF_MEMORY_LIMIT)
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, str(wanted).encode())
        finally:
            os.close(descriptor)
