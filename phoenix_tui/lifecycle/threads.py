"""Threads of the program, and modules loaded in one after the first frame."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from queue import Empty, SimpleQueue
from threading import Lock
from types import ModuleType
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
WAITS: Final = 1.0
"""Seconds that the end waits for work in threads: a file that is being written."""
NAME: Final = "phoenix-work"
DATABASE: Final = "phoenix-database"
"""Name of the threads of `engine/store/connection.py`."""
MOST: Final = min(32, (os.cpu_count() or 1) + 4)
_Work: TypeAlias = "tuple[Future[Any], Callable[[], Any]]"


class LoopThreads(ThreadPoolExecutor):
    """Threads of one loop, started as they are needed; the interpreter does not join them.

    A ThreadPoolExecutor by name only, as `set_default_executor` takes no other kind.
    """

    def __init__(self) -> None:
        super().__init__(MOST, NAME)
        self._tasks: SimpleQueue[_Work | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._guard = threading.Lock()
        self._own: list[threading.Thread] = []
        self._pending: set[Future[Any]] = set()
        self._over = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a thread call the function.

        Raises:
            RuntimeError: the loop has ended.
        """
        future: Future[T] = Future()
        with self._guard:
            if self._over:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._pending.add(future)
            self._tasks.put((future, lambda: fn(*args, **kwargs)))
            if not self._idle.acquire(blocking=False) and len(self._own) < MOST:
                thread = threading.Thread(target=self._serve, name=f"{NAME}-{len(self._own)}", daemon=True)
                self._own.append(thread)
                thread.start()
        future.add_done_callback(self._pending.discard)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the work under way end within `WAITS` seconds; the rest stays in its thread, or never begins."""
        with self._guard:
            self._over = True
            waiting = set(self._pending)
        if wait and not cancel_futures:
            futures.wait(waiting, WAITS)
        for future in waiting:
            future.cancel()
        for _ in self._own:
            self._tasks.put(None)

    def _serve(self) -> None:
        while True:
            try:
                task = self._tasks.get_nowait()
            except Empty:
                self._idle.release()
                task = self._tasks.get()
            if task is None:
                return
            future, work = task
            if future.set_running_or_notify_cancel():
                try:
                    result = work()
                except BaseException as error:  # noqa: BLE001 - whoever awaits it gets it
                    future.set_exception(error)
                else:
                    future.set_result(result)
            del task, future, work


def run_loop(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` with such threads."""
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(LoopThreads())
        return runner.run(work)


def leave_busy_threads(code: int) -> None:
    """End the process at once where a thread still works: as Python ends, a stream that it holds is a fatal error."""
    until = time.monotonic() + WAITS / 10
    for thread in threading.enumerate():
        if thread.name.startswith((NAME, DATABASE)):
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                for stream in (sys.stdout, sys.stderr):
                    with suppress(OSError, ValueError, AttributeError):
                        stream.flush()
                os._exit(code)


SELDOM: Final = 0.005
"""Seconds between two switches of threads while modules are loaded, Python's own value: with the half millisecond that
keys need later, a start takes 50 to 80 ms of processor time more.
"""
OUT: Final = 0.001
"""Seconds in which the thread that writes takes the first frame."""

_lock: Final = Lock()
_loaded: Final[dict[str, ModuleType]] = {}
"""Modules that were imported whole: one in `sys.modules` may still be half-way, in another thread."""


@asynccontextmanager
async def seldom_switched() -> AsyncGenerator[None]:
    """Switch threads rarely, once the first frame is out, until the modules loaded here are ready."""
    await asyncio.sleep(OUT)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SELDOM)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


async def load(name: str) -> ModuleType:
    """Import a module in a thread; a second request meanwhile waits. A loaded one is returned at once.

    Threads that import side by side get nothing done sooner, and pay for each switch.

    Raises:
        ImportError: there is none.
    """
    if name not in _loaded:
        _loaded[name] = await asyncio.to_thread(_import, name)
    return _loaded[name]


def _import(name: str) -> ModuleType:
    with _lock:
        return import_module(name)
