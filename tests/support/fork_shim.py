"""A program that a test starts as a fork: `fork_shim.py SERVER MODULE WORD …` stands for `python -m MODULE WORD …`.

The server is one of `forks.py`. The fork has the streams, folder and variables of this process and ends when this
process does; this process ends as the fork ended. Only what Python has built in is loaded: the start takes hundredths
of a second.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # `signal` loads enum
import _socket
import marshal
import os
import sys


def _connect(kind: int, address: str) -> _socket.socket:
    made = _socket.socket(_socket.AF_UNIX, kind)
    made.connect(address)
    return made


def main(server: str, *words: str) -> None:
    """Order the fork and wait for its end."""
    given, streams = list(words), [0, 1, 2]
    if "--connect" in given:  # Phoenix asks the kernel which process connected: it must be the one that it started
        at = given.index("--connect")
        helper = _connect(_socket.SOCK_STREAM, given[at + 1])
        given[at : at + 2] = ["--socket", "3"]
        streams.append(helper.fileno())
    elif "--socket" in given:
        at = given.index("--socket") + 1
        streams.append(int(given[at]))
        given[at] = "3"
    folder = os.getcwd()  # noqa: PTH109 - pathlib takes longer than all the rest
    order = {"words": given, "cwd": folder, "environment": dict(os.environ), "screen": False, "bound": True}
    control = _connect(_socket.SOCK_SEQPACKET, f"\0{server}")
    descriptors = b"".join(one.to_bytes(4, sys.byteorder) for one in streams)
    control.sendmsg([marshal.dumps(order)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)])
    for one in streams:
        os.close(one)
    control.recv(16)
    data = control.recv(4)
    code = int.from_bytes(data, sys.byteorder, signed=True) if data else -_signal.SIGKILL
    if code < 0:
        if -code not in {_signal.SIGKILL, _signal.SIGSTOP}:
            _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


main(*sys.argv[1:])
