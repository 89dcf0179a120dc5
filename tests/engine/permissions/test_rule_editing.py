"""Rules edited before they are kept, each matching its call exactly, and the list of kept ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.executor.requests import Accepted, ApprovalAnswer, ApprovalChoice, EngineError
from engine.machine.states import AwaitingApproval
from engine.permissions.place import PathPlace
from engine.permissions.policy import Allow, Limits, decide
from engine.permissions.rules import Rule, RuledCall, allows, meaning, parse_rule, refusal, suggest
from engine.records import PermissionMode
from engine.rule_store import ActiveRule, RuleStore
from phoenix_tui.config.rules import RuleFile
from tests.support.engine import engine_harness, until
from tests.support.fake_rules import NOW, rule_desk
from tests.support.plain_runner import PlainRunner
from tests.support.scripted_provider import Reply, ScriptedCall
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


@pytest.fixture
def file(tmp_path: Path) -> RuleFile:
    return RuleFile(tmp_path / "rules.toml")


def conversation(name: str, read_only: str, title: str) -> SimpleNamespace:
    return SimpleNamespace(id=name, rules={}, read_only=read_only, record=SimpleNamespace(title=title, agent=None))


def texts(file: RuleFile) -> list[str]:
    return [rule.text for rule in file.rules()]


@pytest.fixture
def desk(file: RuleFile) -> RuleStore:
    opened = {
        "c1": SimpleNamespace(
            id="c1", rules={}, read_only="", record=SimpleNamespace(title="Fix the parser", agent=None)
        ),
        "c2": SimpleNamespace(id="c2", rules={}, read_only="owned", record=SimpleNamespace(title="", agent=None)),
    }
    return rule_desk(opened, file)


def test_a_rule_is_seen_with_where_it_holds_and_since_when(desk: RuleStore, file: RuleFile) -> None:
    assert desk.all() == ()
    desk.add(ActiveRule("bash(make test*)"))
    desk.add(ActiveRule("write_file(src/*)", "c1", since=5.0))
    assert desk.all() == (
        ActiveRule("bash(make test*)", since=NOW),
        ActiveRule("write_file(src/*)", "c1", 5.0, "Fix the parser"),
    )
    assert RuleFile(file.path).rules()[0].since == NOW


def test_what_was_taken_back_holds_no_longer_and_comes_back_as_it_was(desk: RuleStore) -> None:
    for rule in (ActiveRule("bash(ls*)", since=7.0), ActiveRule("bash(ls*)", "c1", 8.0, "Fix the parser")):
        desk.add(rule)
        desk.remove(rule)
        desk.remove(rule)
        assert desk.all() == ()
        desk.add(rule)
        assert desk.all() == (rule,)
        desk.remove(rule)


def test_an_edited_rule_holds_where_the_old_one_did(desk: RuleStore, file: RuleFile) -> None:
    desk.add(ActiveRule("bash(make*)"))
    new = desk.replace(ActiveRule("bash(make*)"), "bash(make test*)")
    assert (new.text, texts(file)) == ("bash(make test*)", ["bash(make test*)"])
    with pytest.raises(EngineError, match="is not a rule"):
        desk.replace(new, "make")
    assert texts(file) == ["bash(make test*)"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "bash(uv run*)",
            "“uv run” can start any program; name that program right after it, or write the whole command.",
        ),
        (
            "bash(git log --outp*)",
            "`git log --outp*` matches nothing: --output writes a file. Write the whole command.",
        ),
        ("make", "`make` is not a rule; write it as tool(pattern), such as bash(make test*)."),
        ("bsh(make)", "There is no tool `bsh`: did you mean bash?"),
        ("xyzzy(make)", "There is no tool `xyzzy`: is it one of bash, write_file?"),
        ("bash( )", "bash() matches nothing; write the allowed pattern between the parentheses."),
        ("bash(*)", "bash(*) matches nothing; start with a command, such as make test*. Mode auto never asks."),
        ("bash( ls)", "A command cannot start with a space; leave it out."),
        ("write_file(src/)", "A path cannot end with /; write `src/*` for everything in it."),
        *(
            (
                f"write_file({path})",
                "Paths inside the working directory are relative, such as src/*; others are absolute.",
            )
            for path in ("~/x", "./x")
        ),
    ],
)
def test_a_rule_that_could_never_match_is_refused_in_one_sentence(
    desk: RuleStore, file: RuleFile, text: str, why: str
) -> None:
    assert desk.problem(text) == why
    with pytest.raises(EngineError):
        desk.add(ActiveRule(text))
    assert not file.path.exists()


@pytest.mark.parametrize("text", ["bash(make test*)", "bash(rm -rf build[*])", "write_file(/tmp/*)", "write_file(*)"])
def test_a_rule_that_can_match_is_accepted_and_says_what_it_lets_through(desk: RuleStore, text: str) -> None:
    assert desk.problem(text) == ""
    assert desk.effect(text).startswith("Allows ")


def test_a_conversation_that_is_closed_or_owned_elsewhere_takes_no_rule(desk: RuleStore) -> None:
    for conversation_id in ("c2", "gone"):
        with pytest.raises(EngineError, match="no longer open here"):
            desk.add(ActiveRule("bash(ls*)", conversation_id))


def test_a_broken_file_is_named_and_left_as_it_is(desk: RuleStore, file: RuleFile) -> None:
    file.path.write_text("allow = 3\n# mine", "utf-8")
    assert desk.all() == ()
    assert desk.trouble() == (
        f"{file.path}: 'allow' must be a list of texts. "
        "Until this is repaired, its rules are ignored and no rule can be added."
    )
    with pytest.raises(EngineError, match="could not be saved"):
        desk.add(ActiveRule("bash(ls*)"))
    assert file.path.read_text("utf-8") == "allow = 3\n# mine"


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncIterator[Any]:
    calls = [Reply((ScriptedCall("bash", f'{{"command": "make test {n}"}}', f"t{n}"),)) for n in (1, 2)]
    async with engine_harness(tmp_path, *calls) as harness:
        conversation = await harness.start("test it", PermissionMode.ASK)
        await until(lambda: isinstance(conversation.state, AwaitingApproval))
        yield harness, conversation


@pytest.mark.parametrize("choice", [ApprovalChoice.ALWAYS, ApprovalChoice.CONVERSATION])
async def test_a_rule_taken_back_lets_the_next_call_ask_again(asked: Any, choice: ApprovalChoice) -> None:
    harness, conversation = asked
    assert await conversation.answer("t1", ApprovalAnswer(choice)) == Accepted()
    (rule,) = harness.engine.rules.all()
    assert (rule.text, rule.conversation_id) == (
        "bash(make test 1)",
        conversation.id if choice is ApprovalChoice.CONVERSATION else "",
    )
    harness.engine.rules.remove(rule)
    assert harness.engine.rules.all() == ()
    await until(lambda: conversation.question is not None and conversation.question.call.id == "t2")
