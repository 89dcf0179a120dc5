"""spawn_agents and spawn_task: how a model puts sub-agents to work (SPEC DEC-04)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from engine.agents.manager import (
    ResumeRequest,
    SubAgents,
    TaskRequest,
    read_background_request,
    read_spawn_request,
)
from engine.executor.session import Ports
from engine.ports.profiles import FREEDOM, Profile, ProfileError, Profiles
from engine.records import PermissionMode, RunPriority
from engine.updates import MOST_TASKS, PARALLEL, SEQUENTIAL
from tools.arguments import object_schema
from tools.clean import clean_line
from tools.contract import (
    JsonObject,
    PlainDisplay,
    Tool,
    ToolClass,
    ToolContext,
    ToolInputError,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)
from tools.wording import one_line, pluralize

KINDS: Final = "Kind of agent: general, explore, code, review, research, or own."
LONGEST_KIND: Final = 300
"""Characters of one kind of agent with its description."""
ROOM: Final = 16_000
"""Characters of all that come with a run."""
ANYWHERE: Final = Path("/")
"""Folder of a tool that no conversation has yet."""


class SpawnAgents:
    """Tool that starts several sub-agents; the call waits for all of them."""

    def __init__(self, starter: SubAgents, profiles: Profiles, cwd: Path = ANYWHERE) -> None:
        self._starter = starter
        self._profiles = profiles
        self._cwd = cwd

    def in_folder(self, cwd: Path) -> SpawnAgents:
        """The tool of a conversation that works there."""
        return SpawnAgents(self._starter, self._profiles, cwd)

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema and class."""
        task: JsonObject = {
            "type": "object",
            "properties": {
                "task": {"type": "string", "description": "What to do, with all it needs to know."},
                "priority": {"type": "string", "enum": list(RunPriority), "description": "Who starts first."},
                **_describe_limits(self._profiles, self._cwd),
            },
            "required": ["task"],
            "additionalProperties": False,
        }
        return ToolSpec(
            "spawn_agents",
            "Let sub-agents work on independent tasks, each with its own context, and wait for all their results. "
            "They share your working directory and cannot ask you anything. "
            f"{SEQUENTIAL}: one after the other, each knowing the results before it.",
            object_schema(
                {
                    "tasks": {"type": "array", "items": task, "minItems": 1, "maxItems": MOST_TASKS},
                    "strategy": {"type": "string", "enum": [PARALLEL, SEQUENTIAL]},
                },
                ["tasks"],
            ),
            ToolClass.SPAWN,
        )

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Show the tasks."""
        request = read_spawn_request(args)
        profiles = _resolve_profiles(self._profiles, request.tasks, working_dir)
        return _build_request(request.tasks, profiles, f"{SEQUENTIAL}, " if request.sequential else "")

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Start them; the result is theirs."""
        return ToolOutput(
            "", agents=await self._starter.spawn(context.conversation_id, context.call_id, read_spawn_request(args))
        )


class SpawnTask:
    """One sub-agent in the background, or a message to an earlier one."""

    def __init__(self, starter: SubAgents, profiles: Profiles, cwd: Path = ANYWHERE) -> None:
        self._starter = starter
        self._profiles = profiles
        self._cwd = cwd

    def in_folder(self, cwd: Path) -> SpawnTask:
        """The tool of a conversation that works there."""
        return SpawnTask(self._starter, self._profiles, cwd)

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema and class."""
        return ToolSpec(
            "spawn_task",
            "Let a sub-agent work in the background: this returns at once with its task id, and a message with its "
            "result comes later. With task_id and message an earlier one goes on where it left off.",
            object_schema({
                "task_description": {"type": "string", "description": "A few words that name the task."},
                "initial_prompt": {"type": "string", "description": "What to do, with all it needs to know."},
                "task_id": {"type": "string", "description": "An earlier task."},
                "message": {"type": "string", "description": "For an earlier task: how to go on."},
                **_describe_limits(self._profiles, self._cwd),
            }),
            ToolClass.SPAWN,
        )

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Show the task."""
        request = read_background_request(args)
        if isinstance(request, ResumeRequest):
            return ToolRequest(
                clean_line(f"{request.agent_id}: {request.message}"), preview=PlainDisplay(request.message)
            )
        return _build_request(
            (request,), _resolve_profiles(self._profiles, (request,), working_dir), "in the background, "
        )

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Start it and return."""
        request = read_background_request(args)
        if isinstance(request, ResumeRequest):
            agent_id = await self._starter.resume(context.conversation_id, request)
        else:
            agent_id = await self._starter.begin(context.conversation_id, context.call_id, request)
        return ToolOutput(f"{agent_id} started")


def _describe_limits(profiles: Profiles, cwd: Path) -> JsonObject:
    added = profiles.list_added(cwd)
    lines, room = list[str](), ROOM
    for profile in added:
        line = one_line(clean_line(f"{profile.name}: {profile.description}".rstrip(": ")), LONGEST_KIND)
        room -= len(line)
        if room < 0:
            lines.append(f"and {len(added) - len(lines):,} more without room for a name here")
            break
        lines.append(line)
    return {
        "profile": {"type": "string", "description": "\n".join((KINDS, *(["Also:"] if lines else []), *lines))},
        "max_turns": {"type": "integer", "description": "Model calls it may use; 0 or absent: its profile's number."},
        "timeout": {"type": "number", "description": "Seconds it may take; 0 or absent: its profile's number."},
    }


def _resolve_profiles(profiles: Profiles, tasks: Sequence[TaskRequest], working_dir: Path) -> list[Profile]:
    """The profile of each task, found before any question."""
    try:
        return [profiles.resolve(one.profile, working_dir) for one in tasks]
    except ProfileError as error:
        raise ToolInputError(error.sentence) from error


def _build_request(tasks: Sequence[TaskRequest], profiles: Sequence[Profile], how: str) -> ToolRequest:
    names = [clean_line(one.title or one.task) for one in tasks]
    noun = pluralize(len(tasks), "sub-agent")
    lines = [
        f"{place}. {one.profile or 'general'}{_describe_freedom(profile)}: {one.task}"
        for place, (one, profile) in enumerate(zip(tasks, profiles, strict=True), 1)
    ]
    # A project's profile is narrowed to its parent's mode when the sub-agent is made.
    modes = [one.permission_mode for one in profiles if one.permission_mode is not None and not one.project]
    return ToolRequest(
        f"{how}{noun}: {' · '.join(names)}",
        preview=PlainDisplay("\n\n".join(lines)),
        mode=max(modes, key=FREEDOM.__getitem__).value if modes else "",
        reads_only=all(one.permission_mode in READING_MODES for one in profiles),
    )


READING_MODES: Final = frozenset({PermissionMode.PLAN, PermissionMode.DENY})
"""Modes in which an agent changes nothing."""


def _describe_freedom(profile: Profile) -> str:
    """Mode and sandbox that a profile sets, in words."""
    narrows = " or narrower" if profile.project else ""
    mode = f"mode {profile.permission_mode.value}{narrows}" if profile.permission_mode is not None else ""
    sandbox = f"sandbox {profile.sandbox} or narrower" if profile.sandbox else ""
    words = ", ".join(filter(None, (mode, sandbox)))
    return f" ({words})" if words else ""


def all_tools(ports: Ports, starter: SubAgents | None, depth: int) -> dict[str, Tool]:
    """The standard tools, and those that spawn where sub-agents can be had and are wanted."""
    tools = dict(ports.tools)
    if starter is not None and ports.profiles is not None and depth:
        spawning = (SpawnAgents(starter, ports.profiles), SpawnTask(starter, ports.profiles))
        tools |= {tool.spec.name: tool for tool in spawning}
    return tools
