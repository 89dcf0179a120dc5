"""Rules of `.claude/settings.json`: those that narrow count at once, those that allow once trusted."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from engine.executor.requests import EngineError
from engine.permissions.denials import Doubt, Refusal, denials_in, verdict_on
from engine.permissions.place import project_of
from engine.permissions.rules import RuledCall, rules_in_force
from phoenix_tui.cli.arguments import run_arguments
from phoenix_tui.cli.parser import run_parser
from phoenix_tui.cli.setup import prepare
from phoenix_tui.config.claude_settings import FOREIGN_MODES, ClaudeRules, parse_settings, settings_faults
from phoenix_tui.config.rules import RuleFile
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.trust import TrustFile
from phoenix_tui.features.permissions import RuleChanges
from phoenix_tui.wiring.boards import source_findings
from tests.support.fake_rules import rule_desk
from tools.contract import ToolClass, ToolRequest


class World:
    """A project with a settings file, a home folder, and the rules over them."""

    def __init__(self, folder: Path, *, claude_hooks: bool = False) -> None:
        self.home, self.config, self.project = folder / "home", folder / "config", folder / "project"
        for path in (self.home / ".claude", self.config, self.project / ".claude", self.project):
            path.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "-q", self.project], check=True)
        trust = TrustFile(self.config / "trust.json")
        self.sources = ProjectSources(self.config, self.home, trust, claude_hooks=claude_hooks)
        self.book = ClaudeRules(RuleFile(self.config / "rules.toml"), self.sources)

    def write(self, value: Any, name: str = "settings.json", *, home: bool = False) -> Path:
        path = (self.home if home else self.project) / ".claude" / name
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    def rules(self, **permissions: list[str]) -> Path:
        return self.write({"permissions": permissions})

    def trust(self) -> None:
        self.sources.answer(self.project, trusted=True)

    def allowed(self) -> list[str]:
        kept = self.book.rules(self.project)
        return [str(rule) for rule in rules_in_force(kept, project_of(self.project))]

    def verdict(self, tool: str, command: str = "", path: str = "") -> str:
        paths = (self.project / path,) if path else ()
        request = ToolRequest(command or path, paths, command=command)
        tool_class = ToolClass.RUN if command else ToolClass.READ
        denials = denials_in(self.book, self.project)
        match verdict_on(denials, RuledCall(tool, tool_class, request, self.project)):
            case Refusal():
                return "deny"
            case Doubt():
                return "ask"
            case _:
                return ""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_rules_that_deny_or_ask_count_before_the_folder_is_trusted(world: World) -> None:
    world.rules(deny=["Bash(git push:*)", "Read(./.env)"], ask=["Bash(npm publish:*)"], allow=["Bash(make test:*)"])
    assert world.verdict("bash", "git push origin") == "deny"
    assert world.verdict("bash", "echo a && git push") == "deny"
    assert world.verdict("bash", "npm publish --tag x") == "ask"
    assert world.verdict("read_file", path=".env") == "deny"
    assert world.verdict("search", path=".env") == "deny"
    assert world.verdict("bash", "make test") == ""
    assert world.allowed() == []


def test_rules_that_allow_count_once_the_file_is_trusted_as_it_is(world: World) -> None:
    path = world.rules(allow=["Bash(make test:*)", "WebFetch(domain:example.com)", "mcp__notes__look"])
    world.sources.look(world.project)
    assert world.allowed() == []
    world.trust()
    assert world.allowed() == ["bash(make test *)", "web_fetch(domain:example.com)", "mcp__notes__look(*)"]
    path.write_text(json.dumps({"permissions": {"allow": ["Bash(make:*)"]}}))
    assert world.allowed() == []


def test_the_local_file_and_those_of_folders_above_count_too(world: World) -> None:
    below = world.project / "part"
    (below / ".claude").mkdir(parents=True)
    world.write({"permissions": {"deny": ["Bash(git push:*)"]}}, "settings.local.json")
    (below / ".claude" / "settings.json").write_text('{"permissions": {"deny": ["Read(secret)", "Read(/key)"]}}')
    texts = [rule.text for rule in world.book.rules(below)]
    assert "deny bash(git push *)" in texts
    assert f"deny read_file({below}/secret)" in texts
    assert f"deny search({below}/key)" in texts


def test_the_local_file_of_a_repository_narrows_in_its_worktrees(world: World) -> None:
    world.write({"permissions": {"deny": ["Read(.env)"], "allow": ["Bash(make:*)"]}}, "settings.local.json")
    git = ("git", "-C", str(world.project), "-c", "user.name=u", "-c", "user.email=u@example.com")
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    tree = world.project.parent / "tree"
    subprocess.run([*git, "worktree", "add", "-q", str(tree)], check=True)
    found = denials_in(world.book, tree)
    assert {str(one) for one in found.rules if one.rule.tool == "read_file"} == {
        f"read_file({world.project}/.env)",
        f"read_file({tree}/.env)",
    }
    assert rules_in_force(world.book.rules(tree), project_of(tree)) == []


def test_rules_are_listed_with_their_file_as_they_stand_there_and_changed_there_alone(world: World) -> None:
    path = world.rules(deny=["Read(./.env)"], ask=["Bash(npm publish:*)"], allow=["mcp__notes"])
    world.trust()
    desk = rule_desk({}, world.book)
    found = desk.all(world.project)
    assert [(one.text, one.file) for one in found] == [
        ("deny Read(./.env)", str(path)),
        ("ask Bash(npm publish:*)", str(path)),
        ("mcp__notes__*(*)", str(path)),
    ]
    assert desk.all() == ()
    changes = RuleChanges(desk, "u restores it")
    with pytest.raises(EngineError, match=f"This rule stands in {path}; change it there."):
        changes.remove(found[0])
    with pytest.raises(EngineError, match="change it there"):
        changes.move(found[0], str(world.project))
    assert changes.undo() == "There is nothing to undo."


def test_the_doctor_counts_the_rules_of_each_file(world: World) -> None:
    world.rules(deny=["Read(./.env)"], allow=["Bash(make:*)"])
    world.write({"permissions": {"ask": ["Bash(git push:*)"]}}, home=True)

    def said() -> list[str]:
        found = source_findings(world.sources, world.project)
        return [one.text.partition(": ")[2].partition(";")[0] for one in found if one.topic == "rules"]

    assert said() == ["1 deny, 0 ask, 1 allow (not in force before you trust it)", "0 deny, 1 ask, 0 allow"]
    world.trust()
    assert said() == ["1 deny, 0 ask, 1 allow", "0 deny, 1 ask, 0 allow"]


def test_a_further_folder_is_read_once_the_file_is_trusted_and_a_missing_one_is_named(world: World) -> None:
    more = world.project.parent / "more"
    more.mkdir()
    path = world.rules(additionalDirectories=["../more", "../gone"])
    assert world.allowed() == []
    world.trust()
    assert {f"read_file({more})", f"read_file({more}/*)", f"search({more}/*)"} <= set(world.allowed())
    assert not [rule for rule in world.allowed() if rule.startswith(("write_file", "patch"))]
    assert settings_faults([path]) == [f"{path}: the folder ../gone cannot be added: there is none."]


@pytest.mark.parametrize(
    ("users", "theirs", "mode", "notice"),
    [
        ("", "plan", "plan", False),
        ("auto", "default", "ask", False),
        ("auto", "acceptEdits", "accept-edits", False),
        ("", "default", "", False),
        ("ask", "bypassPermissions", "ask", True),
        ("plan", "acceptEdits", "plan", True),
        ("", "odd", "", False),
    ],
)
def test_the_mode_of_a_settings_file_only_narrows_and_needs_no_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, users: str, theirs: str, mode: str, notice: bool
) -> None:
    world = World(tmp_path)
    world.rules(defaultMode=cast("Any", theirs))
    monkeypatch.setenv("HOME", str(world.home))
    if users:
        (world.config / "config.toml").write_text(f'permission_mode = "{users}"\n')
    environment = {"PHOENIX_HOME": str(world.config), "HOME": str(world.home)}
    settings = prepare(run_arguments(run_parser().parse_args(["-C", str(world.project)])), environment).settings
    assert settings.text("permission_mode") == mode
    assert bool(settings.notices) is notice


def test_a_users_file_narrows_and_allows_only_where_its_use_was_chosen(tmp_path: Path) -> None:
    for chosen in (False, True):
        world = World(tmp_path / str(chosen), claude_hooks=chosen)
        world.write({"permissions": {"deny": ["Bash(git push:*)"], "allow": ["Bash(make:*)"]}}, home=True)
        world.sources.look(world.project)
        assert world.verdict("bash", "git push") == "deny"
        assert world.allowed() == (["bash(make *)"] if chosen else [])


@pytest.mark.parametrize(
    ("text", "native"),
    [
        ("Bash", ["deny bash(*)"]),
        ("Bash(git push *)", ["deny bash(git push *)"]),
        ("Edit(docs/**)", ["deny patch({}/docs/*)", "deny write_file({}/docs/*)"]),
        ("Read(//etc/x)", ["deny read_file(/etc/x)", "deny read_image(/etc/x)", "deny search(/etc/x)"]),
        ("Read(../x)", ["deny read_file({up}/x)"]),
        ("mcp__notes", ["deny mcp__notes__*(*)"]),
        ("mcp__notes__look", ["deny mcp__notes__look(*)"]),
        ("NotebookEdit", []),
    ],
)
def test_the_syntax_of_rules_is_read_as_it_is_written_there(world: World, text: str, native: list[str]) -> None:
    world.rules(deny=[text])
    found = [rule.text for rule in world.book.rules(world.project)]
    expected = [one.format(world.project, up=world.project.parent) for one in native]
    assert found[: len(expected)] == expected
    assert bool(found) is bool(expected)


def test_a_file_that_cannot_be_read_makes_calls_ask(world: World) -> None:
    world.write('{"permissions": {"deny": [')
    assert world.verdict("bash", "ls") == "ask"
    world.write('{"permissions": {"deny": 7}}')
    assert world.verdict("bash", "ls") == ""


def test_each_key_without_an_effect_and_each_malformed_value_is_named_once(world: World) -> None:
    path = world.write({
        "permissions": {"deny": [7, "Fax(x)", "Bash(rm:*)"], "ask": "x", "defaultMode": "odd", "x": 1},
        "env": {"A": "b"},
        "model": "opus",
        "statusLine": {"type": "command", "command": "x"},
        "enableAllProjectMcpServers": True,
        "hooks": {},
        "$schema": "x",
    })
    assert settings_faults([path, path]) == [
        f"{path}: permissions.ask must be a list of rules.",
        f"{path}: permissions.deny has an entry that is no rule.",
        f"{path}: the rule “Fax(x)” of permissions.deny: there is no such tool.",
        f"{path}: without effect here: enableAllProjectMcpServers (/trust and /mcp decide), env, model (/model chooses "
        "it), permissions.x, statusLine ([status_line] of config.toml is yours).",
        f"{path}: permissions.defaultMode must be one of {', '.join(FOREIGN_MODES)}.",
    ]
    assert world.verdict("bash", "rm x") == "deny"


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"\xff", b'{"a": 1, "a": 2}', b"[" * 100_000, b'{"permissions": 7}']
)
def test_any_content_is_read_without_an_error(content: bytes) -> None:
    found = parse_settings(content)
    assert found.faults
    assert (found.allow, found.ask, found.deny) == ((), (), ())
