"""Profiles as the screens get them from a real start: the same as `--profile NAME` would give."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.executor.requests import EngineError, RunCaps
from engine.records import PermissionMode
from phoenix_tui.cli.arguments import run_arguments
from phoenix_tui.cli.parser import run_parser
from phoenix_tui.cli.setup import prepare
from phoenix_tui.config.trust import TrustFile, find_project
from phoenix_tui.features.service_interfaces import Health
from phoenix_tui.wiring.profiles import ProfileBoard, profile_files, profile_findings
from tools.contract import SandboxMode

MINE = "---\nmodel: a/b\npermission_mode: auto\nsandbox: read-only\n---\nBe kind.\n"


def board(tmp_path: Path, *arguments: str) -> ProfileBoard:
    """Board for a start with these arguments."""
    cwd = tmp_path / "work"
    cwd.mkdir(exist_ok=True)
    parsed = run_parser().parse_args(["-C", str(cwd), *arguments])
    setup = prepare(run_arguments(parsed), {"PHOENIX_HOME": str(tmp_path / "home")})
    return ProfileBoard(setup, profile_files(setup))


def put(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text)


def test_what_is_chosen_is_what_a_start_with_it_would_give(tmp_path: Path) -> None:
    put(tmp_path / "home" / "profiles", "mine", MINE)
    choice = board(tmp_path, "--append-system-prompt", "In French.").choose("mine")
    assert (choice.profile, choice.model, choice.mode, choice.sandbox) == (
        "mine",
        "a/b",
        PermissionMode.ASK,
        SandboxMode.READ_ONLY,
    ), "its mode is narrowed to the user's own"
    begun = board(tmp_path, "--append-system-prompt", "In French.", "--profile", "mine").setup.settings
    assert choice.append_system_prompt == begun.text("append_system_prompt") == "Be kind.\n\nIn French."


def test_its_limits_hold_in_every_conversation_begun_with_it_and_in_no_other(tmp_path: Path) -> None:
    put(tmp_path / "home" / "profiles", "mine", "---\nmax_turns: 3\n---\n")
    put(tmp_path / "other" / ".phoenix" / "profiles", "release", "---\nmax_turns: 7\n---\n")
    (tmp_path / "home" / "config.toml").write_text("max_turns = 40\nmax_budget_usd = 2.0\n")
    start, cwd, other = board(tmp_path, "--profile", "mine"), tmp_path / "work", tmp_path / "other"
    assert start.caps("", cwd) == RunCaps(40, 2.0)
    assert start.caps("mine", cwd) == start.caps("mine", other) == RunCaps(3, 2.0)
    assert start.caps("gone", cwd) is None
    assert start.caps("release", other) is None, "its folder is not trusted"
    project = find_project(other)
    TrustFile(start.setup.paths.trust_file).answer(project, trusted=True)
    assert start.caps("release", other) == RunCaps(7, 2.0)
    assert board(tmp_path, "--max-turns", "9").caps("mine", cwd) == RunCaps(9, 2.0), "what is asked for is stronger"


def test_general_gives_back_what_was_asked_for_without_a_profile(tmp_path: Path) -> None:
    put(tmp_path / "home" / "profiles", "mine", MINE)
    start = board(tmp_path, "--profile", "mine", "--permission-mode", "plan", "-m", "c/d")
    choice = start.choose("general")
    assert (choice.profile, choice.model, choice.mode, choice.append_system_prompt) == ("", "", None, "")
    assert (start.own_model, start.own_mode) == ("c/d", PermissionMode.PLAN)


def test_a_projects_profile_never_frees_more_than_the_start(tmp_path: Path) -> None:
    put(tmp_path / "work" / ".phoenix" / "profiles", "release", MINE)
    start = board(tmp_path, "--trust", "--permission-mode", "accept-edits")
    assert start.choose("release").mode is PermissionMode.ACCEPT_EDITS
    assert [one.name for one in start.all()][-1] == "release"


def test_what_cannot_be_used_or_made_is_one_sentence(tmp_path: Path) -> None:
    start = board(tmp_path)
    with pytest.raises(EngineError, match=r"There is no profile 'nobody' .* Known are general"):
        start.choose("nobody")
    with pytest.raises(EngineError, match="is not valid: a profile's name"):
        start.create("../x", MINE)
    start.create("mine", MINE)
    with pytest.raises(EngineError, match="already exists"):
        start.create("mine", MINE)
    (tmp_path / "home" / "config.toml").write_text("modell = 1\n")
    with pytest.raises(EngineError, match=r"config\.toml:1: unknown key 'modell'"):
        start.choose("mine")
    assert (start.own_model, start.own_mode) == ("", PermissionMode.ASK)


def test_an_agent_of_the_user_is_listed_chosen_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    text = "---\nname: reviewer\nmodel: sonnet\npermissionMode: plan\nmaxTurns: 7\n---\nReview it.\n"
    put(tmp_path / "user/.claude/agents", "first", text)
    put(tmp_path / "user/.claude/agents", "explore", "Hidden by the built-in one.\n")
    start = board(tmp_path, "--append-system-prompt", "In French.")
    assert [one.name for one in start.all()][-1] == "reviewer"
    assert [trouble.path.name for trouble in start.troubles()] == ["explore.md"]
    choice = start.choose("reviewer")
    assert (choice.profile, choice.model, choice.mode, choice.append_system_prompt) == (
        "reviewer",
        "anthropic/claude-sonnet-5-5",
        PermissionMode.PLAN,
        "Review it.\n\nIn French.",
    )
    assert start.caps("reviewer", tmp_path / "work") == RunCaps(7)
    found = [(one.topic, one.health, one.text) for one in profile_findings(start.profiles, tmp_path / "work")]
    assert ("agents", Health.OK, "1 agent of .claude/agents: reviewer") in found
    assert found[-1][:2] == ("profiles", Health.NOTE)
