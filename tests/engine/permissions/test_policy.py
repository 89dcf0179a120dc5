"""The permission modes and rules of CONTRACT 6, with the tricks of FAULTS 67."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.permissions.place import PathPlace
from engine.permissions.policy import Allow, Ask, Decision, Deny, Limits, decide
from engine.permissions.rules import Rule, matches, parse_rule, suggest
from engine.records import PermissionMode
from tools.contract import AS_IN_A_SHELL, Enforcement, SandboxMode, ToolClass, ToolRequest, ToolSpec

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
        "git status && rm x",
        "git status; rm x",
        "git status | sh",
        "git status > /etc/passwd",
        "git status $(rm x)",
        "git status `rm x`",
        "git status\nrm x",
        "git status &",
        "env git status",
        "X=1 git status",
        "git statusx",
        "git push",
        "git status *",
    ],
)
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
