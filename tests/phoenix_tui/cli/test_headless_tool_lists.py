"""`phoenix -p --allowedTools` and `--disallowedTools`: lists in native and foreign names, for one process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phoenix_tui.config.rules import split_list, why_no_tools, without_effect
from tests.support.cli import with_claude
from tests.support.journeys import calls, says
from tests.support.loopback import serve


def make(folder: Path) -> None:
    folder.mkdir(exist_ok=True)


async def result_of(home: Path, command: str, *flags: str) -> str:
    """The result that the model reads of a command."""
    make(home)
    async with serve(calls("bash", command=command), says("Done.")) as server:
        ran = await with_claude(home, server.url).run("-p", *flags, "Go")
        assert ran.code == 0, ran.err
        return json.dumps(server.requests[1].json["messages"])


async def test_a_denied_command_is_refused_in_auto_with_its_rule_and_flag(tmp_path: Path) -> None:
    flags = ("--permission-mode", "auto", "--sandbox", "off", "--disallowedTools", "WebFetch Bash(git push:*)")
    said = await result_of(tmp_path, "true && git push", *flags)
    assert "the rule bash(git push *) in --disallowedTools denies it" in said


async def test_an_allowed_command_runs_in_the_mode_that_asks_nothing_and_others_do_not(tmp_path: Path) -> None:
    flags = ("--allowed-tools", "Bash(echo hello)")
    assert "hello" in await result_of(tmp_path / "a", "echo hello", *flags)
    other = await result_of(tmp_path / "b", "echo other", *flags)
    assert "Permission mode 'deny' does not allow bash." in other


async def test_a_whole_tool_is_allowed_by_its_name_but_not_what_is_denied(tmp_path: Path) -> None:
    assert "hi 3" in await result_of(tmp_path / "a", "echo hi $((1+2))", "--allowedTools", "Bash,Read")
    denied = await result_of(tmp_path / "b", "rm x", "--allowedTools", "Bash", "--disallowedTools", "Bash(rm:*)")
    assert "denies it" in denied


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("Bsh", "there is no tool 'Bsh'"),
        ("bash(", "is neither a tool nor"),
        ("mcp__*", "has * only as in mcp__SERVER__*"),
    ],
)
async def test_a_mistake_in_a_list_is_a_usage_error(tmp_path: Path, value: str, said: str) -> None:
    async with serve() as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "--disallowedTools", value, "Go")
    assert ran.code == 2
    assert said in ran.err


def test_commas_and_blanks_separate_outside_parentheses() -> None:
    text = " Read, Bash(git log:*, x) Edit,,mcp__a__*  Bash(echo (a b)) "
    assert list(split_list(text)) == ["Read", "Bash(git log:*, x)", "Edit", "mcp__a__*", "Bash(echo (a b))"]
    assert list(split_list(")),( a b")) == ["))", "( a b"]
    assert why_no_tools("--x", [text, "NotebookEdit", "web_fetch(domain:a.org)", ""]) == ""
    assert [why.partition(": ")[2] for why in without_effect(["Bash(git:*),Bash(make test)"])] == [
        "Bash(git:*): “git” can start other programs; name its command too, such as git log*."
    ]
