"""Front matter in the shapes of ten public files: keys, quoting and lists as found there, words of our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.extensions.skills import read_asked_rules
from engine.ports.extensions import Invocable
from engine.run_options import Effort
from tests.support.skills import catalogue, command, skill, sources_of


def read(tmp_path: Path, front: str, *, is_skill: bool, body: str = "Do it.") -> Invocable:
    """The one file in a project of its own; it must not be broken."""
    root = tmp_path / "project"
    make = skill if is_skill else command
    make(root / (".claude/skills" if is_skill else ".claude/commands"), "one", front, body)
    found = catalogue(root, sources_of(tmp_path))
    assert found.problems == ()
    return (*found.skills, *found.commands)[0]


def test_one_long_plain_line_with_dots_slashes_and_a_license_sentence(tmp_path: Path) -> None:
    front = (
        "name: one\ndescription: Use this for text/tables. If the user names a .pdf file, take it.\nlicense: Own. See X"
    )
    assert read(tmp_path, front, is_skill=True).description.endswith("take it.")


def test_a_folded_description_with_quotes_dashes_and_arrows(tmp_path: Path) -> None:
    front = 'name: one\ndescription: >\n  First — part → of\n  it. Use when "x", "/one", or\n  "don\'t y".'
    assert (
        read(tmp_path, front, is_skill=True).description == 'First — part → of it. Use when "x", "/one", or "don\'t y".'
    )


def test_a_stripped_folded_description_with_named_arguments(tmp_path: Path) -> None:
    front = (
        "name: one\n"
        "description: >-\n"
        "  Publish it.\n"
        "disable-model-invocation: true\n"
        'argument-hint: "<version>"\n'
        "arguments: [version]"
    )
    found = read(tmp_path, front, is_skill=True)
    assert (found.for_models, found.argument_hint, found.argument_names) == (False, "<version>", ("version",))


def test_plain_tool_names_between_commas(tmp_path: Path) -> None:
    found = read(tmp_path, "description: x\nallowed-tools: Bash, Read, Glob, Grep", is_skill=True)
    assert [str(rule) for rule in read_asked_rules(found).rules] == ["read_file(*)", "list_files(*)", "search(*)"]


def test_brackets_without_quotes_in_a_hint_and_rules_with_colons(tmp_path: Path) -> None:
    front = "allowed-tools: Bash(git add:*), Bash(git status:*)\nargument-hint: [message]\ndescription: 建立 commit"
    found = read(tmp_path, front, is_skill=False)
    assert (found.argument_hint, found.description) == ("[message]", "建立 commit")
    assert [str(rule) for rule in read_asked_rules(found).rules] == ["bash(git add *)", "bash(git status *)"]


def test_several_lists_and_words_in_one_hint(tmp_path: Path) -> None:
    front = (
        "name: one\n"
        "description: Read CODE (SPA, API): phases (0–3).\n"
        "argument-hint: [a|b] <path> [--out <path>]\n"
        "effort: xhigh"
    )
    found = read(tmp_path, front, is_skill=True)
    assert (found.argument_hint, found.effort) == ("[a|b] <path> [--out <path>]", Effort.MAX)
    assert found.description == "Read CODE (SPA, API): phases (0–3)."


def test_an_empty_hint_and_rules_for_everything(tmp_path: Path) -> None:
    front = "description: x\nargument-hint:\nallowed-tools: Bash(*), Read(*), Write(*)"
    found = read(tmp_path, front, is_skill=False)
    assert found.argument_hint == ""
    assert [line.partition(":")[0] for line in read_asked_rules(found).refused] == ["Bash(*)"]


def test_a_fork_with_a_profile_a_short_model_name_and_a_quoted_hint(tmp_path: Path) -> None:
    front = (
        "description: x\n"
        "argument-hint: '<slug> [--repo <name|path>]'\n"
        "model: haiku\n"
        "context: fork\n"
        "agent: general-purpose"
    )
    found = read(tmp_path, front, is_skill=False)
    assert (found.forks, found.agent, found.model) == (True, "general-purpose", "claude-haiku-5-5")
    assert found.argument_hint == "<slug> [--repo <name|path>]"


def test_rules_below_each_other_with_dashes(tmp_path: Path) -> None:
    front = (
        "model: sonnet\n"
        "context: fork\n"
        "description: x\n"
        "argument-hint: REQ-xxx | <idea>\n"
        "allowed-tools:\n"
        "  - Task\n"
        "  - Bash(ls *)"
    )
    found = read(tmp_path, front, is_skill=False)
    assert (found.allowed_tools, found.argument_hint) == (("Task", "Bash(ls *)"), "REQ-xxx | <idea>")


def test_keys_that_no_standard_has_and_a_description_in_brackets(tmp_path: Path) -> None:
    front = (
        'description: "[DEV] Scan it: all"\n'
        "preset: x\n"
        "lifecycle: any\n"
        "domain: a-b\n"
        "metadata:\n"
        "  author: x\n"
        '  version: "1"'
    )
    assert read(tmp_path, front, is_skill=False).description == "[DEV] Scan it: all"


@pytest.mark.parametrize("name", ["with_underscore", "UPPER", "v2.1"])
def test_names_beyond_the_standard_are_taken(name: str, tmp_path: Path) -> None:
    root = tmp_path / "project"
    skill(root / ".claude/skills", name, f"name: {name}\ndescription: x")
    assert [one.name for one in catalogue(root, sources_of(tmp_path)).skills] == [name]
