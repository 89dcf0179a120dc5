"""One language server while it is used: its start, its checks, its restarts, its end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from tools.clean import clean_line
from tools.contract import Captured, Sandbox, SandboxMode
from tools.displays import EditCheck
from tools.lsp.client import ENDED, FrameChannel, FrameError, LanguageClient, OpenDocument, RequestError, StalledError
from tools.lsp.definitions import PLAIN_TEXT, LanguageServer
from tools.lsp.problems import (
    EditedText,
    LanguageServerState,
    ServerProblem,
    decode_end,
    last_words,
    new_problems,
    report_of,
    stamp_of,
    start_failure,
)
from tools.services import ServiceCommand
from tools.shell_output import reason_words

if TYPE_CHECKING:
    from tools.process.service import DuplexService


MOST_STARTS: Final = 3
IN_SECONDS: Final = 300.0
"""Starts within this time; a further one is refused until the user asks for it."""
IDLE: Final = 600.0
"""Seconds without a check after which a server ends."""
SHUTDOWN: Final = 1.0
"""Seconds for the answer to `shutdown`."""
END_GRACE: Final = 1.0
NOTHING: Final = Captured(b"")
WAY_OUT: Final = "/sandbox changes it"
STALLED: Final = "it does not read what it is sent"


class ProgramStarter(Protocol):
    """Starts services (`tools.process.service.SupervisedServices`)."""

    async def open(self, command: ServiceCommand) -> DuplexService:
        """Start one. Raises OSError."""
        ...


class StartPlan(Struct, frozen=True):
    """Program, limits and root of a server."""

    server: LanguageServer
    argv: tuple[str, ...]
    root: Path
    sandbox: Sandbox
    environment: Mapping[str, str]


class CheckFailed(Exception):
    """Raised when a server can say nothing about an edit; the text is a clause."""


class RunningLanguageServer:
    """Checks edits one after another; a check goes on when its caller stops waiting."""

    def __init__(
        self, plan: StartPlan, programs: ProgramStarter, on_late: Callable[[str, EditCheck], None], idle: float = IDLE
    ) -> None:
        self.plan = plan
        self.state, self.text = LanguageServerState.WAITING, ""
        self.is_slow = False
        """True where it did not answer in time last."""
        self._programs, self._on_late, self._idle = programs, on_late, idle
        self._client: LanguageClient | None = None
        self._program: DuplexService | None = None
        self._channel: FrameChannel | None = None
        self._failing: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._starts: deque[float] = deque(maxlen=MOST_STARTS)
        self._turn = asyncio.Lock()
        self._known: dict[Path, _Known] = {}
        self._idling: asyncio.TimerHandle | None = None
        self._background: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        """Name of the server."""
        return self.plan.server.name

    @property
    def pid(self) -> int:
        """Process id; 0 while it does not run."""
        return self._program.pid if self._program is not None else 0

    @property
    def log(self) -> tuple[str, ...]:
        """Newest lines of its log and of its stderr."""
        lines = list(self._client.log) if self._client is not None else []
        if self._program is not None:
            lines += [clean_line(row) for row in decode_end(self._program.stderr).splitlines()[-20:]]
        return tuple(lines)

    def forgive(self) -> None:
        """Forget earlier starts: the user asks for another."""
        self._starts.clear()
        if self.state is LanguageServerState.FAILED:
            self.state, self.text = LanguageServerState.WAITING, ""

    async def ready(self) -> LanguageClient:
        """The client of the running server, started where it does not run.

        Raises:
            CheckFailed: it cannot be started, or keeps ending.
        """
        if self._client is None:
            if self._starting is None or self._starting.done():
                self._starting = asyncio.create_task(self._start())
            await asyncio.shield(self._starting)
        if self._client is None:
            raise CheckFailed(self.text or "it has ended")
        return self._client

    async def check(self, edit: EditedText) -> EditCheck:
        """Find the new problems of an edit; the time is limited by the definition alone.

        Raises:
            CheckFailed: the server ended, refuses, or has no answer in time.
        """
        self._postpone_end()
        client: LanguageClient | None = None
        try:
            async with asyncio.timeout(self.plan.server.timeout):
                async with self._turn:
                    client = await self.ready()
                    return await self._check(client, edit)
        except TimeoutError as error:
            await self._fail(f"it gave no answer in {self.plan.server.timeout:g} s")
            raise CheckFailed(self.text) from error
        except StalledError as error:
            await self._fail(STALLED)
            raise CheckFailed(self.text) from error
        except RequestError as error:
            if client is None or not client.ended:
                raise CheckFailed(str(error)) from error
            await self._fail(ENDED)
            raise CheckFailed(self.text) from error

    async def _check(self, client: LanguageClient, edit: EditedText) -> EditCheck:
        """The new problems; those that were there before are asked for where they are not known."""
        self._refresh(client, edit.path)
        language = self.plan.server.language_of(edit.path.name) or PLAIN_TEXT
        known = self._known.get(edit.path)
        if known is None or known.text != edit.before:
            before: tuple[ServerProblem, ...] = ()
            if not edit.created:
                before = await client.problems(client.set_text(edit.path, language, edit.before))
            self._known[edit.path] = known = _Known(edit.before, before)
        document = client.set_text(edit.path, language, edit.after)
        client.notify_saved(document, created=edit.created)
        after = await client.problems(document)
        if len(self._known) > MOST_KNOWN:
            self._known.pop(next(iter(self._known)))
        self._known[edit.path] = _Known(edit.after, after, edit.shown, edit.conversation_id, stamp_of(edit.path))
        found = new_problems(known.problems, after, edit.before, edit.after)
        return report_of(self.name, edit.shown, found, edit.after, client.encoding)

    def _refresh(self, client: LanguageClient, path: Path) -> None:
        """Close documents that another program has changed: the server reads them from the disk again."""
        for document in client.open_documents:
            known = self._known.get(document.path)
            if document.path != path and (known is None or known.stamp != stamp_of(document.path)):
                client.notify_saved(document, created=False)
                client.close_document(document)
                self._known.pop(document.path, None)

    def _take_pushed(self, document: OpenDocument) -> None:
        """Take problems that come without a check, such as those of a compiler that runs behind the server."""
        known = self._known.get(document.path)
        if self._turn.locked() or known is None or known.text != document.text or self._client is None:
            return
        found = new_problems(known.problems, document.problems, known.text, document.text)
        self._known[document.path] = _Known(
            known.text, document.problems, known.shown, known.conversation_id, known.stamp
        )
        check = report_of(self.name, known.shown, found, known.text, self._client.encoding)
        if check.errors and known.conversation_id:
            self._on_late(known.conversation_id, check)

    # Its life.

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        if len(self._starts) == MOST_STARTS and loop.time() - self._starts[0] < IN_SECONDS:
            last = f": {self.text}" if self.text else ""
            self.state = LanguageServerState.FAILED
            if "/lsp" not in self.text:
                self.text = f"it ended {MOST_STARTS} times, so it is not started again until /lsp says so{last}"
            return
        self._starts.append(loop.time())
        self.state, self.text = LanguageServerState.STARTING, ""
        plan = self.plan
        command = ServiceCommand(plan.argv, plan.root, environment=plan.environment, sandbox=plan.sandbox)
        try:
            self._program = await self._programs.open(command)
        except OSError as error:
            self.state, self.text = (
                LanguageServerState.FAILED,
                start_failure(error, plan.argv[0], is_confined=plan.sandbox.mode is not SandboxMode.OFF),
            )
            return
        self._channel = FrameChannel(self._program.stdout, self._program.stdin)
        client = LanguageClient(self._channel, plan.server, plan.root)
        client.on_push = self._take_pushed
        self._listening = asyncio.create_task(self._listen(client, self._program))
        try:
            async with asyncio.timeout(plan.server.timeout):
                await client.initialize()
        except TimeoutError:
            await self._fail(f"it did not start in {plan.server.timeout:g} s")
        except RequestError as error:
            await self._fail(str(error))
        except StalledError:
            await self._fail(STALLED)
        else:
            self._client = client
            self.state = LanguageServerState.READY

    async def _listen(self, client: LanguageClient, program: DuplexService) -> None:
        """Read until the end of the server, then end its tree."""
        try:
            await client.listen()
            why = ENDED
        except FrameError as error:
            why = f"it sent {error}"
        except StalledError:
            why = STALLED
        if self._program is program:
            await self._fail(why)

    async def _fail(self, why: str) -> None:
        """End the program, which is of no more use; whoever comes second waits for the first."""
        if self._program is not None:
            self.state = LanguageServerState.FAILED
            self._failing = asyncio.create_task(self._explain(why, self._release()))
        if self._failing is not None:
            await asyncio.shield(self._failing)

    async def _explain(self, why: str, program: DuplexService | None) -> None:
        stderr = (await program.end(0)).stderr if program is not None else NOTHING
        words, reason = last_words(stderr), reason_words(stderr.refused, WAY_OUT)
        self.text = f"{why}: {words}{reason}" if words else why + reason

    def _release(self) -> DuplexService | None:
        """The program, to be ended by the caller; nothing is known of its files any more."""
        program, channel = self._program, self._channel
        self._program = self._client = self._channel = None
        self._known.clear()
        if channel is not None:
            channel.close()
        return program

    def _postpone_end(self) -> None:
        if self._idling is not None:
            self._idling.cancel()
        self._idling = asyncio.get_running_loop().call_later(self._idle, self._end_idle)

    def _end_idle(self) -> None:
        if self._turn.locked():
            self._postpone_end()
            return
        task = asyncio.create_task(self.end())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def end(self, grace: float = END_GRACE) -> None:
        """Tell the server to end, then kill its whole tree."""
        if self._idling is not None:
            self._idling.cancel()
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
            await asyncio.wait({self._starting})
        client, channel = self._client, self._channel
        self._channel = None  # closed below, after the goodbye
        program = self._release()
        self.state, self.text = LanguageServerState.WAITING, ""
        if client is not None and grace:
            try:
                async with asyncio.timeout(SHUTDOWN):
                    await client.request("shutdown", None)
                client.notify("exit", None)
            except (TimeoutError, RequestError, StalledError):
                pass  # its input is closed next
        if channel is not None:
            channel.close()
        if program is not None:
            await program.end(grace)
        if self._failing is not None:
            await asyncio.shield(self._failing)
        if self._program is None and self._starting is not None and self._starting.done():
            self.state, self.text = LanguageServerState.WAITING, ""  # else a check has started it again meanwhile


MOST_KNOWN: Final = 32
"""Files of a server whose problems are kept."""


class _Known(Struct, frozen=True):
    """Problems of a file as they were told last."""

    text: str
    problems: tuple[ServerProblem, ...]
    shown: str = ""
    conversation_id: str = ""
    stamp: tuple[int, int] = (0, 0)
