"""The last steps from a supervisor to a running program: fork, the last settings, exec."""

from __future__ import annotations

import contextlib
import errno
import os
import signal

from tools.process.zygote import wire
from tools.process.zygote.tree import read_proc
from tools.process.zygote.wire import Streams, SupervisorRequest

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
