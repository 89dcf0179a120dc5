"""A real engine on a real store, with a scripted provider and tools whose pace the test sets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from engine.agents.builtin_profiles import BUILT_IN_PROFILES
from engine.conversation import Conversation
from engine.engine import ConversationOptions, Engine
from engine.executor.engine_settings import EngineSettings
from engine.executor.session import NO_SANDBOX, Ports, SandboxProbe
from engine.machine.messages import Usage
from engine.machine.states import State
from engine.memory.memory import Memory, NoteFolder
from engine.permissions.rules import KeptRule
from engine.ports import Provider, ProviderError
from engine.ports.extensions import ExtensionSource, HookRunner
from engine.ports.profiles import GENERAL, Profile, ProfileError
from engine.ports.services import EditChecker
from engine.records import PermissionMode
from engine.store import Store, StorePaths, open_store
from engine.updates import Update
from tests.support.scripted_provider import Reply, Script, ScriptedProvider
from tests.support.turns import turns
from tests.support.waiting import PATIENCE
from tools.bash import Caller, JobBoard
from tools.clock import Clock, SystemClock
from tools.contract import (
    Captured,
    Command,
    Finished,
    JobInfo,
    JsonObject,
    PlainDisplay,
    PreparedImage,
    ProcessesEnded,
    Report,
    Tool,
    ToolClass,
    ToolContext,
    ToolInputError,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)
from tools.fresh_ids import fresh_id

U = TypeVar("U")


class RandomIds:
    """UUID4."""

    @staticmethod
    def new() -> str:
        return fresh_id()


@dataclass
class Providers:
    """One scripted provider; prices a reply at one cent."""

    provider: Provider
    known: str = "scripted"

    def resolve(self, reference: str) -> tuple[Provider, str]:
        name, _, model = reference.partition("/")
        if name != self.known:
            raise ProviderError(f"There is no provider '{name}'.", kind="auth", retryable=False)
        return self.provider, model

    def price(self, reference: str, usage: Usage) -> float | None:
        return 0.01

    async def close(self) -> None:
        await self.provider.close()


@dataclass
class StubTool:
    """A tool with a prescribed behaviour: answer, wait, break or refuse its arguments."""

    name: str = "bash"
    tool_class: ToolClass = ToolClass.RUN
    calls: list[JsonObject] = field(default_factory=list)
    contexts: list[ToolContext] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event | None = None
    dying: asyncio.Event | None = None
    """Once stopped, it takes until this is set before all of it is dead."""
    breaks: bool = False
    stopped: int = 0
    images: tuple[PreparedImage, ...] = ()
    paths: tuple[Path, ...] = ()

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, "", {"type": "object"}, self.tool_class)

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        if "bad" in args:
            raise ToolInputError("'bad' is no argument")
        return ToolRequest(str(args.get("command", self.name)), self.paths)

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        self.calls.append(args)
        self.contexts.append(context)
        self.started.set()
        if self.breaks:
            raise RuntimeError("broken inside")
        try:
            if self.release is not None:
                await self.release.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            if self.dying is not None:
                await self.dying.wait()
            context.report(ProcessesEnded(3))
            raise
        return ToolOutput(f"ran {args.get('command', '')}", display=PlainDisplay("shown"), images=self.images)


class NoJobs:
    """No background jobs but those of a test's list."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.known: tuple[JobInfo, ...] = ()

    async def start(self, command: Command, conversation_id: str, title: str, report: Report | None = None) -> JobInfo:
        raise AssertionError("no background job is wanted here")

    async def run(self, command: Command, caller: Caller, report: Report | None = None) -> Finished:
        raise AssertionError("no command is wanted here")

    def jobs(self, conversation_id: str) -> tuple[JobInfo, ...]:
        return self.known

    def output(self, job_id: str) -> Captured:
        raise KeyError(job_id)

    def settle(self, job_id: str, note: str) -> None:
        raise KeyError(job_id)

    async def kill(self, job_id: str) -> JobInfo:
        raise KeyError(job_id)

    def background(self, conversation_id: str, call_id: str) -> None:
        return

    def terminal(self, conversation_id: str, call_id: str) -> None:
        return

    def watch(self, listener: Callable[[str], None]) -> Callable[[], None]:
        return lambda: None

    async def end_all(self, conversation_id: str) -> None:
        self.ended.append(conversation_id)


class MemoryRules:
    """Saved rules in memory."""

    def __init__(self) -> None:
        self.kept: list[KeptRule] = []

    def rules(self, folder: Path | None = None) -> tuple[KeptRule, ...]:
        return tuple(self.kept)

    def trouble(self) -> str:
        return ""

    def unreadable(self, folder: Path | None = None) -> str:
        return ""

    def add(self, rule: KeptRule) -> None:
        self.kept.append(rule)

    def remove(self, rule: KeptRule) -> None:
        self.kept = [one for one in self.kept if (one.text, one.project) != (rule.text, rule.project)]


class BuiltIn:
    """The built-in profiles."""

    def names(self, cwd: Path) -> Sequence[Profile]:
        return BUILT_IN_PROFILES

    def list_added(self, cwd: Path) -> tuple[Profile, ...]:
        """Return none."""
        return ()

    def resolve(self, name: str, cwd: Path) -> Profile:
        found = next((profile for profile in BUILT_IN_PROFILES if profile.name == (name or GENERAL)), None)
        if found is None:
            raise ProfileError(f"There is no profile '{name}'.")
        return found


class PlainImages:
    """Every image is one black pixel."""

    async def prepare(self, data: bytes) -> PreparedImage:
        return PreparedImage(data, "image/png", 1, 1, 1, 1, len(data))


@dataclass
class EngineHarness:
    """An engine with everything a test looks at."""

    engine: Engine
    provider: ScriptedProvider
    store: Store
    tool: StubTool
    rules: MemoryRules
    jobs: NoJobs
    cwd: Path
    updates: list[Update] = field(default_factory=list)

    async def conversation(self, mode: PermissionMode = PermissionMode.AUTO) -> Conversation:
        options = ConversationOptions(self.cwd, "scripted/main", permission_mode=mode)
        conversation = await self.engine.create(options)
        await conversation.subscribe(self.updates.append)
        return conversation

    async def start(self, text: str, mode: PermissionMode = PermissionMode.AUTO) -> Conversation:
        """A new conversation to which `text` was said."""
        conversation = await self.conversation(mode)
        await conversation.say(text)
        return conversation

    async def run(self, text: str, mode: PermissionMode = PermissionMode.AUTO) -> Conversation:
        """A new conversation that is idle again after `text`."""
        conversation = await self.start(text, mode)
        await conversation.wait_idle()
        return conversation

    def seen(self, kind: type[U]) -> list[U]:
        return [update for update in self.updates if isinstance(update, kind)]


@asynccontextmanager
async def engine_harness(
    home: Path,
    *replies: Reply,
    tool: StubTool | None = None,
    settings: EngineSettings | None = None,
    provider: ScriptedProvider | None = None,
    providers: Any = None,
    board: JobBoard | None = None,
    tools: Sequence[Tool] = (),
    memory: bool = False,
    clock: Clock | None = None,
    extensions: Sequence[ExtensionSource] = (),
    hooks: Sequence[HookRunner] = (),
    probe: SandboxProbe | None = None,
    edit_checks: EditChecker | None = None,
) -> AsyncIterator[EngineHarness]:
    """An engine whose model answers with `replies`, in order, or as `provider` does; `board` has background jobs.

    `tools` stand beside `tool`; with `memory` there are notes in the folder `memory`, and the tools for them.

    `providers` stand in the place of all that is scripted.
    """
    store = await open_store(StorePaths.under(home))
    provider = provider or ScriptedProvider({"main": Script(tuple(replies))})
    tool, rules, jobs = tool or StubTool(), MemoryRules(), NoJobs()
    ports = Ports(
        store,
        store.library,
        store.queue,
        providers or Providers(provider),
        {one.spec.name: one for one in (tool, *tools)},
        board or jobs,
        PlainImages(),
        rules,
        clock or SystemClock(),
        RandomIds(),
        memory=Memory(NoteFolder(home / "memory"), store.notes) if memory else None,
        agents=store.agents,
        tasks=store.tasks,
        statistics=store.statistics,
        profiles=BuiltIn(),
        runs=store.runs,
        extensions=tuple(extensions),
        hooks=tuple(hooks),
        probe=probe or NO_SANDBOX,
        edit_checks=edit_checks,
    )
    engine = Engine(ports, settings)
    cwd = home / "project"
    cwd.mkdir(exist_ok=True)
    try:
        await engine.start()
        yield EngineHarness(engine, provider, store, tool, rules, jobs, cwd)
    finally:
        await engine.close()


async def run_turn(conversation: Conversation, text: str) -> State:
    """Say `text` and wait until nothing runs; returns the state then."""
    await conversation.say(text)
    return await conversation.wait_idle()


async def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until `condition` holds, looking again at every turn of the loop."""
    async with asyncio.timeout(seconds):
        while not condition():
            await turns().next()
