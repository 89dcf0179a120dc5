"""All scenes: the content of the engine, the keys, and the names of the screens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from tests.snapshots import scenes_agents, scenes_list, scenes_rest, scenes_tabs, scenes_talk, scenes_writing
from tests.snapshots.booth import Booth

Scene: TypeAlias = Callable[[Booth], Awaitable[None]]
SCENES: Final[dict[str, Scene]] = {
    "welcome": scenes_talk.welcome,
    "new": scenes_talk.working,
    **{name: made(name) for name, made in scenes_talk.ONES.items()},
    "interrupted": scenes_talk.interrupted,
    "blocks": scenes_talk.blocks,
    "plain": scenes_talk.plain,
    "titles": scenes_talk.titled,
    "conversations": scenes_list.conversations,
    "peek": scenes_list.peek,
    "no-conversations": scenes_list.no_conversations,
    "panes": scenes_list.panes,
    "approvals": scenes_list.approvals,
    "read-only": scenes_list.read_only,
    "rewind": scenes_list.rewind,
    "search": scenes_list.search,
    "find": scenes_list.find,
    "context": scenes_list.context,
    "queue": scenes_writing.queue,
    "writing": scenes_writing.writing,
    "pasting": scenes_writing.pasting,
    "pictures": scenes_writing.pictures,
    "sheets": scenes_rest.sheets,
    "colours": scenes_rest.colours,
    "profiles": scenes_rest.profiles,
    "memory": scenes_rest.memory,
    "trust": scenes_rest.trust,
    "todo-list": scenes_talk.todo_list,
    "plan": scenes_talk.plan,
    "questions": scenes_talk.questions,
    "routing": scenes_agents.routing,
    "agents": scenes_agents.agents,
    "agents-beside": scenes_agents.agents_beside,
    "agents-plain": scenes_agents.agents_plain,
    "statistics": scenes_rest.statistics,
    "statistics-plain": scenes_rest.statistics_plain,
    "tasks": scenes_agents.tasks,
    "tasks-todos": scenes_agents.tasks_todos,
    "tasks-hard": scenes_agents.tasks_hard,
    "tasks-empty": scenes_agents.tasks_empty,
    "trace": scenes_rest.trace,
    "tabs-plan": scenes_tabs.plan,
    "tabs-permissions": scenes_tabs.permissions,
    "tabs-extensions": scenes_tabs.extensions,
    "tabs-cost": scenes_tabs.cost,
}
