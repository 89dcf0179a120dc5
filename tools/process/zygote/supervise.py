"""Work of the zygote after a fork: read the request, and run the command under the supervisor that fits it."""

from __future__ import annotations

import contextlib
import os
import socket
import sys

from tools.process.zygote import wire
from tools.process.zygote.supervisor import Supervisor

LINUX = sys.platform == "linux"


def supervise(control: socket.socket, streams: wire.Streams, phoenix: int) -> None:
    """A supervisor's whole life, after the zygote forked it; `phoenix` is the pid it works for."""
    os.setsid()
    body = _receive(control)
    if body is None:
        return
    request = wire.decode(body)
    if LINUX:
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
