"""`phoenix -p`: one run without a screen, from prompt to exit code (CONTRACT 2 and 3)."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Generator
from dataclasses import dataclass, field
from time import monotonic

from engine.conversation import Conversation
from engine.executor.requests import Answer, Choice, Receipt, Refused, RunCaps
from engine.updates import Asked, Question, RunEnded, Update
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.outcome import Outcome
from phoenix_tui.cli.reporters import Reporter
from tools.contract import ImageRejected

NOBODY_ASKED = "nobody is there to ask; run with --permission-mode accept-edits or auto"
STOPPING = 2.0
"""Seconds a stopped run gets to end properly."""
SIGNALS = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED, signal.SIGHUP: Exit.TERMINATED}


@dataclass(slots=True)
class HeadlessRun:
    """One message and everything up to the end of its run."""

    conversation: Conversation
    reporter: Reporter
    outcome: Outcome
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _answers: set[asyncio.Task[Receipt]] = field(default_factory=set["asyncio.Task[Receipt]"])

    async def perform(self, prompt: str, images: list[bytes], caps: RunCaps) -> Exit:
        """Send `prompt`, follow the run, say the result.

        Raises:
            CommandError: an image is unusable or the conversation takes no message; nothing was sent.
            BrokenPipeError: nobody reads stdout any more; the run is stopped.
        """
        try:
            image_ids = [(await self.conversation.attach(image)).id for image in images]
        except ImageRejected as error:
            raise CommandError(str(error)) from error
        started = monotonic()
        with self._signals():
            self.reporter.begin()
            unsubscribe = await self.conversation.subscribe(self._follow)
            try:
                answer = await self.conversation.say(prompt, image_ids, caps)
                if isinstance(answer, Refused):
                    raise CommandError(answer.reason, Exit.FAILED)
                await self._over.wait()
                self.outcome.settle(await self.conversation.wait_idle())
            finally:
                unsubscribe()
                await self._stop()
        self.outcome.duration_ms = round((monotonic() - started) * 1000)
        self.reporter.end(self.outcome)
        return self.outcome.exit_code

    def _follow(self, update: Update) -> None:
        self.outcome.follow(update)
        match update:
            case Asked(question) if question is not None:
                self._deny(question)
            case RunEnded():
                self._over.set()
            case _:
                pass  # the reporter has it
        try:
            self.reporter.follow(update)
        except BrokenPipeError:
            self._interrupt(Exit.FAILED)

    def _deny(self, question: Question) -> None:
        answer = self.conversation.answer(question.call.id, Answer(Choice.DENY, reason=NOBODY_ASKED))
        task = asyncio.ensure_future(answer)
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    @contextlib.contextmanager
    def _signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        for number, code in SIGNALS.items():
            loop.add_signal_handler(number, self._interrupt, code)
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def _interrupt(self, code: Exit) -> None:
        if self.outcome.stopped_by is None:
            self.outcome.stopped_by = code
        self.conversation.cancel()
        asyncio.get_running_loop().call_later(STOPPING, self._over.set)

    async def _stop(self) -> None:
        """Leave nothing running, whatever went wrong here."""
        if self._over.is_set():
            return
        self.conversation.cancel()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.conversation.wait_idle(), STOPPING)
