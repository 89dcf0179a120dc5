"""Tools of a conversation: the user's can spawn, a sub-agent has those of its profile (SPEC BED-009)."""

from __future__ import annotations

from collections.abc import Mapping

from engine.agents.spawn_tools import SpawnAgents, SpawnTask, Starter
from engine.executor.session import Ports
from engine.ports.profiles import SPAWN_TOOLS, Profile, ProfileError
from engine.records import ConversationRecord
from tools.contract import Tool


def all_tools(ports: Ports, starter: Starter | None, depth: int) -> dict[str, Tool]:
    """The standard tools, and those that spawn where sub-agents can be had and are wanted."""
    tools = dict(ports.tools)
    if starter is not None and ports.profiles is not None and depth:
        spawning = (SpawnAgents(starter, ports.profiles), SpawnTask(starter, ports.profiles))
        tools |= {tool.spec.name: tool for tool in spawning}
    return tools


def profile_of(record: ConversationRecord, ports: Ports) -> Profile | None:
    """The profile a conversation was begun with; where it is gone or broken by now, none: its mode stays its own."""
    if ports.profiles is None or not record.profile:
        return None
    try:
        return ports.profiles.resolve(record.profile, record.cwd)
    except ProfileError:
        return None


def tools_for(record: ConversationRecord, profile: Profile | None, tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """Tools of this conversation's model; a sub-agent never spawns."""
    own = {name: tool for name, tool in tools.items() if record.agent is None or name not in SPAWN_TOOLS}
    return {name: tool for name, tool in own.items() if profile is None or profile.allows(name)}
