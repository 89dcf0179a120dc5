"""The zygote: forks one supervisor per command, and cleans up when Phoenix dies by any cause."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import time

from tools.process.zygote import terminal, wire
from tools.process.zygote.deadline import Deadline
from tools.process.zygote.supervisor import Supervisor
from tools.process.zygote.tree import kill_below
from tools.process.zygote.wire import ALARMS, CLEAN, CONTROL, RUN, TERMINAL

PROCESS_NAME = "phoenix-zygote"
LOADED_ONCE = (
    "warnings",  # os.execvpe asks for it
    "tools.process.zygote.guard",
    "tools.process.zygote.landlock",
    "tools.process.zygote.namespace",
    "tools.process.zygote.syscalls",
)
"""Modules that supervisors and commands would otherwise each load after the fork (Linux)."""
DESCRIPTORS = 4
"""Control socket, stdin, stdout and stderr of a command."""
LAST_EFFORT = 2.0
"""Seconds for the supervisors to empty their trees after Phoenix is gone."""
NO_SIGNAL = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def main(settings: str) -> None:
    """Serve the socket at descriptor 3; `settings` are those of the terminal at descriptor 4, or empty."""
    os.setsid()
    for number in NO_SIGNAL:
        signal.signal(number, _carry_on)
    supervisors: set[int] = set()
    signal.signal(signal.SIGCHLD, lambda _number, _frame: _reap(supervisors))
    _name_and_adopt()
    gc.collect()
    gc.freeze()  # keeps a supervisor from copying pages just to count references
    with socket.socket(fileno=CONTROL) as phoenix:
        deadline = Deadline(phoenix, os.getppid())
        clean = _serve(phoenix, deadline, supervisors)
    if settings and not clean:
        terminal.restore(TERMINAL, settings)
        terminal.say(TERMINAL, deadline.last_words)
    _empty(supervisors)


def _serve(phoenix: socket.socket, deadline: Deadline, supervisors: set[int]) -> bool:
    """Fork for every request until the end; True when Phoenix reported its end first."""
    clean = False
    master = os.getppid()
    poller = select.poll()
    for descriptor in (CONTROL, *ALARMS):
        poller.register(descriptor, select.POLLIN)
    while True:
        _keep(deadline, poller)
        try:
            word, descriptors, _, _ = socket.recv_fds(phoenix, 1, DESCRIPTORS)
        except OSError:
            return clean
        if not word:
            return clean
        if word == RUN and len(descriptors) == DESCRIPTORS:
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)
            with contextlib.suppress(OSError):  # no more processes: Phoenix sees the control socket close
                supervisors.add(_fork(phoenix, master, descriptors))
        else:
            clean = clean or word == CLEAN
            deadline.handle_message(word)
        for descriptor in descriptors:
            os.close(descriptor)


def _keep(deadline: Deadline, poller: select.poll) -> None:
    """Wait for a word of Phoenix, and see to its signals meanwhile."""
    ready: set[int] = set()
    while CONTROL not in ready:
        ready = {descriptor for descriptor, _ in poller.poll(deadline.wait)}
        deadline.keep()
        for alarm in ready & ALARMS.keys():
            if not deadline.forward_signal(alarm):
                poller.unregister(alarm)


def _fork(phoenix: socket.socket, master: int, descriptors: list[int]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        phoenix.close()
        os.closerange(TERMINAL, min(descriptors))
        control, stdin, output, errors = descriptors
        supervise(socket.socket(fileno=control), (stdin, output, errors), master)
    finally:
        os._exit(0)


def supervise(control: socket.socket, streams: wire.Streams, phoenix: int) -> None:
    """A supervisor's whole life, after the zygote forked it; `phoenix` is the pid it works for."""
    os.setsid()
    body = _receive(control)
    if body is None:
        return
    request = wire.decode(body)
    if sys.platform == "linux":
        from tools.process.zygote import kernel  # noqa: PLC0415 - Linux alone can load it

        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # unlike the zygote: its own /proc files must stay writable
    if request.mechanism == wire.NAMESPACE:
        _supervise_in_namespace(request, control, streams)
    elif request.mechanism == wire.SCAN:
        from tools.process.zygote.scan import ScanningSupervisor  # noqa: PLC0415 - only where there is no subreaper

        ScanningSupervisor(control, streams).run(request)
    else:
        Supervisor(control, streams, (phoenix, os.getppid(), os.getpid())).run(request)


def _supervise_in_namespace(request: wire.SupervisorRequest, control: socket.socket, streams: wire.Streams) -> None:
    from tools.process.zygote import namespace  # noqa: PLC0415 - Linux alone can load it

    def first() -> None:
        os.setsid()
        shown = namespace.outer_pid()
        supervisor = Supervisor(control, streams)
        try:
            covers = namespace.build(request)
            supervisor.also = (covers.events, covers.renew) if covers.events >= 0 else None
            if request.door:
                supervisor.hand_out(namespace.open_door())
        except OSError as error:
            supervisor.tell(f"failed {error.errno}")
            return
        supervisor.run(request, shown)

    try:
        namespace.enter(request, first)
    except OSError as error:
        with contextlib.suppress(OSError):
            control.sendall(f"failed {error.errno}\n".encode())


def _receive(control: socket.socket) -> bytes | None:
    """Receive the request; None when Phoenix closed the socket before it was complete."""
    received = bytearray()
    wanted = wire.LENGTH.size
    with contextlib.suppress(OSError):
        control.sendall(f"ready {os.getpid()}\n".encode())
    while len(received) < wanted:
        chunk = control.recv(wanted - len(received))
        if not chunk:
            return None
        received += chunk
        if wanted == wire.LENGTH.size == len(received):
            wanted += wire.LENGTH.unpack(received)[0]
    return bytes(received[wire.LENGTH.size :])


def _reap(supervisors: set[int]) -> bool:
    """Collect the dead, also as the signal's handler; False when no child is left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        supervisors.discard(pid)


def _empty(supervisors: set[int]) -> None:
    """Wait for the supervisors and kill what a dead supervisor left here."""
    deadline = time.monotonic() + LAST_EFFORT
    while _reap(supervisors) and time.monotonic() < deadline:
        kill_below(os.getpid(), frozenset(supervisors))
        time.sleep(0.005)


def _name_and_adopt() -> None:
    if sys.platform != "linux":
        return
    for name in LOADED_ONCE:
        importlib.import_module(name)
    from tools.process.zygote import kernel  # noqa: PLC0415 - Linux alone can load it

    kernel.rename_process(PROCESS_NAME)
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # keeps the terminal out of /proc/<zygote>/fd


def _carry_on(_number: int, _frame: object) -> None:
    return
