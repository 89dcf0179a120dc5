"""Rules of `.claude/settings.json`, front matter, and instruction files with faults."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.executor.requests import EngineError
from engine.permissions.denials import Doubt, Refusal, denials_in, verdict_on
from engine.permissions.place import project_of
from engine.permissions.rules import RuledCall, rules_in_force
from phoenix_tui.cli.arguments import run_arguments
from phoenix_tui.cli.parser import run_parser
from phoenix_tui.cli.setup import prepare
from phoenix_tui.config.claude_settings import FOREIGN_MODES, ClaudeRules, parse_settings, settings_faults
from phoenix_tui.config.front_matter import LARGEST, FrontMatterError, FrontMatterValue, read_front_matter
from phoenix_tui.config.imports import import_names
from phoenix_tui.config.instructions import instruction_faults
from phoenix_tui.config.rules import RuleFile
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.trust import TrustFile, find_project
from phoenix_tui.features.permissions import RuleChanges
from phoenix_tui.wiring.boards import source_findings
from tests.support.cli import phoenix_in
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


def values(inner: str) -> dict[str, FrontMatterValue]:
    return dict(read_front_matter(f"---\n{inner}\n---\nbody").values)


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("a: x", {"a": "x"}),
        ("a:", {"a": ""}),
        ("a: x # comment", {"a": "x"}),
        ("a: x#y", {"a": "x#y"}),
        ("# comment\n\na: x", {"a": "x"}),
        ('a: "x: \\"y\\" \\u00e9"', {"a": 'x: "y" é'}),
        ("a: 'it''s' # c", {"a": "it's"}),
        ("a: |\n  one\n    two\n\n  three\nb: y", {"a": "one\n  two\n\nthree\n", "b": "y"}),
        ("a: |-\n  one\n\n", {"a": "one"}),
        ("a: >\n  one\n  two\n\n  three", {"a": "one two\nthree\n"}),
        ("a: >-\n  one\n  two: x", {"a": "one two: x"}),
        ("a: [x, 'y, z', \"w\"]", {"a": ("x", "y, z", "w")}),
        ("a: [\n  x,\n  y,\n]\nb: z", {"a": ("x", "y"), "b": "z"}),
        ("a: []", {"a": ()}),
        ("a:\n  - x\n  - 'y: z'\nb: w", {"a": ("x", "y: z"), "b": "w"}),
        ("a:\n- x\n- y", {"a": ("x", "y")}),
        ("a: {x: 1, y: two}", {"a": {"x": "1", "y": "two"}}),
        ("a:\n  x: 1\n  y: 'two'\nb: z", {"a": {"x": "1", "y": "two"}, "b": "z"}),
        ("a: one\n  two", {"a": "one two"}),
        ("allowed-tools: Bash(git log:*), Read", {"allowed-tools": "Bash(git log:*), Read"}),
        ("description: Use this: always", {"description": "Use this: always"}),
        ("description: *bold* start\nb: [x", {"description": "*bold* start", "b": "[x"}),
        ('a: "open', {"a": '"open'}),
        ("a:\n- x: y\n- @z", {"a": ("x: y", "@z")}),
        ("true: yes\nn: 1.0\nd: 2026-01-01\nz: null", {"true": "yes", "n": "1.0", "d": "2026-01-01", "z": "null"}),
    ],
)
def test_what_people_write_is_read(inner: str, expected: dict[str, FrontMatterValue]) -> None:
    assert values(inner) == expected
    assert values(inner.replace("\n", "\r\n")) == expected


@pytest.mark.parametrize(
    ("inner", "line", "said"),
    [
        ("a: x\na: y", 3, "a second time"),
        ("a: x\n  b", 0, ""),
        ("  a: x", 2, "is indented"),
        ("a: x\nnonsense", 3, "is not 'key: value'"),
        ("a:\n  b:\n    c: x", 3, "more deeply than one level"),
        ("a:\n  - x\n  y", 4, "is not '- item'"),
        ("a:\n  - x\n  y: z", 4, "is not '- item'"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(inner: str, line: int, said: str) -> None:
    if not line:
        assert values(inner) == {"a": "x b"}
        return
    fault = next(iter(read_front_matter(f"---\n{inner}\n---\nbody").left_out.values()))
    assert fault.line == line
    assert re.search(said, fault.sentence)


def test_the_body_begins_behind_the_fence_and_a_file_without_one_is_all_body() -> None:
    found = read_front_matter("\ufeff---\r\na: x\r\n---\r\n\r\nHello\r\n")
    assert (found.values, found.lines, found.body) == ({"a": "x"}, {"a": 2}, "\nHello\n")
    assert read_front_matter("Hello\n---\na: x\n---").values == {}
    assert read_front_matter("").body == ""
    assert read_front_matter("---\n---\nx").body == "x"
    with pytest.raises(FrontMatterError, match="no closing '---'"):
        read_front_matter("---\na: x")


def test_front_matter_is_bounded() -> None:
    with pytest.raises(FrontMatterError, match="larger than 64 KB"):
        read_front_matter("---\na: " + "x" * LARGEST + "\n---\n")
    keys = read_front_matter("---\n" + "\n".join(f"k{n}: x" for n in range(201)) + "\n---\n")
    assert (len(keys.values), list(keys.left_out)) == (200, ["k200"])
    assert "at most 200" in keys.left_out["k200"].sentence
    items = read_front_matter("---\na:\n" + "- x\n" * 2_001 + "b: y\n---\n")
    assert (dict(items.values), list(items.left_out)) == ({"b": "y"}, ["a"])
    assert "at most 2,000" in items.left_out["a"].sentence
    for unit in (
        "[",
        "{",
        "- ",
        '"',
        "'",
        "a: [",
        "a:\n ",
        ": ",
        "\\",
        '"\\',
        "''",
        "#",
        "|\n",
        "a: >\n",
        "\n",
        ",",
        "[,",
    ):
        for start in ("", "a: ", "a:\n  ", "a: [", 'a: "', "a: '", "a: {"):
            text = f"---\n{start}{unit * (60_000 // len(unit))}\n---\n"
            try:
                read_front_matter(text)
            except FrontMatterError as error:
                assert len(error.sentence) < 300


SOUP = st.lists(
    st.sampled_from(["a", "b", ":", ": ", " ", "  ", "\n", "\n  ", "- ", "[", "]", "{", "}", ",", "'", '"', "#", " #",
                     "|", ">", "|-\n", "\\", "---", "\r\n", "\t", "é", "\x00", "&", "*", "!"]),
    max_size=30,
).map("".join)  # fmt: skip


@given(SOUP | st.text(max_size=200))
def test_any_text_gives_values_or_the_written_error(inner: str) -> None:
    for text in (f"---\n{inner}\n---\n", inner):
        try:
            found = read_front_matter(text)
        except FrontMatterError as error:
            assert 1 <= error.line <= text.count("\n") + text.count("\r") + 1
        else:
            assert set(found.lines) == set(found.values)


@given(st.dictionaries(st.from_regex(r"[a-z][a-z_-]{0,8}", fullmatch=True), st.text(max_size=40), max_size=5))
def test_a_quoted_text_comes_back_whole(pairs: dict[str, str]) -> None:
    clean = {key: text.replace("\r", "").replace("\n", " ").replace("'", "").strip() for key, text in pairs.items()}
    assert values("\n".join(f"{key}: '{text}'" for key, text in clean.items())) == clean


def test_a_value_that_cannot_be_read_costs_its_key_alone() -> None:
    text = """---
name: deploy
hooks:
  PreToolUse:
    - matcher: Bash
      hooks:
        - type: command
          command: "./check.sh"
metadata:
  author: me
  nested:
    deep: [1, {a: b}]
allowed-tools: [
  Read,
  Bash(git *)
]
steps:
- name: one
  run: a
- name: two
description: Ships: it
---
body
"""
    found = read_front_matter(text)
    assert dict(found.values) == {
        "name": "deploy",
        "allowed-tools": ("Read", "Bash(git *)"),
        "description": "Ships: it",
    }
    assert set(found.left_out) == {"hooks", "metadata", "steps"}
    assert found.body == "body\n"
    assert {key: found.lines[key] for key in found.values} == {"name": 2, "allowed-tools": 13, "description": 21}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def faults(work: Path, *closed: str, trusts: bool = True) -> list[str]:
    trust = TrustFile(work.parent / "trust.json")
    if trusts:
        trust.answer(find_project(work), trusted=True)
    found = instruction_faults(work.parent / "own", work, trust, lambda path: path.name in closed)
    return [fault.replace(f"{work}/", "").replace(f"{work.parent}/", "") for fault in found]


def test_a_file_that_counts_is_no_fault(work: Path) -> None:
    (work / "AGENTS.md").write_text("Use tabs. See @more.md")
    (work / "more.md").write_text("More.")
    assert faults(work) == []


def test_a_folder_that_is_not_trusted(work: Path) -> None:
    (work / "AGENTS.md").write_text("Use tabs.")
    assert faults(work, trusts=False) == ["AGENTS.md is not used: this folder is not trusted yet."]
    faults(work)
    (work / "AGENTS.md").write_text("Use blanks.")
    wanted = "AGENTS.md is not used: files of this folder changed since you trusted it."
    assert faults(work, trusts=False) == [wanted]
    TrustFile(work.parent / "trust.json").answer(find_project(work), trusted=False)
    wanted = "AGENTS.md is not used: your answer was not to use the files of this folder."
    assert faults(work, trusts=False) == [wanted]


def test_a_rule_denies_to_read_it_or_an_import_of_it(work: Path) -> None:
    (work / "AGENTS.md").write_text("Use tabs. See @more.md")
    (work / "more.md").write_text("More.")
    assert faults(work, "more.md") == ["more.md is not used: a rule denies to read it."]
    assert faults(work, "AGENTS.md")[0] == "AGENTS.md is not used: a rule denies to read it."


def test_one_that_cannot_be_read_or_leads_out(work: Path) -> None:
    (work / "AGENTS.md").mkdir()
    assert faults(work) == ["AGENTS.md is not used: it is not a regular file."]
    (work / "AGENTS.md").rmdir()
    os.mkfifo(work / "AGENTS.md")
    assert faults(work) == ["AGENTS.md is not used: it is not a regular file."]
    (work / "AGENTS.md").unlink()
    (work.parent / "outside.md").write_text("Theirs.")
    for target in ("../outside.md", "nowhere.md"):
        (work / "AGENTS.md").symlink_to(target)
        assert faults(work) == ["AGENTS.md is not used: its links lead out of the folder, or nowhere."]
        (work / "AGENTS.md").unlink()
    (work.parent / "own" / "AGENTS.md").mkdir()
    assert faults(work) == ["own/AGENTS.md is not used: it is not a regular file."]


def test_one_that_is_too_long_is_said_to_be_cut(work: Path) -> None:
    (work / "AGENTS.md").write_text("x" * 50_000)
    (work.parent / "own" / "AGENTS.md").write_text("y" * (2 << 20))
    assert faults(work) == [
        "AGENTS.md is too long: only its first 40,000 characters of 50,000 are sent.",
        "own/AGENTS.md is too long: only its first 40,000 characters of more than 1,048,576 are sent.",
    ]


async def test_the_doctor_names_it_with_a_rule_of_the_user(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    (phoenix.cwd / "AGENTS.md").write_text("Use tabs.")

    async def said() -> list[str]:
        found = json.loads((await phoenix.run("doctor", "--json")).out)
        return [one["text"] for one in found if one["topic"] == "instructions"]

    path = phoenix.cwd / "AGENTS.md"
    assert await said() == [f"{path} is not used: this folder is not trusted yet."]
    phoenix.home.mkdir(exist_ok=True)
    (phoenix.home / "rules.toml").write_text('deny = ["read_file(AGENTS.md)"]\n')
    assert await said() == [f"{path} is not used: a rule denies to read it."]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("\ufeff@a.md", ["a.md"]),
        ("see @My\\ Docs/r.md.", ["My Docs/r.md"]),
        ("    @code.md", []),
        ("text\n\n    @code.md\n\n\t@more.md\n@b.md", ["b.md"]),
        ("text\n    @goes-on.md", ["goes-on.md"]),
        ("- item\n\n    @in-item.md", ["in-item.md"]),
        ("```\n@code.md\n```\n`@span.md` @c.md", ["c.md"]),
    ],
)
def test_names_are_found_outside_code(text: str, names: list[str]) -> None:
    assert list(import_names(text)) == names


def test_a_missing_file_is_named_and_a_person_is_not(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("@nope.md @nope.md @ann @scope/package @there.md\n")
    (tmp_path / "there.md").write_text("x")
    found = find_project(tmp_path)
    assert found.missing == ((tmp_path / "CLAUDE.md", "nope.md"),)
    assert [file.path.name for file in found.instructions()] == ["CLAUDE.md", "there.md"]


@pytest.mark.parametrize("name", [".claude/CLAUDE.md", "GEMINI.md"])
def test_instructions_for_other_programs_are_read_where_there_are_none_of_ours(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("Do.")
    assert [file.path for file in find_project(tmp_path).instructions()] == [path]
    (tmp_path / "AGENTS.md").write_text("Mine.")
    assert [file.path.name for file in find_project(tmp_path).instructions()] == ["AGENTS.md"]
