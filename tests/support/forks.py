"""Processes of the program, forked from one that has loaded it: real processes, streams and terminals without the
half second of a start.

A worker of pytest has a server for the program, and one for the MCP helper and the MCP server of the tests, which takes
orders from processes as well (`fork_shim.py`). Each begins with its first order. `python -m MODULE` runs in the fork
from its first line on; only what Python itself reads as it starts is that of the server, so `is_forkable` sends runs
with such variables to a new interpreter.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import marshal
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
from asyncio import base_subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fcntl import ioctl
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final, NoReturn

import ptyprocess

ROOT: Final = Path(__file__).parents[2]
READ_AT_START: Final = ("PYTHON", "LANG", "LC_", "TZ", "TEXTUAL", "ESCDELAY", "MALLOC", "LD_")
"""Beginnings of variables that Python, its libraries or Textual read once."""
SAME: Final = {"PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}
"""Variables that the server was started with."""
SCREEN: Final = {"TEXTUAL_FPS": "500", "ESCDELAY": "40"}
"""Set by the program for a screen, before it loads Textual (`phoenix_tui/__main__.py`)."""
MOST: Final = 64 * 1024
"""Bytes of an order."""
HELPER: Final = "tools.mcp_host"
SHIM: Final = str(ROOT / "tests" / "support" / "fork_shim.py")
APART: Final = (HELPER, "tools.process.proxy", "phoenix_tui.terminal.serving")
"""Packages of processes that the program starts beside itself."""


def is_forkable(environment: Mapping[str, str], words: Sequence[str]) -> bool:
    """True for a run that the server can become."""
    read = {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}
    return read == SAME and len(marshal.dumps([dict(environment), list(words)])) < MOST - 1024


class Fork:
    """One process of the server, with the methods of `subprocess.Popen` that asyncio uses."""

    def __init__(self, pid: int, status: socket.socket) -> None:
        self.pid = pid
        self.status = status
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None

    def poll(self, seconds: float | None = 0) -> int | None:
        """Exit code, minus the number of the signal that ended it; None for one that lives after so many seconds."""
        if self.returncode is None and select.select([self.status], [], [], seconds)[0]:
            data = self.status.recv(4)
            self.status.close()
            self.returncode = struct.unpack("i", data)[0] if data else -signal.SIGKILL
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Signal it while it lives."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Transport(base_subprocess.BaseSubprocessTransport):
    """Pipes of a fork, as those of a process of asyncio."""

    _proc: Any

    def __init__(self, order: Mapping[str, Any], stdin: int, waiter: asyncio.Future[Any], limit: int) -> None:
        loop = asyncio.get_running_loop()
        self.order = order
        self.protocol = asyncio.subprocess.SubprocessStreamProtocol(limit, loop)
        super().__init__(loop, self.protocol, [], False, stdin, -1, -1, 0, waiter)

    def _start(self, args: Any, shell: Any, stdin: Any, stdout: Any, stderr: Any, bufsize: int, **kwargs: Any) -> None:
        given = os.pipe() if stdin == subprocess.PIPE else (os.open(os.devnull, os.O_RDONLY), -1)
        out, err = os.pipe(), os.pipe()
        self._proc = fork = _server().fork(self.order, (given[0], out[1], err[1]))
        _close_all(given[0], out[1], err[1])
        fork.stdin = None if given[1] < 0 else os.fdopen(given[1], "wb", buffering=0)
        fork.stdout, fork.stderr = os.fdopen(out[0], "rb", buffering=0), os.fdopen(err[0], "rb", buffering=0)
        self._loop.add_reader(fork.status, self._end)

    def _end(self) -> None:
        self._loop.remove_reader(self._proc.status)
        self._process_exited(self._proc.poll())


async def start_fork(
    words: Sequence[str], cwd: Path, environment: Mapping[str, str], *, stdin: int, limit: int
) -> asyncio.subprocess.Process:
    """`python -m WORDS` with pipes."""
    waiter = asyncio.get_running_loop().create_future()
    order = {"words": list(words), "cwd": str(cwd), "environment": dict(environment), "screen": False}
    transport = _Transport(order, stdin, waiter, limit)
    await waiter
    return asyncio.subprocess.Process(transport, transport.protocol, asyncio.get_running_loop())


def fork_program(words: Sequence[str], cwd: Path, environment: Mapping[str, str], streams: Sequence[int]) -> Fork:
    """`python -m WORDS` with these descriptors as its streams."""
    order = {"words": list(words), "cwd": str(cwd), "environment": dict(environment), "screen": False}
    return _server().fork(order, streams)


class PtyFork(ptyprocess.PtyProcess):  # type: ignore[misc] # it has no types
    """A fork in a pseudo-terminal of its own."""

    exitstatus: int | None
    signalstatus: int | None

    def __init__(self, fork: Fork, descriptor: int) -> None:
        super().__init__(fork.pid, descriptor)
        self.fork = fork

    def isalive(self) -> bool:
        """True while it lives; keeps its exit status."""
        return self._keep(self.fork.poll())

    def wait(self) -> int | None:
        """Wait for its end."""
        self._keep(self.fork.poll(None))
        return self.exitstatus

    def _keep(self, code: int | None) -> bool:
        if code is not None:
            self.exitstatus, self.signalstatus = (code, None) if code >= 0 else (None, -code)
            self.terminated = True
        return code is None


def start_in_pty(
    words: Sequence[str], cwd: Path, environment: Mapping[str, str], dimensions: tuple[int, int], errors: Path | None
) -> PtyFork:
    """`python -m WORDS` in a new terminal of so many rows and columns, its stderr there or in a file."""
    ours, theirs = os.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *dimensions, 0, 0))
    written = theirs if errors is None else os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    order = {"words": list(words), "cwd": str(cwd), "environment": dict(environment), "screen": True}
    try:
        return PtyFork(_server().fork(order, (theirs, theirs, written)), ours)
    finally:
        _close_all(*{theirs, written})


class _Server:
    """A process that forks, seen from pytest; it ends with its stdin."""

    def __init__(self, *words: str) -> None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind("")  # an abstract address that the kernel chooses: no file is left of it
        self.address = listener.getsockname()[1:].decode()
        listener.listen(64)
        self.process: subprocess.Popen[bytes] | None = None
        threading.Thread(target=self._start, args=(listener, words), daemon=True).start()

    def _start(self, listener: socket.socket, words: Sequence[str]) -> None:
        """Start the process once something connects."""
        select.select([listener], [], [])
        number = listener.fileno()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forks", str(number), *words],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], **SAME, **SCREEN},
            stdin=subprocess.PIPE,
            pass_fds=(number,),
        )
        listener.close()

    def _connect(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        made.connect(f"\0{self.address}")
        return made

    def fork(self, order: Mapping[str, Any], streams: Sequence[int]) -> Fork:
        """Become this program in a new process."""
        status = self._connect()
        socket.send_fds(status, [marshal.dumps(dict(order))], streams)
        return Fork(int(status.recv(16)), status)

    def wait(self) -> None:
        """Return once it has loaded all: the time limits of a test are not for that."""
        with self._connect() as asking:
            asking.shutdown(socket.SHUT_WR)
            asking.recv(1)


@cache
def _server() -> _Server:
    return _Server("program", _mcp_server().address)


@cache
def _mcp_server() -> _Server:
    return _Server("mcp")


@cache
def load_helper() -> None:
    """Wait until forks of the MCP helper cost nothing but their start."""
    _mcp_server().wait()


def shim_command(module: str, server: str = "") -> tuple[str, ...]:
    """A command as `python -m MODULE`, of the MCP helper or a module that imports its SDK, as a fork."""
    return (sys.executable, "-I", "-S", SHIM, server or _mcp_server().address, module)


def _load_program(mcp_server: str) -> None:
    import_module("phoenix_tui.lifecycle.launch").leave_out_palette()
    for package in ("tools", "engine", "phoenix_tui"):
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            if not module.name.startswith(APART) and not module.name.endswith(".__main__"):
                import_module(module.name)
    fork_helpers(mcp_server)


def fork_helpers(mcp_server: str = "", *, anew: bool = False) -> None:
    """Let the engine of this process start its MCP helper as a fork, or with `anew` as a new interpreter again."""

    def command(address: Path, spill: Path) -> tuple[str, ...]:
        return (*shim_command(HELPER, mcp_server), "--connect", str(address), "--spill", str(spill))

    link = import_module("tools.mcp_host.link")
    engine = import_module("engine.extensions.mcp.helper_process")
    vars(engine)["connecting_command"] = link.connecting_command if anew else command


def _load_mcp() -> None:
    for module in pkgutil.iter_modules(import_module(HELPER).__path__, f"{HELPER}."):
        if not module.name.endswith(".__main__"):
            import_module(module.name)
    import_module("tests.support.mcp_kinds")


def _serve(listener: socket.socket) -> None:
    """Fork at each order until pytest ends; returns in a fork alone."""
    gc.freeze()
    woken = os.pipe()
    for descriptor in woken:
        os.set_blocking(descriptor, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken[1], warn_on_full_buffer=False)
    running: dict[int, socket.socket] = {}
    bound: dict[socket.socket, int] = {}
    while True:
        watched: list[Any] = [0, listener, woken[0], *bound]
        ready, _, _ = select.select(watched, [], [])
        if 0 in ready:
            os._exit(0)
        if woken[0] in ready:
            os.read(woken[0], 4096)
            _report_ends(running, bound)
        for status in bound.keys() & ready:
            os.kill(bound.pop(status), signal.SIGKILL)
        if listener not in ready:
            continue
        status, _ = listener.accept()
        data, descriptors, *_ = socket.recv_fds(status, MOST, 4)
        if not data:
            status.close()
            continue
        order = marshal.loads(data)
        if not (pid := os.fork()):
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _close_all(*woken, *(one.detach() for one in (listener, status, *running.values())))
            _become(order, descriptors)
        _close_all(*descriptors)
        running[pid] = status
        if order.get("bound"):
            bound[status] = pid
        status.send(str(pid).encode())


def _report_ends(running: dict[int, socket.socket], bound: dict[socket.socket, int]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with running.pop(pid) as told, suppress(OSError):  # the one that ordered it may be gone
            bound.pop(told, None)
            told.send(struct.pack("i", os.waitstatus_to_exitcode(status)))


def _become(order: Mapping[str, Any], streams: Sequence[int]) -> NoReturn:
    """Run the module of an order, and leave as a program of its own does."""
    if order["screen"] or order.get("bound"):
        os.setsid()
    if order["screen"]:
        ioctl(streams[0], termios.TIOCSCTTY, 0)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    _close_all(*(set(streams) - set(range(len(streams)))))
    sys.stdin = os.fdopen(0, "r", encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    module, *words = order["words"]
    sys.argv = [module, *words]
    sys.path.insert(0, order["cwd"])
    code: str | int | None = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as error:
        code = error.code or 0
    if isinstance(code, int):
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> NoReturn:
    """End as Python does, but for its last step, which takes all that was loaded apart."""
    threading._shutdown()  # type: ignore[attr-defined] # Python calls it as it ends
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def _close_all(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


if __name__ == "__main__":
    _, number, loaded, *addresses = sys.argv
    if loaded == "program":
        _load_program(*addresses)
    else:
        _load_mcp()
    _serve(socket.socket(fileno=int(number)))
