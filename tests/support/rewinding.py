"""A real engine whose one tool changes files, and everything behind going back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from engine.conversation import Conversation
from engine.engine import ConversationOptions, Engine
from engine.executor.session import Ports
from engine.machine.states import Idle
from engine.ports.files import CheckpointLimits
from engine.records import PermissionMode
from engine.rewind.rewind import Rewinding
from engine.rewind.snapshots.folders import CheckpointFolders
from engine.rewind.turn_recorder import TurnRecorder
from engine.store import Store, StorePaths, open_store
from tests.support.engine import MemoryRules, NoJobs, PlainImages, Providers, RandomIds
from tests.support.scripted_provider import Reply, Script, ScriptedCall, ScriptedProvider, Text
from tools.clock import SystemClock
from tools.contract import JsonObject, ToolClass, ToolContext, ToolOutput, ToolRequest, ToolSpec

Deed = Callable[[Path], object]


@dataclass
class ActionTool:
    """Does the next action to the working directory, as a command would."""

    actions: list[Deed] = field(default_factory=list[Deed])
    started: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event | None = None
    command: str = ""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("bash", "", {"type": "object"}, ToolClass.RUN)

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        return ToolRequest("an action", command=self.command)

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        self.started.set()
        if self.release is not None:
            await self.release.wait()
        self.actions.pop(0)(context.working_dir)
        return ToolOutput("done")


@dataclass
class EditTool:
    """Writes the next file by name, as a tool that edits would; `tool_class` may make it one that only reads."""

    edits: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    tool_class: ToolClass = ToolClass.EDIT

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("write_file", "", {"type": "object"}, self.tool_class)

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        return ToolRequest("an edit", (working_dir / self.edits[0][0],)) if self.edits else ToolRequest("nothing")

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        if self.edits:
            name, text = self.edits.pop(0)
            path = context.working_dir / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return ToolOutput("done")


@dataclass
class Scene:
    """Objects of a rewind test."""

    engine: Engine
    store: Store
    rewinding: Rewinding
    tool: ActionTool
    cwd: Path
    home: Path
    provider: ScriptedProvider
    editor: EditTool
    reader: EditTool

    async def conversation(self) -> Conversation:
        options = ConversationOptions(self.cwd, "scripted/main", permission_mode=PermissionMode.AUTO)
        return await self.engine.create(options)

    async def turn(self, conversation: Conversation, prompt: str, *actions: Deed) -> None:
        """One prompt after which the agent does these actions, one a call."""
        self.tool.actions += actions
        await conversation.say(prompt)
        state = await conversation.wait_idle()
        assert isinstance(state, Idle), state
        await self.rewinding.recorder.settle(conversation.id)


TOOLS = {"c": "bash", "e": "write_file", "r": "read_file"}
"""A letter for each tool of a scene: a command, an edit, a read."""


def replies(*turns: int | str) -> tuple[Reply, ...]:
    """Replies for turns with a number of commands each, or with the tools that letters name."""
    made: list[Reply] = []
    for calls in turns:
        letters = "c" * calls if isinstance(calls, int) else calls
        made += [Reply((ScriptedCall(TOOLS[letter]),)) for letter in letters]
        made.append(Reply((Text("Done."),)))
    return tuple(made)


@asynccontextmanager
async def scene(home: Path, *turns: int | str, limits: CheckpointLimits | None = None) -> AsyncGenerator[Scene]:
    """An engine whose model makes a number of calls in each turn, or those that letters name (`replies`)."""
    cwd = home / "project"
    cwd.mkdir(parents=True, exist_ok=True)
    store = await open_store(StorePaths.under(home / "data"))
    provider = ScriptedProvider({"main": Script(replies(*turns))})
    folders = CheckpointFolders(home / "data" / "checkpoints" / "contents.db", (home / "data",), limits)
    clock, ids, tool = SystemClock(), RandomIds(), ActionTool()
    editor, reader = EditTool(), EditTool(tool_class=ToolClass.READ)
    rewinding = Rewinding(folders, store.turn_log, TurnRecorder(folders, store.turn_log, clock, ids), clock, ids)
    ports = Ports(
        store=store,
        library=store.library,
        queue=store.queue,
        providers=Providers(provider),
        tools={"bash": tool, "write_file": editor, "read_file": reader},
        jobs=NoJobs(),
        images=PlainImages(),
        rules=MemoryRules(),
        clock=clock,
        ids=ids,
        rewinding=rewinding,
    )
    engine = Engine(ports)
    try:
        await engine.start()
        yield Scene(engine, store, rewinding, tool, cwd, home, provider, editor, reader)
    finally:
        await engine.close()


def tree(folder: Path) -> dict[str, tuple[str, int, bytes]]:
    """Content of a folder: kind, mode and content by path."""
    found: dict[str, tuple[str, int, bytes]] = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            state = path.lstat()
            if path.is_symlink():
                found[str(path.relative_to(folder))] = ("link", 0, os.fsencode(path.readlink()))
            elif path.is_dir():
                found[str(path.relative_to(folder))] = ("folder", state.st_mode & 0o7777, b"")
            else:
                found[str(path.relative_to(folder))] = ("file", state.st_mode & 0o7777, path.read_bytes())
    return found
