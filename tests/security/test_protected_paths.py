"""SECURITY V9, V10: protected and secret paths ask at every door, mode and rule; Phoenix's own are refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final, cast

import pytest

from engine.engine import ConversationOptions
from engine.executor.engine_settings import EngineSettings
from engine.machine.messages import TextBlock, ToolResultBlock
from engine.machine.states import AwaitingApproval, Idle
from engine.permissions.place import PathPlace
from engine.permissions.policy import Allow, Ask, Deny, Limits, decide
from engine.permissions.rules import KeptRule, Rule
from engine.records import PermissionMode
from engine.updates import Question
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.headless import read_images
from phoenix_tui.cli.setup import wide_folder
from phoenix_tui.config.paths import find_paths
from phoenix_tui.features.composing import read_image
from phoenix_tui.wiring.backend import own_paths
from tests.support.engine import PlainImages, StubTool, engine_harness, until
from tests.support.plain_runner import PlainRunner
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tools.contract import Access, Enforcement, ImageRejected, JsonObject, SandboxMode, Tool
from tools.file_tools import Patch, ReadFile, ReadImage, WriteFile
from tools.files.protected import SECRET_PLACES, SHELL_FILES, is_secret, secret_paths
from tools.files.writing import ReadLedger
from tools.search import ListFiles, Search

PLANTED: Final = "sk-planted-key"
ASKING: Final = (PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.AUTO)
REFUSING: Final = (PermissionMode.PLAN, PermissionMode.DENY)
WRITERS: Final = (WriteFile(ReadLedger()), Patch(ReadLedger()))
READERS: Final = (ReadFile(ReadLedger()), ReadImage(PlainImages()), ListFiles(), Search(PlainRunner()))
ANYTHING: Final = ("*", "/**", "**", "/*", "?*")
"""Patterns of rules, for every tool."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path.resolve() / "home"
    monkeypatch.setenv("HOME", str(home))
    for folder in (home / "project" / ".git", home / ".ssh", home / ".config" / "phoenix"):
        folder.mkdir(parents=True)
    for name in (".ssh/id", ".netrc", ".config/phoenix/credentials.toml", ".config/phoenix/rules.toml"):
        (home / name).write_text(PLANTED)
    return home


def place(home: Path, cwd: Path) -> PathPlace:
    paths = find_paths({"HOME": str(home)})
    return PathPlace(cwd, (paths.outputs,), own_paths(paths, cwd), home)


def arguments(tool: Tool, path: str) -> JsonObject:
    match tool.spec.name:
        case "write_file":
            return {"path": path, "content": "x"}
        case "patch":
            return {"path": path, "edits": [{"op": "append", "new": "x"}]}
        case "search":
            return {"pattern": "sk-", "path": path}
        case _:
            return {"path": path}


async def decided(tool: Tool, path: str, mode: PermissionMode, where: PathPlace) -> Allow | Ask | Deny:
    """Decision about a call with the tool's own request, under rules for anything."""
    request = await tool.request(arguments(tool, path), where.working_dir)
    rules = {Rule(tool.spec.name, pattern): Access.OUTSIDE for pattern in ANYTHING}
    limits = Limits(mode, SandboxMode.OFF, enforcement=Enforcement.NONE)
    return decide(tool.spec, request, limits, where, rules)


def control_paths() -> list[str]:
    files = ["AGENTS.md", ".envrc", ".mcp.json", "lefthook.yaml", ".npmrc", "x.code-workspace"]
    folders = [
        ".git/x",
        ".hg/x",
        ".svn/x",
        ".jj/x",
        ".vscode/tasks.json",
        ".claude/settings.json",
        ".other/config.toml",
    ]
    return [*folders, "deep/.git/hooks/x", "a/../.GIT/config", *files, *(f"d/{file}" for file in files)]


@pytest.mark.parametrize("tool", WRITERS, ids=lambda tool: tool.spec.name)
async def test_a_protected_path_asks_to_be_written_whatever_mode_and_rules_say(home: Path, tool: Tool) -> None:
    where = place(home, home / "project")
    paths = [*control_paths(), *(str(home / name) for name in (*SHELL_FILES, *SECRET_PLACES))]
    for path in paths:
        for mode in ASKING:
            decision = await decided(tool, path, mode, where)
            assert isinstance(decision, Ask), (path, mode)
            assert "outside the sandbox act on" in decision.reason or "folder of keys" in decision.reason
            assert not decision.lasting, "no rule takes the place of this question"
        for mode in REFUSING:
            assert isinstance(await decided(tool, path, mode, where), Deny), (path, mode)


@pytest.mark.parametrize("tool", READERS, ids=lambda tool: tool.spec.name)
@pytest.mark.parametrize("at_home", [False, True], ids=["project", "home"])
async def test_a_secret_place_asks_to_be_read(home: Path, tool: Tool, at_home: bool) -> None:
    where = place(home, home if at_home else home / "project")
    (home / "project" / "link").symlink_to(home / ".ssh")
    named = [str(home / name) for name in SECRET_PLACES]
    for path in (*named, "~/.ssh/id", str(home / "project" / "link" / "id"), f"{home}/project/../.netrc"):
        for mode in ASKING:
            decision = await decided(tool, path, mode, where)
            assert isinstance(decision, Ask), (path, mode)
            assert "folder of keys" in decision.reason
        for mode in REFUSING:
            assert isinstance(await decided(tool, path, mode, where), Deny), (path, mode)


@pytest.mark.parametrize("link", [".ssh", ".config", ".config/gh", ".local/share", ".cargo/credentials"])
@pytest.mark.parametrize("target", ["/", "elsewhere", "../home/.aws", "loop", "home/../elsewhere/deep"])
def test_a_place_of_keys_is_guarded_where_a_link_leads(tmp_path: Path, link: str, target: str) -> None:
    home = tmp_path.resolve() / "home"
    (home / link).parent.mkdir(parents=True, exist_ok=True)
    (home / link).symlink_to(home / link if target == "loop" else tmp_path.resolve() / target)
    leads = [Path(os.path.realpath(home / name)) for name in SECRET_PLACES]
    assert set(secret_paths(home)) == {*(home / name for name in SECRET_PLACES), *leads}
    assert all(is_secret(path / "x", home) for path in leads)
    assert is_secret(home / "project", home) is (link in SECRET_PLACES and target == "/")


@pytest.mark.parametrize("tool", [*READERS, *WRITERS], ids=lambda tool: tool.spec.name)
@pytest.mark.parametrize("cwd", ["project", ".", ".config", ".config/phoenix"])
async def test_settings_keys_and_rules_are_refused_to_every_file_tool(home: Path, tool: Tool, cwd: str) -> None:
    where = place(home, (home / cwd).resolve())
    (home / "project" / "way").symlink_to(home / ".config" / "phoenix")
    own = (".config/phoenix/credentials.toml", ".config/phoenix/rules.toml", "project/way/trust.json")
    for path in own:
        for mode in PermissionMode:
            assert isinstance(await decided(tool, str(home / path), mode, where), Deny), (path, mode)


@pytest.mark.parametrize("tool", [ListFiles(), Search(PlainRunner())], ids=lambda tool: tool.spec.name)
async def test_a_walk_through_the_home_folder_passes_over_keys(home: Path, tool: Tool) -> None:
    """The call itself needs no question there; what it must not open it does not even name."""
    (home / "notes.txt").write_text("sk-not-a-key")
    wanted = arguments(tool, ".") | ({"ignored": True} if tool.spec.name == "list_files" else {})
    question, text = await called(home, tool, wanted, PermissionMode.PLAN)
    assert question is None
    assert "notes.txt" in text
    assert not [name for name in (PLANTED, "credentials.toml", ".netrc", ".ssh") if name in text]


@pytest.mark.parametrize("path", [".ssh/id", ".config/phoenix/credentials.toml"])
@pytest.mark.parametrize("mode", list(PermissionMode))
async def test_a_change_that_cannot_be_made_quotes_nothing_of_a_file_that_may_not_be_read(
    home: Path, path: str, mode: PermissionMode
) -> None:
    """The tool names the closest lines, and looks for them before anybody was asked."""
    answers: set[tuple[bool, str]] = set()
    for number, old in enumerate(("sk-planted-kez", "sk-planted-key", "nothing like it")):
        wanted: JsonObject = {"path": path, "edits": [{"op": "replace", "old": old, "new": "x"}]}
        question, text = await called(home, Patch(ReadLedger()), wanted, mode, f"bench{number}")
        assert not [words for words in (PLANTED, "closest", "similar", "not in the file") if words in text]
        answers.add((question is not None, text))
    assert len(answers) == 1, "the answer does not depend on what is in the file"


async def test_a_change_inside_that_cannot_be_made_is_answered_and_not_asked_about(home: Path) -> None:
    (home / "notes.txt").write_text("one line\n")
    wanted: JsonObject = {"path": "notes.txt", "edits": [{"op": "replace", "old": "one lane", "new": "x"}]}
    question, text = await called(home, Patch(ReadLedger()), wanted, PermissionMode.ASK)
    assert question is None
    assert "closest lines start at 1:\none line" in text


@pytest.mark.parametrize("mode", [PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.AUTO])
async def test_a_change_that_cannot_be_made_quotes_nothing_where_a_rule_denies_reading(
    home: Path, mode: PermissionMode
) -> None:
    (home / "notes.txt").write_text("one line\n")
    wanted: JsonObject = {"path": "notes.txt", "edits": [{"op": "replace", "old": "one lane", "new": "x"}]}
    _, text = await called(home, Patch(ReadLedger()), wanted, mode, rule="deny Read(notes.txt)")
    assert "one line" not in text


async def called(
    home: Path, tool: Tool, wanted: JsonObject, mode: PermissionMode, name: str = "bench", rule: str = ""
) -> tuple[Question | None, str]:
    """One call of a model in the home folder: the question, and the results that the model was given."""
    folder = home.parent / name
    folder.mkdir()
    replies = (Reply((ScriptedCall(tool.spec.name, json.dumps(wanted), "t1"),)), Reply((Text("done"),)))
    settings = EngineSettings(own=place(home, home).own, home=home)
    async with engine_harness(folder, *replies, tool=cast("StubTool", tool), settings=settings) as harness:
        if rule:
            harness.rules.add(KeptRule(rule))
        options = ConversationOptions(home, "scripted/main", permission_mode=mode)
        conversation = await harness.engine.create(options)
        await conversation.say("look")
        await until(lambda: isinstance(conversation.state, AwaitingApproval | Idle))
        blocks = [block for row in await harness.store.messages(conversation.id) for block in row.blocks]
        parts = [part for block in blocks if isinstance(block, ToolResultBlock) for part in block.content]
        return conversation.question, "\n".join(part.text for part in parts if isinstance(part, TextBlock))


@pytest.mark.parametrize("name", [".ssh/id.png", ".aws/x.png", "project/link.png"])
def test_an_image_in_a_place_of_keys_is_not_attached(home: Path, name: str) -> None:
    (home / "project" / "link.png").symlink_to(home / ".ssh" / "id.png")
    path = home / name
    path.parent.mkdir(exist_ok=True)
    with pytest.raises(ImageRejected, match="folder of keys"):
        read_image(path)
    with pytest.raises(CommandError, match="folder of keys"):
        read_images((str(path),))


def test_a_start_in_the_home_folder_or_above_it_is_said(home: Path) -> None:
    assert wide_folder(home, "workspace").startswith("Phoenix was started in your home folder: commands may write")
    assert wide_folder(Path("/"), "read-only").startswith("Phoenix was started in /: commands may read")
    assert wide_folder(home / "project", "workspace") == ""
