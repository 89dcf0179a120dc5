"""Searching among many skills: when the tool can, what it finds, and what it never loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.extensions.skills import FROM, MOST_FOUND, NONE, SkillTool, find_skills
from engine.ports.extensions import Invocable, InvocableCatalogue, InvocableKind, InvocableOrigin
from tools.contract import ToolContext, ToolInputError


def skill(name: str, description: str = "", *, for_models: bool = True) -> Invocable:
    path = Path("/skills") / name / "SKILL.md"
    return Invocable(
        name, description, "Body.", InvocableKind.SKILL, InvocableOrigin.USER, path, "d", for_models=for_models
    )


def tool_with(number: int) -> SkillTool:
    skills = tuple(skill(f"s{place:03}", f"Does thing {place}.") for place in range(number))
    unused: Any = None
    return SkillTool(InvocableCatalogue(skills), unused, "c")


def test_words_of_names_come_before_words_of_descriptions() -> None:
    skills = [
        skill("forms", "Fills PDF forms."),
        skill("pdf", "Reads documents."),
        skill("web", "Browses."),
        skill("secret", "PDF forms of the user.", for_models=False),
    ]
    assert find_skills(skills, "PDF").splitlines() == ["pdf: Reads documents.", "forms: Fills PDF forms."]
    assert find_skills(skills, "pdf forms").splitlines() == ["forms: Fills PDF forms.", "pdf: Reads documents."]
    assert find_skills(skills, "chess") == NONE


def test_a_search_is_bounded_whatever_is_asked() -> None:
    many = [skill(f"s{place:04}", "word " * 1_000) for place in range(2_000)]
    lines = find_skills(many, "word " * 100_000).splitlines()
    assert len(lines) == MOST_FOUND + 1
    assert max(map(len, lines)) <= 300
    assert lines[-1] == "and 1990 more; use more words"


@pytest.mark.parametrize(("number", "can"), [(FROM - 1, False), (FROM, True)])
def test_the_schema_has_a_search_from_a_number_of_skills(number: int, can: bool) -> None:
    schema: Any = tool_with(number).spec.input_schema
    assert ("search" in schema["properties"]) is can
    assert schema.get("required", []) == ([] if can else ["skill"])


async def test_a_search_loads_nothing_and_a_name_counts_before_it(tmp_path: Path) -> None:
    tool = tool_with(20)
    request = await tool.request({"search": "thing 7"}, tmp_path)
    assert (request.summary, request.loads, request.lines) == ("search: thing 7", "", ())
    context = ToolContext("c", "t", tmp_path, outside_allowed=False, report=lambda _: None)
    output = await tool.run({"search": "thing 7"}, context)
    assert output.text.startswith("s007: Does thing 7.")
    assert (await tool.request({"skill": "s001", "search": "x"}, tmp_path)).summary == "s001 (user)"
    with pytest.raises(ToolInputError):
        await tool.request({}, tmp_path)
