"""Runs the hooks of files: which match, their programs below the supervisor, their replies, and their newest runs."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from uuid import uuid4

from msgspec import Struct, field
from msgspec.structs import replace

from engine.extensions.hooks.definitions import LONGEST_SUBJECT, Hook, HookSet, matches
from engine.extensions.hooks.output import hook_object, hook_text, verdict_of_program
from engine.ports.extensions import HookEvent, HookObserver, HookOutcome, HookReply, HookRequest, HookVerdict
from engine.records import ConversationRecord
from tools.clock import Clock
from tools.contract import UNCONFINED, Captured, Sandbox, SandboxedStartError
from tools.services import ProgramLimits, ProgramResult, ServiceCommand
from tools.shell_output import reason_words

if TYPE_CHECKING:
    from tools.process.service import SupervisedServices

MOST: Final = 20
LONGEST: Final = 16_384
"""Characters that are kept of each input and output."""


class HookRun(Struct, frozen=True):
    """One run of a hook."""

    at: float
    """Unix time of its end."""
    conversation_id: str
    reply: HookReply


class HookHistory(Struct, eq=False):
    """The last runs of this process, newest last."""

    _runs: deque[HookRun] = field(default_factory=lambda: deque[HookRun](maxlen=MOST))

    def add(self, run: HookRun) -> None:
        """Keep a run."""
        self._runs.append(run)

    @property
    def runs(self) -> tuple[HookRun, ...]:
        """All of them, newest first."""
        return tuple(reversed(self._runs))


log = logging.getLogger(__name__)

AT_ONCE: Final = 16
"""Hooks of one occasion that run at the same time."""
AGENTS: Final = "agent_transcript_path"
"""Field of the end of a sub-agent, whose own transcript it is; every other field is that of its conversation."""
OUTPUT: Final = 512 * 1024
"""Bytes kept of stdout, and as many of stderr."""
WAY_OUT: Final = "/sandbox changes it, and a hook in your own hooks.json runs outside"
CHANGED: Final = "its file, or one that it names, changed after you trusted it"


class HookSource(Protocol):
    """Reads hook files, and knows which of them the user trusts."""

    def current(self, record: ConversationRecord) -> HookSet:
        """Hooks of a conversation, from memory."""
        ...

    async def refresh(self, record: ConversationRecord) -> None:
        """Look at the files; never raises."""
        ...

    async def start_folder(self, record: ConversationRecord) -> Path:
        """Folder in which the user's hooks start."""
        ...

    async def holds(self, record: ConversationRecord, hook: Hook) -> bool:
        """True if a hook and the files it names are still those that the user trusted."""
        ...


class Transcripts(Struct, frozen=True):
    """Files with the messages of conversations, for hooks that read them."""

    path_of: Callable[[ConversationRecord], Awaitable[str]]
    """Returns the path of a conversation's file, written up to now; empty where there is none."""
    forget: Callable[[str], None]
    """Removes the file of a conversation that closes."""


class _Occasion(Struct, frozen=True):
    """A request, the input for its hooks, and who follows."""

    request: HookRequest
    given: bytes
    readable: tuple[Path, ...]
    """Folders of the transcripts, which a project's hook reads in its sandbox too."""
    observer: HookObserver
    room: asyncio.Semaphore


class FileHooks(Struct, eq=False):
    """Implements `engine.ports.extensions.HookRunner`."""

    source: HookSource
    services: SupervisedServices
    clock: Clock
    transcripts: Transcripts | None = None
    history: HookHistory = field(default_factory=HookHistory)
    _done: set[tuple[str, tuple[object, ...]]] = field(default_factory=set[tuple[str, tuple[object, ...]]])
    """Hooks with `once` that ran, by conversation."""
    _unawaited: dict[str, set[asyncio.Task[None]]] = field(default_factory=dict[str, set[asyncio.Task[None]]])

    def wants(self, record: ConversationRecord, event: HookEvent) -> bool:
        """True where there are hooks for an event."""
        return event in self.source.current(record).by_event

    async def prepare(self, record: ConversationRecord) -> None:
        """Look at the hook files."""
        await self.source.refresh(record)

    async def run(self, request: HookRequest, observer: HookObserver) -> Sequence[HookReply]:
        """Run all that match at the same time, and wait for those that are not async."""
        hooks = [hook for hook in self._of(request) if _applies(hook, request)]
        if not hooks:
            return ()
        occasion = await self._occasion(request, observer, AT_ONCE)
        awaited = [self._run(hook, occasion) for hook in hooks if not hook.is_async]
        for hook in hooks:
            if hook.is_async:
                work = self._run_unwatched(hook, occasion)
                running = self._unawaited.setdefault(request.record.id, set())
                task = asyncio.get_running_loop().create_task(work)
                running.add(task)
                task.add_done_callback(running.discard)
        return await _all(awaited, request.seconds)

    async def _occasion(self, request: HookRequest, observer: HookObserver, at_once: int) -> _Occasion:
        """The occasion with the input for its hooks, which may read the transcripts that it names."""
        path, agents = await self._transcripts_of(request.record)
        fields = request.fields | ({AGENTS: agents} if AGENTS in request.fields else {})
        given = hook_text(hook_object(replace(request, fields=fields), path))
        readable = tuple(Path(one).parent for one in (path, agents) if one)
        return _Occasion(request, given, readable, observer, asyncio.Semaphore(at_once))

    async def _transcripts_of(self, record: ConversationRecord) -> tuple[str, str]:
        """Paths of the transcript of a conversation, and of the sub-agent that it is of; empty where there is none."""
        if self.transcripts is None:
            return "", ""
        own = await self.transcripts.path_of(record)
        if record.agent is None:
            return own, ""
        return await self.transcripts.path_of(replace(record, id=record.agent.parent_id, agent=None)), own

    async def try_out(self, hook: Hook, request: HookRequest, observer: HookObserver) -> HookReply:
        """Run one hook with a sample of its input, matching or not."""
        return await self._run(hook, await self._occasion(request, observer, 1))

    def stop(self, conversation_id: str) -> None:
        """Stop the hooks of a conversation that nothing waits for."""
        for task in tuple(self._unawaited.get(conversation_id, ())):
            task.cancel()

    async def close(self, conversation_id: str) -> None:
        """Stop them, wait until they are gone, and remove what was kept for the conversation."""
        self.stop(conversation_id)
        await asyncio.gather(*self._unawaited.pop(conversation_id, ()), return_exceptions=True)
        self._done = {key for key in self._done if key[0] != conversation_id}
        if self.transcripts is not None:
            self.transcripts.forget(conversation_id)

    def _of(self, request: HookRequest) -> list[Hook]:
        """Hooks of the event; those that run once are taken once."""
        found: list[Hook] = []
        for hook in self.source.current(request.record).by_event.get(request.event, ()):
            key = (request.record.id, hook.identity)
            if hook.once and _applies(hook, request):
                if key in self._done:
                    continue
                self._done.add(key)
            found.append(hook)
        return found

    async def _run_unwatched(self, hook: Hook, occasion: _Occasion) -> None:
        await self._run(hook, occasion)

    async def _run(self, hook: Hook, occasion: _Occasion) -> HookReply:
        hook_id, request, observer = str(uuid4()), occasion.request, occasion.observer
        given = occasion.given
        async with occasion.room:
            observer.hook_started(hook_id, hook.event, hook.name, hook.status)
            reply: HookReply | None = None
            try:
                reply = replace(await self._read_reply(hook, occasion), id=hook_id, stdin=_start(given))
                self.history.add(HookRun(self.clock.now(), request.record.id, reply))
                return reply
            finally:
                observer.hook_ended(hook_id, reply)

    async def _read_reply(self, hook: Hook, occasion: _Occasion) -> HookReply:
        request = occasion.request
        if not hook.is_users and not await self.source.holds(request.record, hook):
            return _without_opinion(hook, CHANGED)
        limits = ProgramLimits(hook.seconds, OUTPUT)
        try:
            folder = await self.source.start_folder(request.record) if hook.is_users else request.record.cwd
            result = await self.services.run_program(_command(hook, occasion, folder), occasion.given, limits)
        except OSError as error:
            log.info("hook %s could not be started: %s", hook.name, error)
            refused = error.refused if isinstance(error, SandboxedStartError) else ""
            why = f"it could not be started: {error.strerror or error}{reason_words(refused, WAY_OUT)}"
            return _without_opinion(hook, why)
        return _reply(hook, result)


def _applies(hook: Hook, request: HookRequest) -> bool:
    """True if a hook is for this occasion; an occasion without a subject is for all."""
    subjects = [subject[:LONGEST_SUBJECT] for subject in request.subjects]
    if subjects and not any(matches(hook.matcher, subject) for subject in subjects):
        return False
    return not hook.condition or (request.rules is not None and request.rules.matches(hook.condition))


async def _all(work: Sequence[Coroutine[None, None, HookReply]], seconds: float | None) -> Sequence[HookReply]:
    """Replies in order. Cancelled, or after `seconds`, what runs is stopped and waited for."""
    tasks = [asyncio.get_running_loop().create_task(one) for one in work]
    try:
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for one in ended:
        if isinstance(one, Exception):
            log.error("a hook failed inside", exc_info=one)
    return [one for one in ended if isinstance(one, HookReply)]


def _command(hook: Hook, occasion: _Occasion, folder: Path) -> ServiceCommand:
    request, record = occasion.request, occasion.request.record
    argv = (hook.command, *hook.args) if hook.args is not None else (_shell(), "-c", hook.command)
    environment = {
        "CLAUDE_PROJECT_DIR": str(record.cwd),
        "CLAUDECODE": "1",
        "PHOENIX_PROJECT_DIR": str(record.cwd),
        "PHOENIX_SESSION_ID": record.id,
    }
    sandbox: Sandbox = UNCONFINED if hook.is_users else request.sandbox
    owner = "" if hook.is_users else record.id
    return ServiceCommand(argv, record.cwd, environment, sandbox, owner, occasion.readable, folder)


def _shell() -> str:
    return shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin") or "/bin/sh"


def _reply(hook: Hook, result: ProgramResult) -> HookReply:
    stdout, stderr = _decode_output(result.stdout), _decode_output(result.stderr)
    if result.timed_out:
        reply = _without_opinion(hook, f"it gave no answer within {hook.seconds:g} s")
    else:
        outcome, verdict = verdict_of_program(hook.event, result.exit_code, stdout, stderr)
        if verdict.warning:
            verdict = replace(verdict, warning=verdict.warning + reason_words(result.refused, WAY_OUT))
        reply = HookReply(hook.event, hook.name, hook.shown, outcome, verdict, goes_on=hook.goes_on)
    return replace(
        reply,
        seconds=result.seconds,
        exit_code=result.exit_code,
        stdout=stdout[:LONGEST],
        stderr=stderr[:LONGEST],
        is_users=hook.is_users,
    )


def _without_opinion(hook: Hook, why: str) -> HookReply:
    verdict = HookVerdict(warning=why)
    outcome = HookOutcome.TIMED_OUT
    return HookReply(hook.event, hook.name, hook.shown, outcome, verdict, is_users=hook.is_users, goes_on=hook.goes_on)


def _decode_output(captured: Captured) -> str:
    return (captured.head + captured.tail).decode("utf-8", "replace")


def _start(given: bytes) -> str:
    return given[: LONGEST * 4].decode("utf-8", "replace")[:LONGEST]
