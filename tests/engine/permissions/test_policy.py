"""The permission modes and rules of CONTRACT 6 for every class of tools, with the tricks of FAULTS 67."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from engine.permissions.hosts import host_name
from engine.permissions.place import PathPlace
from engine.permissions.policy import Allow, Ask, Decision, Deny, Limits, decide
from engine.permissions.rules import (
    READING,
    WEB,
    Rule,
    RuledCall,
    class_named,
    covers,
    effect,
    matches,
    parse_rule,
    refusal,
    suggest,
    why_nothing_matches,
)
from engine.records import PermissionMode
from tools.contract import (
    AS_IN_A_SHELL,
    Access,
    DiffDisplay,
    Enforcement,
    SandboxMode,
    ToolClass,
    ToolRequest,
    ToolSpec,
)
from tools.planning import ExitPlan, TodoWrite

CWD = Path("/work/project")
INSIDE = (CWD / "src/a.py",)
OUTSIDE = (Path("/etc/passwd"),)
SPILL = Path("/state/output")
BASH = ToolSpec("bash", "", {}, ToolClass.RUN)


def decision(tool_class: ToolClass, mode: str, paths: tuple[Path, ...] = INSIDE) -> Decision:
    spec = ToolSpec("tool", "", {}, tool_class)
    return decide(spec, ToolRequest("x", paths), Limits(PermissionMode(mode)), PathPlace(CWD, (SPILL,)), {})


@pytest.mark.parametrize(
    ("mode", "read", "edit", "run"),
    [
        ("ask", Allow, Ask, Ask),
        ("accept-edits", Allow, Allow, Ask),
        ("auto", Allow, Allow, Allow),
        ("plan", Allow, Deny, Deny),
        ("deny", Allow, Deny, Deny),
    ],
)
def test_each_mode_treats_each_class_as_written(mode: str, read: type, edit: type, run: type) -> None:
    assert isinstance(decision(ToolClass.READ, mode), read)
    assert isinstance(decision(ToolClass.EDIT, mode), edit)
    assert isinstance(decision(ToolClass.RUN, mode), run)
    assert isinstance(decision(ToolClass.SPAWN, mode), run)


@pytest.mark.parametrize(
    ("mode", "expected"), [("ask", Ask), ("accept-edits", Ask), ("auto", Allow), ("plan", Deny), ("deny", Deny)]
)
@pytest.mark.parametrize("tool_class", [ToolClass.READ, ToolClass.EDIT])
def test_a_path_outside_the_folder_asks_or_is_refused(mode: str, expected: type, tool_class: ToolClass) -> None:
    assert isinstance(decision(tool_class, mode, OUTSIDE), expected)


@pytest.mark.parametrize(
    ("path", "mode", "tool_class", "enforcement", "expected"),
    [
        ("/etc/hostname", "auto", ToolClass.READ, Enforcement.FULL, Allow),
        ("/etc/hostname", "accept-edits", ToolClass.READ, Enforcement.FULL, Ask),
        ("/etc/hostname", "auto", ToolClass.EDIT, Enforcement.FULL, Ask),
        ("/etc/hostname", "auto", ToolClass.READ, Enforcement.NONE, Ask),
        ("/home/other/notes", "auto", ToolClass.READ, Enforcement.FULL, Ask),
        ("/etcetera", "auto", ToolClass.READ, Enforcement.FULL, Ask),
    ],
)
def test_auto_reads_the_files_of_the_system_that_its_commands_may_read(
    path: str, mode: str, tool_class: ToolClass, enforcement: Enforcement, expected: type
) -> None:
    spec, request = ToolSpec("tool", "", {}, tool_class), ToolRequest("x", (INSIDE[0], Path(path)))
    limits = Limits(PermissionMode(mode), SandboxMode.WORKSPACE, enforcement=enforcement)
    assert isinstance(decide(spec, request, limits, PathPlace(CWD, (SPILL,)), {}), expected)


def test_reading_spilled_output_is_free_and_writing_it_is_not() -> None:
    spilled = (SPILL / "bash-1.txt",)
    assert isinstance(decision(ToolClass.READ, "ask", spilled), Allow)
    assert isinstance(decision(ToolClass.EDIT, "accept-edits", spilled), Ask)


def test_a_question_says_in_plain_words_why_it_is_asked() -> None:
    as_in_a_shell = Allow(outside=True, sandbox=AS_IN_A_SHELL)
    assert decision(ToolClass.RUN, "ask") == Ask("in ask mode, commands need approval", as_in_a_shell)
    assert decision(ToolClass.EDIT, "ask") == Ask("in ask mode, edits need approval", Allow())
    assert decision(ToolClass.RUN, "accept-edits") == Ask("in accept-edits mode, commands need approval", as_in_a_shell)


def test_the_model_reads_which_mode_refused_which_tool() -> None:
    assert decision(ToolClass.RUN, "plan") == Deny("Permission mode 'plan' does not allow tool.")


def allowed(pattern: str, command: str) -> bool:
    return matches(Rule("bash", pattern), BASH, ToolRequest(command), CWD)


@pytest.mark.parametrize("command", ["git status", "git status --short", "git status -sb src"])
def test_a_rule_with_a_star_allows_the_command_with_more_words(command: str) -> None:
    assert allowed("git status*", command)


@pytest.mark.parametrize(
    "command",
    [
        "git status && rm x", "git status; rm x", "git status | sh", "git status > /etc/passwd",
        "git status $(rm x)", "git status `rm x`", "git status\nrm x", "git status &", "env git status",
        "X=1 git status", "git statusx", "git push", "git status *",
    ],
)  # fmt: skip
def test_a_rule_never_allows_what_the_shell_would_make_of_more(command: str) -> None:
    assert not allowed("git status*", command)


def test_an_exact_rule_allows_exactly_its_command_even_with_shell_syntax() -> None:
    assert allowed("make a && make b", "make a && make b")
    assert not allowed("make a && make b", "make a && make b && rm x")


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("make test", "make test"),
        ("git log -3", "git log*"),
        ("npm run build --watch", "npm run build --watch"),
        ("rm -r build", "rm -r build"),
        ("sudo make install", "sudo make install"),
        ("./run.sh now", "./run.sh now"),
        ("make test && make lint", "make test && make lint"),
        ("echo 'unclosed", "echo 'unclosed"),
    ],
)
def test_always_offers_the_command_itself_or_the_first_words_of_one_that_reads(command: str, pattern: str) -> None:
    assert suggest(BASH, ToolRequest(command), CWD) == Rule("bash", pattern)


def test_a_path_rule_is_offered_whole_and_covers_every_path() -> None:
    spec = ToolSpec("patch", "", {}, ToolClass.EDIT)
    assert suggest(spec, ToolRequest("src/a.py", INSIDE), CWD) == Rule("patch", "/work/project/src/a.py")
    assert matches(Rule("patch", "src/*"), spec, ToolRequest("", INSIDE), CWD)
    assert not matches(Rule("patch", "src/*"), spec, ToolRequest("", (*INSIDE, *OUTSIDE)), CWD)


def test_a_rule_survives_being_written_and_read() -> None:
    rule = Rule("bash", "make (a) test*")
    assert parse_rule(str(rule)) == rule
    assert parse_rule("make test") is None


FETCH = ToolSpec("web_fetch", "", {}, ToolClass.NET)
SERVER = ToolSpec("mcp__files__read_all", "", {}, ToolClass.RUN)
TABLE = {
    "read": {"ask": "allow", "accept-edits": "allow", "auto": "allow", "plan": "allow", "deny": "allow"},
    "edit": {"ask": "ask", "accept-edits": "allow", "auto": "allow", "plan": "deny", "deny": "deny"},
    "run": {"ask": "ask", "accept-edits": "ask", "auto": "allow", "plan": "deny", "deny": "deny"},
    "spawn": {"ask": "ask", "accept-edits": "ask", "auto": "allow", "plan": "deny", "deny": "deny"},
    "net": {"ask": "ask", "accept-edits": "ask", "auto": "allow", "plan": "ask", "deny": "deny"},
}


def word(decision: Decision) -> str:
    return {Allow: "allow", Ask: "ask", Deny: "deny"}[type(decision)]


def decided(spec: ToolSpec, request: ToolRequest, limits: Limits, *rules: str) -> Decision:
    parsed = {rule: Access.CONFINED for text in rules if (rule := parse_rule(text)) is not None}
    return decide(spec, request, limits, PathPlace(CWD), parsed)


def test_the_table_has_every_mode_and_class() -> None:
    assert set(TABLE) == {one.value for one in ToolClass}
    assert all(set(row) == {one.value for one in PermissionMode} for row in TABLE.values())


@pytest.mark.parametrize(("mode", "tool_class"), list(itertools.product(PermissionMode, ToolClass)))
def test_each_mode_decides_about_each_class_as_the_table_says(mode: PermissionMode, tool_class: ToolClass) -> None:
    paths = (CWD / "a.py",) if tool_class in {ToolClass.READ, ToolClass.EDIT} else ()
    decision = decided(ToolSpec("tool", "", {}, tool_class), ToolRequest("x", paths), Limits(mode))
    assert word(decision) == TABLE[tool_class.value][mode.value]


@pytest.mark.parametrize("mode", PermissionMode)
@pytest.mark.parametrize("box", SandboxMode)
def test_a_server_tool_is_never_free_because_commands_have_a_sandbox(mode: PermissionMode, box: SandboxMode) -> None:
    limits = Limits(mode, box, enforcement=Enforcement.FULL)
    assert word(decided(SERVER, ToolRequest("all"), limits)) == TABLE["run"][mode.value]
    outside = decided(SERVER, ToolRequest("all", access=Access.OUTSIDE), limits)
    leaves = mode is PermissionMode.AUTO and box is not SandboxMode.OFF
    assert word(outside) == ("ask" if leaves else TABLE["run"][mode.value])


def test_web_tools_ask_in_auto_where_the_network_is_switched_off() -> None:
    boxed = Limits(PermissionMode.AUTO, SandboxMode.WORKSPACE, network=False, enforcement=Enforcement.FULL)
    request = ToolRequest("https://example.com/", host="example.com")
    assert decided(FETCH, request, boxed) == Ask("sandbox_network is off")
    assert isinstance(decided(FETCH, request, boxed, "web_fetch(domain:example.com)"), Allow)


@pytest.mark.parametrize("mode", PermissionMode)
def test_a_domain_rule_answers_the_question_also_in_plan_mode_and_never_in_deny(mode: PermissionMode) -> None:
    request = ToolRequest("https://example.com/", host="example.com")
    expected = "deny" if mode is PermissionMode.DENY else "allow"
    assert word(decided(FETCH, request, Limits(mode), "web_fetch(domain:example.com)")) == expected


@pytest.mark.parametrize(
    ("pattern", "host", "allowed"),
    [
        ("domain:example.com", "example.com", True),
        ("domain:example.com", "EXAMPLE.com.", True),
        ("domain:Example.COM", "example.com", True),
        ("domain:example.com", "www.example.com", False),
        ("domain:example.com", "example.com.evil.net", False),
        ("domain:example.com", "notexample.com", False),
        ("domain:*.example.com", "www.example.com", True),
        ("domain:*.example.com", "a.b.example.com", True),
        ("domain:*.example.com", "example.com", False),
        ("domain:*.example.com", "evilexample.com", False),
        ("domain:*", "example.com", False),
        ("domain:*.", "example.com", False),
        ("domain:*example.com", "www.example.com", False),
        ("domain:www.*.com", "www.example.com", False),
        ("domain:", "", False),
        ("domain:example.com", "", False),
        ("domain:example.com", "example.com/evil", False),
        ("domain:example.com", "user@example.com", False),
        ("domain:bücher.example", "xn--bcher-kva.example", True),
        ("domain:еxample.com", "example.com", False),
        ("*", "anything.at.all", True),
    ],
)
def test_a_domain_rule_means_the_very_host_or_those_below(pattern: str, host: str, allowed: bool) -> None:
    decision = decided(FETCH, ToolRequest("https://x/", host=host), Limits(PermissionMode.ASK), f"web_fetch({pattern})")
    assert isinstance(decision, Allow) is allowed


@pytest.mark.parametrize(
    "text", ["a" * 10**6, "ü" * 10**6, "." * 300, "a..b", "-a.b", "a b", "a\nb", "", ".", "*", "[::1]"]
)
def test_what_is_no_host_name_is_none(text: str) -> None:
    assert host_name(text) == ""


def test_the_host_is_what_a_question_about_the_web_offers() -> None:
    request = ToolRequest("https://Docs.Example.com/a", host="Docs.Example.com")
    assert suggest(FETCH, request, CWD) == Rule("web_fetch", "domain:docs.example.com")
    assert suggest(ToolSpec("web_search", "", {}, ToolClass.NET), ToolRequest("how"), CWD) == Rule("web_search", "*")
    call = RuledCall("web_fetch", ToolClass.NET, request, CWD)
    assert refusal("web_fetch(domain:other.org)", call) == "This rule does not match the host `Docs.Example.com`."
    assert refusal("web_fetch(domain:docs.example.com)", call) == ""
    assert effect(Rule("web_fetch", "domain:*.example.com"), ToolClass.NET) == (
        "Allows web_fetch of every host below `example.com`."
    )
    assert effect(Rule("web_fetch", "domain:a.org"), ToolClass.NET) == "Allows web_fetch of `a.org` only."
    assert "is no host name" in why_nothing_matches(Rule("web_fetch", "domain:a b"), ToolClass.NET)


@pytest.mark.parametrize(
    ("named", "tool", "narrow", "wide"),
    [
        ("mcp__files__read", "mcp__files__read", True, True),
        ("mcp__files__*", "mcp__files__read", True, True),
        ("mcp__files__*", "mcp__files__", False, False),
        ("mcp__files__*", "mcp__files", False, False),
        ("mcp__files__*", "mcp__filesystem__read", False, False),
        ("mcp__a__*", "mcp__a__b__read", False, True),
        ("mcp__my-files__*", "mcp__my-files__read", True, True),
        ("mcp__*", "mcp__files__read", False, False),
        ("mcp__fi*", "mcp__files__read", False, False),
        ("mcp____*", "mcp__files__read", False, False),
        ("bash__*", "bash__x", False, False),
        ("*", "bash", False, False),
        ("mcp__files__re*", "mcp__files__read", False, False),
    ],
)
def test_a_name_has_a_star_only_for_all_tools_of_one_server(named: str, tool: str, narrow: bool, wide: bool) -> None:
    assert covers(named, tool) is narrow
    assert covers(named, tool, widely=True) is wide


def test_a_rule_for_a_server_tool_is_about_the_tool_and_no_command() -> None:
    asks = Limits(PermissionMode.ASK, SandboxMode.WORKSPACE, enforcement=Enforcement.FULL)
    request = ToolRequest("make test")
    assert isinstance(decided(SERVER, request, asks, "mcp__files__read_all(*)"), Allow)
    assert isinstance(decided(SERVER, request, asks, "mcp__files__*(*)"), Allow)
    assert isinstance(decided(SERVER, request, asks, "mcp__files__read_all(make*)", "bash(make*)"), Ask)
    assert suggest(SERVER, request, CWD) == Rule("mcp__files__read_all", "*")
    assert why_nothing_matches(Rule("mcp__files__*", "*"), ToolClass.RUN) == ""
    assert "only as in mcp__SERVER__*" in why_nothing_matches(Rule("mcp__*", "*"), ToolClass.RUN)


def test_tools_that_are_not_there_have_their_class_all_the_same() -> None:
    assert {name: class_named(name) for name in READING} == dict.fromkeys(READING, ToolClass.READ)
    assert {name: class_named(name) for name in WEB} == dict.fromkeys(WEB, ToolClass.NET)
    assert class_named("mcp__x__y") is ToolClass.RUN
    assert class_named("unknown") is None
    assert {ExitPlan().spec.tool_class, TodoWrite().spec.tool_class} == {ToolClass.READ}


@pytest.mark.parametrize("mode", ["ask", "accept-edits", "auto"])
def test_an_edit_that_changes_nothing_does_not_ask_unless_its_path_does(mode: str) -> None:
    spec = ToolSpec("write_file", "", {}, ToolClass.EDIT)
    limits, place = Limits(PermissionMode(mode)), PathPlace(CWD, (SPILL,))

    def decided(paths: tuple[Path, ...], change: DiffDisplay) -> Decision:
        return decide(spec, ToolRequest("x", paths, change), limits, place, {})

    assert decided(INSIDE, DiffDisplay("src/a.py", "", 0, 0)) == Allow()
    assert isinstance(decided((CWD / ".git/config",), DiffDisplay(".git/config", "", 0, 0)), Ask)
    if mode != "auto":
        assert isinstance(decided(OUTSIDE, DiffDisplay("/etc/passwd", "", 0, 0)), Ask)
    if mode == "ask":
        assert isinstance(decided(INSIDE, DiffDisplay("src/a.py", "", 0, 0, created=True)), Ask)
        assert isinstance(decided(INSIDE, DiffDisplay("src/a.py", "-a\n+b", 1, 1)), Ask)


def test_sub_agents_that_only_read_do_not_ask() -> None:
    spec, place = ToolSpec("spawn_agents", "", {}, ToolClass.SPAWN), PathPlace(CWD, (SPILL,))

    def decided(mode: str, *, reads_only: bool) -> Decision:
        request = ToolRequest("1 sub-agent: x", mode="plan", reads_only=reads_only)
        return decide(spec, request, Limits(PermissionMode(mode)), place, {})

    assert isinstance(decided("ask", reads_only=True), Allow)
    assert isinstance(decided("ask", reads_only=False), Ask)
    assert isinstance(decided("deny", reads_only=True), Deny)
