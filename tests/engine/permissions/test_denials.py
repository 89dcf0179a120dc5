"""Rules that deny, in every mode and before every other; rules in Claude Code's names, and for tools of MCP servers."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from engine.executor.requests import EngineError
from engine.extensions.mcp.offering import definition_mark
from engine.permissions.denials import Denials, denials_in_force, is_denial, parse_denial, why_denies_nothing
from engine.permissions.place import PathPlace
from engine.permissions.policy import Allow, Ask, Decision, Deny, Limits, decide, may_read
from engine.permissions.rules import (
    KeptRule,
    Rule,
    RuledCall,
    allows,
    effect,
    native_rules,
    parse_rule,
    refusal,
    rules_in_force,
    suggest,
)
from engine.ports.mcp import ServerOrigin
from engine.ports.profiles import ProfileError
from engine.records import PermissionMode
from engine.rule_store import NOT_FOR_ONE, ActiveRule
from phoenix_tui.config.profile_files import parse_profile
from phoenix_tui.config.rules import RuleFile
from tests.support.fake_rules import NOW, rule_desk
from tests.support.mcp_hubs import hub_in, stdio
from tools.contract import Access, Enforcement, SandboxMode, ToolClass, ToolRequest, ToolSpec

CWD = Path("/work/project")
FILE = "/home/u/.config/phoenix/rules.toml"
BASH = ToolSpec("bash", "", {}, ToolClass.RUN)
WRITE = ToolSpec("write_file", "", {}, ToolClass.EDIT)
FETCH = ToolSpec("web_fetch", "", {}, ToolClass.NET)
CALLS = {
    "deny bash(git push*)": (BASH, ToolRequest("git push", command="cd x && git push")),
    "deny bash": (BASH, ToolRequest("ls", command="ls")),
    "deny write_file(secrets)": (WRITE, ToolRequest("secrets/a", (CWD / "secrets/a",))),
    "deny read_file(*.pem)": (ToolSpec("read_file", "", {}, ToolClass.READ), ToolRequest("x", (CWD / "a/x.pem",))),
    "deny web_fetch(domain:*.example.com)": (FETCH, ToolRequest("u", host="www.example.com")),
    "deny spawn_agents": (ToolSpec("spawn_agents", "", {}, ToolClass.SPAWN), ToolRequest("2 sub-agents")),
    "deny mcp__a__*(*)": (ToolSpec("mcp__a__b__c", "", {}, ToolClass.RUN), ToolRequest("x")),
    "deny mcp__a__*": (ToolSpec("mcp__a__c", "", {}, ToolClass.RUN), ToolRequest("x")),
    "deny think": (ToolSpec("think", "", {}, ToolClass.READ), ToolRequest("x")),
}


def denials(*texts: str, project: str = "") -> Denials:
    return denials_in_force([KeptRule(text, 0.0, project, FILE) for text in texts], CWD)


def decided(spec: ToolSpec, request: ToolRequest, limits: Limits, found: Denials, *, typed: bool = False) -> Decision:
    allowing = (Rule(spec.name, "*"), Rule(spec.name, request.command), Rule(spec.name, "/*"))
    rules = dict.fromkeys(allowing, Access.OUTSIDE)
    return decide(spec, request, limits, PathPlace(CWD), rules, typed=typed, denials=found)


@pytest.mark.parametrize("text", CALLS)
def test_a_rule_that_denies_wins_in_every_mode_and_sandbox_over_rules_that_allow(text: str) -> None:
    spec, request = CALLS[text]
    rule = parse_denial(text)
    assert rule is not None
    expected = f"{spec.name} was not run: the rule {rule} in {FILE} denies it. Do not try the same in another way."
    for mode, box in itertools.product(PermissionMode, SandboxMode):
        limits = Limits(mode, box, enforcement=Enforcement.FULL)
        assert decided(spec, request, limits, denials(text)) == Deny(expected)


@pytest.mark.parametrize("mode", PermissionMode)
def test_a_command_that_may_be_denied_asks_where_it_would_run(mode: PermissionMode) -> None:
    request = ToolRequest("x", command='git "$X"')
    decision = decided(BASH, request, Limits(mode), denials("deny bash(git push*)"))
    if mode in {PermissionMode.PLAN, PermissionMode.DENY}:
        assert isinstance(decision, Deny)
        return
    assert isinstance(decision, Ask)
    assert not decision.lasting
    assert decision.reason == (
        "the rule `bash(git push*)` may deny this: what it runs is partly known only to the shell"
    )


def test_a_line_that_the_user_typed_is_not_held_against_them() -> None:
    spec, request = CALLS["deny bash"]
    assert isinstance(decided(spec, request, Limits(PermissionMode.ASK), denials("deny bash"), typed=True), Allow)


@pytest.mark.parametrize("mode", [PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.AUTO])
def test_everything_asks_while_rules_that_deny_cannot_be_read(mode: PermissionMode) -> None:
    for spec, request in CALLS.values():
        decision = decided(spec, request, Limits(mode), Denials((), FILE))
        assert isinstance(decision, Ask)
        assert decision.reason == f"{FILE} may hold a rule that denies this, and cannot be read"


@pytest.mark.parametrize(
    "text", ["deny git push", "deny bash()", "deny bash( )", "deny (x)", "deny mcp__*", "deny deny bash"]
)
def test_a_rule_that_cannot_be_read_is_named_and_makes_calls_ask(text: str) -> None:
    found = denials(text)
    assert found == Denials((), f"`{text.strip()}` in {FILE}")


def test_rules_of_other_projects_and_rules_that_allow_deny_nothing() -> None:
    assert denials("deny bash(x)", project="/other") == Denials()
    assert denials("bash(x)") == Denials()
    assert [str(one) for one in denials("deny bash(x)", project=str(CWD)).rules] == ["bash(x)"]


@pytest.mark.parametrize("text", ["deny bash(git push*)", "deny bash", " deny bash(x)", "deny  x(y)"])
def test_no_rule_that_denies_is_ever_read_as_one_that_allows(text: str) -> None:
    assert is_denial(text)
    assert parse_rule(text) is None
    assert rules_in_force([KeptRule(text)], CWD) == []


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("secrets", "/work/project/secrets", True),
        ("secrets", "/work/project/secrets/deep/a", True),
        ("secrets", "/work/project/secrets2", False),
        ("secrets/", "/work/project/secrets/a", True),
        ("./secrets", "/work/project/secrets/a", True),
        ("*.env", "/work/project/a/b.env", True),
        ("*.env", "/elsewhere/b.env", False),
        ("/etc/*", "/etc/passwd", True),
        ("/", "/anything", True),
        ("src/[ab].py", "/work/project/src/a.py", True),
        ("../x", "/work/x", True),
    ],
)
def test_a_path_rule_means_what_is_below_it_too(pattern: str, path: str, expected: bool) -> None:
    decision = decided(
        WRITE, ToolRequest("x", (Path(path),)), Limits(PermissionMode.AUTO), denials(f"deny write_file({pattern})")
    )
    assert isinstance(decision, Deny) is expected


def test_a_path_rule_follows_the_links_of_its_folders_and_knows_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("HOME", str(tmp_path))
    request = ToolRequest("x", ((tmp_path / "real" / "a").resolve(),))
    for pattern in (f"{tmp_path}/link/*", f"{tmp_path}/link", "~/link", "~/real/*"):
        decision = decided(WRITE, request, Limits(PermissionMode.AUTO), denials(f"deny write_file({pattern})"))
        assert isinstance(decision, Deny), pattern


def test_text_of_a_file_closed_to_reading_reaches_no_model_by_another_tool() -> None:
    request, limits = ToolRequest("a", (CWD / "a.pem",)), Limits(PermissionMode.AUTO)
    assert may_read(WRITE, request, limits, PathPlace(CWD))
    assert not may_read(WRITE, request, limits, PathPlace(CWD), denials("deny read_file(*.pem)"))


def test_the_file_keeps_both_kinds_apart_with_their_dates(tmp_path: Path) -> None:
    file = RuleFile(tmp_path / "rules.toml")
    kept = [
        KeptRule("bash(ls*)", NOW),
        KeptRule("deny bash(git push*)", NOW, "", str(file.path)),
        KeptRule("deny bash(rm*)", 0.0, "/work/project", str(file.path)),
    ]
    for one in kept:
        file.add(one)
    text = file.path.read_text()
    assert 'allow = [\n  "bash(ls*)",\n]\ndeny = [\n  "bash(git push*)",\n]\n' in text
    assert '"deny bash(git push*)" = ' in text
    assert list(file.rules()) == kept
    file.remove(kept[1])
    assert [one.text for one in file.rules()] == ["bash(ls*)", "deny bash(rm*)"]
    assert (file.trouble(), file.unreadable()) == ("", "")


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ('deny = "bash(x)"', True), ("deny = [1]", True), ('denies = ["bash(x)"]', True),
        ('deny = ["bash(x)"', True), ('"de\\u006Ey" = ["bash(x)"', True), ("allow = 1\ndeny = []", True),
        ('projects = "deny"', True), ('allow = ["x', False), ("allow = 1", False), ("", False),
        ('deny = ["bash(x)"]', False),
    ],
)  # fmt: skip
def test_a_broken_file_that_may_deny_something_is_named(tmp_path: Path, text: str, hidden: bool) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    assert RuleFile(path).unreadable() == (str(path) if hidden else "")
    assert RuleFile(path).in_memory().unreadable() == RuleFile(path).unreadable()


def test_a_file_that_cannot_be_opened_may_deny_something(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").mkdir()
    assert RuleFile(tmp_path / "rules.toml").unreadable() == str(tmp_path / "rules.toml")
    assert RuleFile(tmp_path / "none.toml").unreadable() == ""


def test_a_rule_that_denies_is_written_moved_and_taken_back_like_others(tmp_path: Path) -> None:
    file = RuleFile(tmp_path / "rules.toml")
    desk = rule_desk({}, file)
    desk.add(ActiveRule("deny write_file(secrets/*)", project="/work/project"))
    [rule] = desk.all()
    moved = desk.move(rule, "")
    assert moved.text == "deny write_file(/work/project/secrets/*)"
    assert desk.replace(moved, "deny write_file(/x)").text == "deny write_file(/x)"
    desk.remove(desk.all()[0])
    assert desk.all() == ()
    session = SimpleNamespace(id="c", rules={}, read_only="")
    with pytest.raises(EngineError, match=NOT_FOR_ONE):
        rule_desk({"c": cast("Any", session)}, file).add(ActiveRule("deny bash(x)", "c"))
    assert desk.all() == ()


def test_problems_and_effects_are_told_in_one_sentence() -> None:
    desk = rule_desk({})
    assert desk.problem("deny bash(git push*)") == desk.problem("deny bash") == desk.problem("deny bash(*)") == ""
    assert desk.problem("deny git push") == (
        "`deny git push` is not a rule; write it as deny tool(pattern), such as deny bash(git push*)."
    )
    assert desk.problem("deny bsh(x)") == "There is no tool `bsh`: did you mean bash?"
    assert desk.effect("deny bash") == "Denies every bash, in every mode."
    assert desk.effect("deny bash(git push*)") == (
        "Denies commands that start with `git push`, in every mode, also as a part of another command."
    )
    assert desk.effect("deny write_file(a)") == "Denies write_file on `a` and what is in it, in every mode."
    assert desk.effect("deny web_fetch(domain:a.org)") == "Denies web_fetch of `domain:a.org`, in every mode."
    assert why_denies_nothing(Rule("write_file", "../x"), ToolClass.EDIT) != ""
    assert "at most" in why_denies_nothing(Rule("bash", "x" * 5_000), ToolClass.RUN)


# Rules that ask.


@pytest.mark.parametrize("mode", ["ask", "accept-edits", "auto"])
def test_a_rule_that_asks_beats_rules_that_allow_and_what_is_free(mode: str) -> None:
    limits = Limits(PermissionMode(mode), SandboxMode.WORKSPACE, enforcement=Enforcement.FULL)
    request = ToolRequest("x", command="echo a && git push origin")
    asks, allows = denials("ask bash(git push*)"), {Rule("bash", "*", given=True): Access.OUTSIDE}
    decision = decide(BASH, request, limits, PathPlace(CWD), allows, denials=asks)
    assert isinstance(decision, Ask)
    assert decision.reason == f"the rule `bash(git push*)` in {FILE} asks about this"
    assert not decision.lasting
    other = ToolRequest("x", command="echo a")
    assert isinstance(decide(BASH, other, limits, PathPlace(CWD), allows, denials=asks), Allow)


def test_a_rule_that_denies_comes_before_one_that_asks() -> None:
    limits, request = Limits(PermissionMode.AUTO), ToolRequest("x", command="git push")
    both = denials("ask bash(git*)", "deny bash(git push*)")
    assert isinstance(decide(BASH, request, limits, PathPlace(CWD), {}, denials=both), Deny)


def test_a_rule_that_asks_is_kept_in_the_file_as_one(tmp_path: Path) -> None:
    book = RuleFile(tmp_path / "rules.toml")
    for text in ("bash(make)", "ask bash(git push*)", "deny bash(rm*)"):
        book.add(KeptRule(text))
    assert [rule.text for rule in book.rules()] == ["bash(make)", "ask bash(git push*)", "deny bash(rm*)"]
    assert 'ask = [\n  "bash(git push*)",\n]' in (tmp_path / "rules.toml").read_text()
    assert parse_rule("ask bash(git push*)") is None


@pytest.mark.parametrize(
    ("text", "native"),
    [
        ("Bash(git log:*)", ("bash(git log *)",)),
        ("Bash(git log *)", ("bash(git log *)",)),
        ("Bash(make test)", ("bash(make test)",)),
        ("Bash(:*)", ("bash(:*)",)),
        ("Bash", ("Bash",)),
        ("deny Bash", ("deny bash(*)",)),
        ("deny  Bash(rm:*)", ("deny bash(rm *)",)),
        ("Read(//etc/**)", ("read_file(/etc/*)", "read_image(/etc/*)")),
        ("Edit(/src/**/*.py)", ("patch(src/*.py)", "write_file(src/*.py)")),
        ("Read(./a)", ("read_file(a)", "read_image(a)")),
        ("deny Write(a)", ("deny write_file(a)", "deny patch(a)")),
        ("deny Read(a)", ("deny read_file(a)", "deny read_image(a)", "deny search(a)", "deny list_files(a)")),
        ("WebFetch(domain:a.org)", ("web_fetch(domain:a.org)",)),
        ("bash(git:*)", ("bash(git:*)",)),
        ("Unknown(x)", ("Unknown(x)",)),
        ("mcp__a__b(*)", ("mcp__a__b(*)",)),
    ],
)
def test_a_foreign_rule_means_native_ones(text: str, native: tuple[str, ...]) -> None:
    assert tuple(one.replace("**", "*") for one in native_rules(text)) == native


def test_the_home_folder_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    assert native_rules("Glob(~/x)") == ("list_files(/home/u/x)",)


def test_foreign_rules_in_a_file_hold_as_native_ones() -> None:
    assert rules_in_force([KeptRule("Bash(git log:*)")], CWD) == [Rule("bash", "git log *")]
    [rule] = denials_in_force([KeptRule("deny Bash(git push:*)")], CWD).rules
    assert str(rule) == "bash(git push *)"


def test_a_foreign_rule_is_accepted_by_hand_with_its_native_effect() -> None:
    desk = rule_desk({})
    assert desk.problem("Bash(make test:*)") == desk.problem("deny Bash(git push:*)") == ""
    assert "git push" in desk.effect("deny Bash(git push:*)")
    assert "can start other programs" in desk.problem("Bash(git:*)")


def test_a_profile_may_name_tools_as_others_do() -> None:
    text = "---\ntools: Read, Grep, Bash\n---\nx"
    assert parse_profile(text, Path("/p/a.md")).tools == ("read_file", "read_image", "search", "bash")
    with pytest.raises(ProfileError, match="there is no tool 'Nothing'"):
        parse_profile("---\ntools: Nothing\n---\n", Path("/p/a.md"))


PROJECT = Path("/project")
NAME = "mcp__files__read"
SPEC = ToolSpec(NAME, "Reads.", {"type": "object"}, ToolClass.RUN)


def call(server: str) -> RuledCall:
    return RuledCall(NAME, ToolClass.RUN, ToolRequest("files: read", server=server), PROJECT)


def test_a_kept_rule_is_void_once_the_server_is_another_program() -> None:
    rule = suggest(SPEC, call("abc").request, PROJECT)
    assert rule == Rule(NAME, "server:abc")
    assert allows(rule, call("abc"))
    assert not allows(rule, call("abd"))
    assert not allows(rule, call(""))
    assert not allows(Rule(NAME, "server:"), call(""))
    assert refusal(str(rule), call("abd")).startswith("This rule does not match")


def test_a_written_rule_holds_for_any_definition() -> None:
    assert allows(Rule(NAME, "*"), call("abc"))
    assert allows(Rule("mcp__files__*", "*"), call("abd"))
    assert allows(Rule("mcp__files__*", "server:abd"), call("abd"))


def test_the_effect_of_a_kept_rule_says_that_it_is_bound() -> None:
    rule = Rule(NAME, "server:abc")
    assert effect(rule, ToolClass.RUN) == "Allows every files: read, until its server is changed."


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"command": ("other",)}, False),
        ({"cwd": "/else"}, False),
        ({"origin": ServerOrigin.PROJECT}, False),
        ({"url": "https://a.example"}, False),
        ({"timeout_ms": 5_000}, True),
        ({"environment": {"TOKEN": "new"}}, True),
    ],
)
def test_another_command_or_address_has_another_mark(changes: dict[str, object], same: bool) -> None:
    made = stdio()
    assert (definition_mark(replace(made, **changes)) == definition_mark(made)) is same


async def test_calls_of_a_server_carry_its_mark(tmp_path: Path) -> None:
    async with hub_in(tmp_path, stdio()) as one:
        await one.hub.prepare(one.record)
        request = await one.hub.tools(one.record)["mcp__kinds__echo"].request({}, tmp_path)
    assert request.server == definition_mark(stdio())
