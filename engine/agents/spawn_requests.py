"""Requests of a model to sub-agents, read from the arguments of its calls; every mistake is a sentence for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from msgspec import Struct

from engine.records import RunPriority
from engine.updates import MOST_TASKS, PARALLEL, SEQUENTIAL
from tools.arguments import Arguments
from tools.contract import JsonObject, ToolInputError

MOST_TURNS: Final = 250
LONGEST: Final = 86_400.0
"""Seconds that a sub-agent may be given; a day."""
SHORTEST: Final = 1.0


class TaskRequest(Struct, frozen=True):
    """A task for a sub-agent; 0 means the profile's own limit."""

    task: str
    profile: str = ""
    max_turns: int = 0
    timeout: float = 0.0
    priority: RunPriority = RunPriority.NORMAL
    title: str = ""
    """Title, when the task itself is a longer prompt."""


class SpawnRequest(Struct, frozen=True):
    """A call of spawn_agents."""

    tasks: tuple[TaskRequest, ...]
    sequential: bool = False


class ResumeRequest(Struct, frozen=True):
    """A call of spawn_task that resumes an earlier sub-agent."""

    agent_id: str
    message: str


def spawn_request(args: JsonObject) -> SpawnRequest:
    """Read a call of spawn_agents.

    Raises:
        ToolInputError: the arguments are invalid.
    """
    fields = Arguments(args, ("tasks", "strategy"))
    strategy = fields.text("strategy", PARALLEL)
    if strategy not in {PARALLEL, SEQUENTIAL}:
        raise ToolInputError(f"strategy must be {PARALLEL} or {SEQUENTIAL}, not {strategy}.")
    tasks = args.get("tasks")
    if not isinstance(tasks, list) or not 1 <= len(tasks) <= MOST_TASKS:
        count = f"{len(tasks)}" if isinstance(tasks, list) else "none"
        raise ToolInputError(f"tasks must be a list of 1 to {MOST_TASKS} tasks; there are {count}.")
    return SpawnRequest(
        tuple(_task(one, f"tasks[{place}].") for place, one in enumerate(tasks)), strategy == SEQUENTIAL
    )


def background_request(args: JsonObject) -> TaskRequest | ResumeRequest:
    """Read a call of spawn_task: a new task, or a message to an earlier one.

    Raises:
        ToolInputError: the arguments are invalid.
    """
    known = ("task_description", "initial_prompt", "task_id", "message", "profile", "max_turns", "timeout")
    fields = Arguments(args, known)
    if args.get("task_id") or (args.get("message") and "task_description" not in args):  # empty when it fills a form
        agent_id, message = fields.text("task_id").strip(), fields.text("message").strip()
        if not agent_id or not message:
            raise ToolInputError("To go on with an earlier task give its task_id and a message, neither empty.")
        return ResumeRequest(agent_id, message)
    title, prompt = fields.text("task_description").strip(), fields.text("initial_prompt").strip()
    if not title or not prompt:
        raise ToolInputError("A new task needs task_description (a few words) and initial_prompt, neither empty.")
    return TaskRequest(prompt, *_limits(fields), title=title)


def _task(one: object, where: str) -> TaskRequest:
    if not isinstance(one, dict):
        raise ToolInputError(f'{where[:-1]} must be an object such as {{"task": "..."}}.')
    known: Sequence[str] = ("task", "profile", "max_turns", "timeout", "priority")
    fields = Arguments(cast("JsonObject", one), known, where)
    task = fields.text("task").strip()
    if not task:
        raise ToolInputError(f"{where}task is empty: say what the sub-agent is to do.")
    priority = fields.text("priority", RunPriority.NORMAL.value)
    if priority not in set(RunPriority):
        raise ToolInputError(f"{where}priority must be one of {', '.join(RunPriority)}, not {priority}.")
    return TaskRequest(task, *_limits(fields), RunPriority(priority))


def _limits(fields: Arguments) -> tuple[str, int, float]:
    """Profile, turns and seconds."""
    turns = fields.whole("max_turns", 0, 0, MOST_TURNS)
    seconds = fields.number("timeout", 0.0, 0.0, LONGEST)
    if 0.0 < seconds < SHORTEST:
        raise ToolInputError(f"timeout is in seconds and must be at least {SHORTEST:g}.")
    return fields.text("profile", "").strip(), turns, seconds
