"""One thread for work on folders, which no exit waits for: a network folder may never answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar, cast

T = TypeVar("T")
Job = Callable[[], object]
Ended = Callable[[object, BaseException | None], None]


class Worker:
    """Does jobs in order, on a daemon thread that begins with the first one.

    Not a ThreadPoolExecutor: the interpreter waits for the threads of those, however long they hang.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[tuple[Job, Ended] | None] = SimpleQueue()
        self._thread: Thread | None = None

    @property
    def began(self) -> bool:
        """True once a job was submitted."""
        return self._thread is not None

    async def run(self, job: Callable[[], T]) -> T:
        """Run `job` in the thread and return its result or raise its error; cancelling the caller does not stop it."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[object] = loop.create_future()
        answer.add_done_callback(_retrieve_exception)

        def end(result: object, error: BaseException | None) -> None:
            with suppress(RuntimeError):  # the loop may be gone by then, with all callers
                loop.call_soon_threadsafe(_settle, answer, result, error)

        if self._thread is None:
            self._thread = Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()
        self._jobs.put((job, end))
        return cast("T", await asyncio.shield(answer))

    def end(self) -> None:
        """Let the thread go when everything before this is done."""
        self._jobs.put(None)

    def _serve(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, ended = item
            try:
                result = job()
            except BaseException as error:  # noqa: BLE001 - it is raised where the job is waited for
                ended(None, error)
            else:
                ended(result, None)
            del item, job, ended  # the objects of a job must not stay until the next one


def _retrieve_exception(answer: asyncio.Future[object]) -> None:
    """Retrieve the exception of an abandoned job, so that asyncio does not report it."""
    if not answer.cancelled():
        answer.exception()


def _settle(answer: asyncio.Future[object], result: object, error: BaseException | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)
