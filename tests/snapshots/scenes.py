"""All scenes: the content of the engine, the keys, and the names of the screens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from tests.snapshots import (
    scenes_agents,
    scenes_ask,
    scenes_going,
    scenes_list,
    scenes_memory,
    scenes_plan,
    scenes_profiles,
    scenes_rest,
    scenes_routing,
    scenes_start,
    scenes_statistics,
    scenes_talk,
    scenes_tasks,
    scenes_traces,
    scenes_trust,
    scenes_writing,
)
from tests.snapshots.booth import Booth

Scene: TypeAlias = Callable[[Booth], Awaitable[None]]
SCENES: Final[dict[str, Scene]] = {
    **scenes_start.SCENES,
    **scenes_talk.SCENES,
    **scenes_list.SCENES,
    **scenes_going.SCENES,
    **scenes_writing.SCENES,
    **scenes_rest.SCENES,
    **scenes_profiles.SCENES,
    **scenes_memory.SCENES,
    **scenes_trust.SCENES,
    **scenes_plan.SCENES,
    **scenes_ask.SCENES,
    **scenes_routing.SCENES,
    **scenes_agents.SCENES,
    **scenes_statistics.SCENES,
    **scenes_tasks.SCENES,
    **scenes_traces.SCENES,
}
