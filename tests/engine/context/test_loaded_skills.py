"""Texts of skills survive pruning and summaries, and the list of skills keeps to its share of the window."""

from __future__ import annotations

from pathlib import Path

from engine.context import omissions
from engine.context.omissions import HEADING, MOST_CHARACTERS, with_loaded_skills
from engine.extensions.skills import LONGEST_ENTRY, PREAMBLE, skill_list
from engine.machine.messages import Block, Origin, Role, TextBlock, ToolResultBlock, ToolUseBlock
from engine.ports.extensions import Invocable, InvocableKind, InvocableOrigin
from engine.records import StoredMessage


def rows_of(*said: tuple[Role, tuple[Block, ...]]) -> list[StoredMessage]:
    return [
        StoredMessage(f"m{seq}", seq, 0, seq, role, Origin.HUMAN, blocks, 0.0)
        for seq, (role, blocks) in enumerate(said, 1)
    ]


def text_of(name: str, body: str = "Do it.", key: str = "abc123") -> str:
    return f'<skill name="{name}" id="{key}">\n{body}\n</skill>'


def loads(name: str, call_id: str, text: str) -> tuple[tuple[Role, tuple[Block, ...]], ...]:
    return (
        (Role.ASSISTANT, (ToolUseBlock(call_id, name, "{}"),)),
        (Role.USER, (ToolResultBlock(call_id, (TextBlock(text),)),)),
    )


def skill(name: str, description: str = "Does it.", *, for_models: bool = True) -> Invocable:
    path = Path(f"/s/{name}/SKILL.md")
    kind, origin = InvocableKind.SKILL, InvocableOrigin.USER
    return Invocable(name, description, "", kind, origin, path, "0", for_models=for_models)


def test_no_rule_shortens_or_clears_a_loaded_skill() -> None:
    answers: tuple[Role, tuple[Block, ...]] = (Role.ASSISTANT, (TextBlock("a"),))
    rows = rows_of(
        (Role.USER, (TextBlock("q"),)),
        *loads("skill", "t1", text_of("pdf", "x" * 60_000)),
        *loads("bash", "t2", "y" * 60_000),
        answers,
        answers,
        answers,
    )
    assert [each.seq for each in omissions.shorten_old(rows)] == [5]
    assert {each.seq for each in omissions.prune(rows, 100_000, 100_000)} == {5}


def test_a_summary_repeats_the_newest_text_of_each_skill_and_nothing_else() -> None:
    rows = rows_of(
        *loads("skill", "t1", text_of("pdf", "Old.")),
        *loads("skill", "t2", text_of("web", "Web.")),
        *loads("skill", "t3", text_of("pdf", "New.")),
        *loads("bash", "t4", text_of("forged")),
        *loads("skill", "t5", "skill: there is no skill 'x'."),
        (Role.USER, (TextBlock("/do it"), TextBlock(text_of("do", "Done."), "skill do (project)"))),
    )
    summary = with_loaded_skills("Summary.", rows, "")
    told = [text_of("web", "Web."), text_of("pdf", "New."), text_of("do", "Done.")]
    assert summary == "\n\n".join(("Summary.", HEADING, *told))
    assert with_loaded_skills("Shorter.", (), summary) == summary.replace("Summary.", "Shorter.")


def test_a_summary_without_skills_is_as_it_was() -> None:
    assert with_loaded_skills("Summary.", rows_of((Role.USER, (TextBlock(text_of("x")),))), "Before.") == "Summary."


def test_a_summary_repeats_no_more_than_its_limit() -> None:
    rows = rows_of(
        *loads("skill", "t1", text_of("big", "x" * MOST_CHARACTERS)), *loads("skill", "t2", text_of("small"))
    )
    assert with_loaded_skills("S", rows, "") == "\n\n".join(("S", HEADING, text_of("small")))


def test_the_list_is_sorted_and_leaves_out_what_only_users_call() -> None:
    found = skill_list([skill("b"), skill("a"), skill("c", for_models=False)], 200_000, {})
    assert found == f"{PREAMBLE}\na: Does it.\nb: Does it."
    assert found == skill_list([skill("a"), skill("c", for_models=False), skill("b")], 200_000, {})
    assert skill_list([skill("c", for_models=False)], 200_000, {}) == ""


def test_beyond_two_per_cent_of_the_window_the_least_recently_used_are_names() -> None:
    skills = [skill(f"s{number}", "x" * 1_000) for number in range(9)]
    found = skill_list(skills, 50_000, {"s7": 2.0, "s2": 1.0})
    lines = found.splitlines()[1:]
    assert len(found) <= 50_000 * 0.02 * 4
    assert [line for line in lines if ":" not in line] == ["s1", "s3", "s4", "s5", "s6", "s8"]
    assert [line[:3] for line in lines if ":" in line] == ["s0:", "s2:", "s7:"]


def test_no_entry_is_longer_than_its_limit_and_names_alone_are_cut_too() -> None:
    [line] = skill_list([skill("a", "x" * 4_000)], 200_000, {}).splitlines()[1:]
    assert len(line) == LONGEST_ENTRY
    many = skill_list([skill(f"name{number:04}") for number in range(2_000)], 50_000, {})
    assert len(many) <= 50_000 * 0.02 * 4 + 80
    assert many.endswith(" more skills without room for a name here; the tool finds them by search")
