"""Kinds of agents that come with a run, in the tools that spawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from engine.agents.manager import SubAgents
from engine.agents.spawn_tools import SpawnAgents, SpawnTask
from engine.ports.profiles import Profile
from tests.support.engine import BuiltIn


class Added(BuiltIn):
    """More profiles than there is room for."""

    def added(self, cwd: Path) -> tuple[Profile, ...]:
        many = [Profile(f"p{number}", "x" * 400) for number in range(60)]
        return (Profile("tools:reviewer", "Reviews\x1b[2J\n code"), Profile("bare"), *many)


def test_each_is_named_to_the_model_with_its_description_as_far_as_there_is_room() -> None:
    starter = cast("SubAgents", None)  # nothing is started
    for tool in (SpawnAgents(starter, Added()), SpawnTask(starter, Added())):
        told = json.dumps(tool.spec.input_schema, ensure_ascii=False)
        assert "Also:\\ntools:reviewer: Reviews code\\nbare\\np0: xx" in told
        assert "and 7 more without room for a name here" in told
    assert "Also:" not in json.dumps(SpawnTask(starter, BuiltIn()).spec.input_schema)
