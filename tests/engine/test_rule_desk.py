"""Rules that hold here: seen with where they hold, taken back, written by hand, over the real file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.executor.requests import Accepted, ApprovalAnswer, ApprovalChoice, EngineError
from engine.machine.states import AwaitingApproval
from engine.records import PermissionMode
from engine.rule_store import ActiveRule, RuleStore
from phoenix_tui.config.rules import RuleFile
from tests.support.engine import engine_harness, until
from tests.support.fake_rules import NOW, rule_desk
from tests.support.scripted_provider import Reply, ScriptedCall


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
        conversation = await harness.conversation(PermissionMode.ASK)
        await conversation.say("test it")
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
