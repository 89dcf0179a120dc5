"""Rules edited before they are kept: an accepted one matches its call exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.permissions.place import PathPlace
from engine.permissions.policy import Allow, Limits, decide
from engine.permissions.rules import Rule, RuledCall, allows, meaning, parse_rule, refusal, suggest
from engine.records import PermissionMode
from tests.support.plain_runner import PlainRunner
from tests.support.tool_bench import NoJobs
from tools.bash import Bash
from tools.contract import Access, ToolClass, ToolRequest, ToolSpec

CWD = Path("/work/project")
BASH = ToolSpec("bash", "", {}, ToolClass.RUN)
WRITE = ToolSpec("write_file", "", {}, ToolClass.EDIT)
LETTERS = "abmr-./ =*?[]()!&;|$\n\t\r\u202e\u00e9'\""

written = st.text(LETTERS, min_size=1, max_size=14)
paths = st.lists(written, min_size=1, max_size=3).map(lambda parts: CWD.joinpath(*(part.strip("/") for part in parts)))
calls = st.one_of(
    written.map(lambda text: RuledCall("bash", ToolClass.RUN, ToolRequest(text, command=text), CWD)),
    paths.map(lambda path: RuledCall("write_file", ToolClass.EDIT, ToolRequest("x", (path,)), CWD)),
    written.map(lambda text: RuledCall("job_kill", ToolClass.RUN, ToolRequest(text), CWD)),
)


def spec_of(call: RuledCall) -> ToolSpec:
    return ToolSpec(call.tool, "", {}, call.tool_class)


def bash(command: str) -> RuledCall:
    return RuledCall("bash", ToolClass.RUN, ToolRequest(command, command=command), CWD)


@given(calls)
@example(bash("''"))
def test_the_offered_rule_is_accepted_and_matches(call: RuledCall) -> None:
    rule = suggest(spec_of(call), call.request, CWD)
    if rule is None:
        assert call.command.endswith("[*]")
        return
    assert refusal(str(rule), call) == ""
    assert allows(rule, call)


@given(calls, written, st.integers(0, 14), st.integers(0, 14))
def test_an_accepted_edit_always_lets_the_call_run_and_a_refused_one_says_why(
    call: RuledCall, new: str, start: int, cut: int
) -> None:
    offered = str(suggest(spec_of(call), call.request, CWD) or f"{call.tool}({call.command})")
    start = min(start, len(offered))
    edited = offered[:start] + new + offered[start + cut :]
    why = refusal(edited, call)
    rule = parse_rule(edited)
    runs = rule is not None and isinstance(
        decide(spec_of(call), call.request, Limits(PermissionMode.ASK), PathPlace(CWD), {rule: Access.CONFINED}), Allow
    )
    assert runs is (why == "")
    assert not why or why.endswith(".")
    assert (meaning(edited, call) == "") is (rule is None)


@pytest.mark.parametrize("command", ["rm *", "rm -rf build/*", "ls src/ *", "git add *"])
def test_the_rule_offered_for_a_command_that_ends_with_a_star_allows_that_command_alone(command: str) -> None:
    rule = suggest(BASH, ToolRequest(command, command=command), CWD)
    assert rule is not None
    assert allows(rule, bash(command))
    assert not allows(rule, bash(f"{command[:-1].rstrip()} precious"))
    assert not allows(rule, bash(f"{command[:-1]} precious"))
    assert meaning(str(rule), bash(command)) == "Allows only this exact command."


def test_what_a_rule_for_a_command_with_a_star_lets_through_is_said_as_it_is() -> None:
    assert meaning("bash(rm *)", bash("rm *")) == "Allows any command that starts with `rm`, whatever follows."
    assert allows(Rule("bash", "rm *"), bash("rm precious"))


@pytest.mark.parametrize(
    ("command", "tricked"),
    [
        ("git status\nrm -rf build", "git status rm -rf build"),
        ("rm -rf build #\rgit status", "git status"),
        ("rm -rf build\x1b[2K\rgit status", "git status"),
    ],
)
async def test_a_rule_is_held_against_what_would_run_not_against_what_a_row_shows(
    tmp_path: Path, command: str, tricked: str
) -> None:
    request = await Bash(NoJobs(PlainRunner()), tmp_path).request({"command": command}, CWD)
    assert not allows(Rule("bash", "git status*"), RuledCall("bash", ToolClass.RUN, request, CWD))
    assert not allows(Rule("bash", tricked), RuledCall("bash", ToolClass.RUN, request, CWD))


def test_blanks_at_the_ends_of_a_command_change_nothing() -> None:
    assert suggest(BASH, ToolRequest("make test", command="make test\n"), CWD) == Rule("bash", "make test")
    assert allows(Rule("bash", "make test*"), bash(" make test -x\n"))


def test_a_file_name_with_pattern_signs_is_offered_so_that_it_matches_itself_alone() -> None:
    call = RuledCall("write_file", ToolClass.EDIT, ToolRequest("x", (CWD / "a[1].txt",)), CWD)
    rule = suggest(WRITE, call.request, CWD)
    assert rule is not None
    assert allows(rule, call)
    assert not allows(rule, RuledCall("write_file", ToolClass.EDIT, ToolRequest("x", (CWD / "a1.txt",)), CWD))


def test_no_rule_is_offered_for_several_paths() -> None:
    assert suggest(WRITE, ToolRequest("x", (CWD / "a", CWD / "b")), CWD) is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("make test", "`make test` is not a rule; write it as bash(pattern)."),
        ("patch(make*)", "This rule is for `patch`, but bash asks."),
        (
            "bash(make lint*)",
            "This rule does not match: begin with the words of the command, such as `make test -x`.",
        ),
    ],
)
def test_a_refused_rule_is_told_how_to_write_it(text: str, sentence: str) -> None:
    assert refusal(text, bash("make test -x")) == sentence


def test_a_star_cannot_be_kept_for_a_command_with_shell_signs() -> None:
    assert "write the whole command" in refusal("bash(make test*)", bash("make test && rm x"))
    assert refusal("bash(make test && rm x)", bash("make test && rm x")) == ""


def test_a_path_rule_that_misses_names_the_path() -> None:
    call = RuledCall("write_file", ToolClass.EDIT, ToolRequest("x", (CWD / "src/a.py",)), CWD)
    assert refusal("write_file(lib/*)", call).startswith("This rule does not match `/work/project/src/a.py`")


@pytest.mark.parametrize(
    ("text", "call", "sentence"),
    [
        (
            "bash(make test*)",
            bash("make test -x"),
            "Allows any command that starts with `make test`, whatever follows.",
        ),
        ("bash(make test -x)", bash("make test -x"), "Allows only this exact command."),
        ("bash(*)", bash("make test -x"), "Allows no commands."),
        (
            "write_file(src/*)",
            RuledCall("write_file", ToolClass.EDIT, ToolRequest("x", (CWD / "src/a.py",)), CWD),
            "Allows write_file on every path like `src/*` inside the project.",
        ),
        (
            "write_file(*)",
            RuledCall("write_file", ToolClass.EDIT, ToolRequest("x", (CWD / "src/a.py",)), CWD),
            "Allows write_file on every path like `*` inside the project.",
        ),
        ("think(*)", RuledCall("think", ToolClass.READ, ToolRequest("x"), CWD), "Allows every think."),
    ],
)
def test_the_meaning_of_a_rule_is_said_before_it_is_kept(text: str, call: RuledCall, sentence: str) -> None:
    assert meaning(text, call) == sentence


def test_always_for_sub_agents_is_a_rule_for_the_tool() -> None:
    spec = ToolSpec("spawn_agents", "", {}, ToolClass.SPAWN)
    rule = suggest(spec, ToolRequest("2 sub-agents: find tests · read docs"), CWD)
    assert rule == Rule("spawn_agents", "*")
    other = RuledCall("spawn_agents", ToolClass.SPAWN, ToolRequest("1 sub-agent: something else"), CWD)
    assert allows(rule, other)
    assert meaning(str(rule), other) == "Allows every spawn_agents."
