"""Arguments, help and what they cost, subcommands about conversations, and the flag for a worktree."""

from __future__ import annotations

import atexit
import json
import shlex
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.records import PermissionMode
from phoenix_tui.cli.arguments import RunArguments, run_arguments
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.names import VERSION
from phoenix_tui.cli.parser import run_parser
from phoenix_tui.cli.setup import prepare
from phoenix_tui.config.choices import PERMISSION_MODES, SANDBOXES
from tests.peers.trial import try_folder
from tests.support.cli import ROOT, Phoenix, phoenix_in, with_claude
from tests.support.git_repositories import git, repository
from tests.support.hooked import PYTHON, script
from tests.support.journeys import Claude, calls_all, rows, says
from tests.support.program import program
from tests.support.waiting import poll
from tools.contract import SandboxMode
from tools.git.repository import FOLDER

HEAVY = (
    "textual, rich, asyncio, anthropic, openai, httpx2, pydantic, PIL, textual_image, genai_prices, keyring, psutil, "
    "tomlkit, ignore, msgspec, sqlite3, aiosqlite, dataclasses, typing, engine, tools"
)

MOST_MODULES = 60
"""Modules of the standard library and Phoenix, for the longest help; a screen has a thousand."""


def parse(*argv: str) -> RunArguments:
    return run_arguments(run_parser().parse_args(list(argv)))


def test_the_version_is_that_of_the_package() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION


def test_the_choices_are_those_of_the_engine_and_the_processes() -> None:
    assert set(PERMISSION_MODES) == {mode.value for mode in PermissionMode}
    assert set(SANDBOXES) == {mode.value for mode in SandboxMode}


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_version_and_help_load_nothing_heavy(flag: str) -> None:
    program = (
        "import sys\nfrom phoenix_tui.__main__ import main\n"
        f"try:\n    main([{flag!r}])\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY!r}.split(', ') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-S", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_a_command_collects_little_while_it_loads_and_nothing_as_it_ends() -> None:
    program = (
        "import atexit, gc, sys\nfrom phoenix_tui.__main__ import main\n"
        "atexit.register(lambda: print(gc.get_threshold()[0] >= 100_000, gc.get_freeze_count() > 1_000))\n"
        "main(['completion', 'bash'])"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "True True"


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_version_and_help_load_few_modules_beside_those_of_python(flag: str) -> None:
    program = (
        "import sys\nbare = set(sys.modules)\nfrom phoenix_tui.__main__ import main\n"
        f"try:\n    main([{flag!r}])\nexcept SystemExit:\n    pass\n"
        "print(*sorted(set(sys.modules) - bare))"
    )
    ran = subprocess.run([sys.executable, "-S", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = ran.stdout.splitlines()[-1].split()
    assert len(loaded) <= MOST_MODULES, loaded


def test_everything_of_the_contract_is_a_flag() -> None:
    line = (
        "-p --output-format stream-json --include-partial-messages -m a/b -C /x -n title --profile p "
        "--system-prompt s --append-system-prompt t -i one -i two --permission-mode plan --sandbox workspace "
        "--no-sandbox-network --effort low "
        "--max-turns 3 --max-budget-usd 0.5 --timeout 9 --ephemeral --no-hooks --include-hook-events "
        "--trust --debug --allow-debugger "
        "--screen-reader --session-id 3F2B8C1E-9a47-4d0b-8c55-1e6f0a7d2b95 "
        "--run-id 3f2b8c1e-9a47-4d0b-8c55-1e6f0a7d2b94 hello"
    )
    given = parse(*shlex.split(line))
    assert given == RunArguments(
        prompt="hello",
        headless=True,
        output_format="stream-json",
        wait_agents=True,
        include_partial_messages=True,
        continue_last=False,
        resume=None,
        fork=False,
        model="a/b",
        effort="low",
        cwd="/x",
        name="title",
        profile="p",
        system_prompt="s",
        append_system_prompt="t",
        images=("one", "two"),
        ephemeral=True,
        no_hooks=True,
        include_hook_events=True,
        permission_mode="plan",
        sandbox="workspace",
        sandbox_network=False,
        trust=True,
        max_turns=3,
        max_budget_usd=0.5,
        timeout=9.0,
        session_id="3f2b8c1e-9a47-4d0b-8c55-1e6f0a7d2b95",
        run_id="3f2b8c1e-9a47-4d0b-8c55-1e6f0a7d2b94",
        debug=True,
        allow_debugger=True,
        screen_reader=True,
    )
    assert parse("-r").resume == ""
    assert parse("--resume", "abc", "--fork").resume == "abc"
    assert parse("-c").continue_last


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ("--bogus", "Unrecognized arguments: --bogus."),
        ("two words", "Unrecognized arguments: words."),
        ("--resu x", "Unrecognized arguments: --resu."),
        ("--permission-mode yolo", "choose from 'ask', 'accept-edits', 'auto', 'plan', 'deny'"),
        ("-p --max-turns 0", "'0' is not a whole number of at least 1"),
        ("-p --timeout inf", "'inf' is not a number above 0"),
        ("--output-format json", "--output-format works with -p; add -p."),
        ("-p --include-partial-messages", "works with -p --output-format stream-json"),
        ("-p -r", "With -p, -r needs an id, id prefix or title"),
        ("-c -r x", "give one of them"),
        ("--fork", "name it with -c or -r"),
        ("-r x -C /tmp", "stays in its folder"),
        ("-c --system-prompt x", "--system-prompt can only be set for a new conversation"),
        ("-c --ephemeral", "--ephemeral starts with an empty database"),
        ("-", "works with -p; add -p."),
        ("resume", "There is no command resume: `phoenix -r` opens an earlier conversation"),
        ("login", "There is no command login: `/key` in Phoenix stores a key"),
    ],
)
def test_bad_usage_is_one_sentence_that_names_the_fix(argv: str, sentence: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse(*argv.split())
    assert sentence in caught.value.sentence
    assert caught.value.code == 2


async def test_the_program_says_it_on_stderr_and_exits_2(tmp_path: Path) -> None:
    ran = await phoenix_in(tmp_path).run("--bogus")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "phoenix: Unrecognized arguments: --bogus. `phoenix --help` lists the options.\n"


async def test_a_traceback_appears_only_with_debug(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    assert "Traceback" not in (await phoenix.run("-p", "-C", "/nowhere", "x")).err
    assert "Traceback" in (await phoenix.run("-p", "-C", "/nowhere", "x", "--debug")).err


@pytest.mark.parametrize("flags", [("-p", "x", "-C"), ("x", "-C")])
async def test_a_folder_that_cannot_be_reached_is_named_with_the_reason(tmp_path: Path, flags: tuple[str, ...]) -> None:
    ran = await phoenix_in(tmp_path).run(*flags, "/" + "x" * 5_000)
    assert ran.code == 2
    assert ran.err.endswith("x cannot be used: File name too long; choose another one with --cwd.\n")


async def test_without_a_terminal_the_screen_is_refused(tmp_path: Path) -> None:
    ran = await phoenix_in(tmp_path).run("hello")
    assert ran.code == 2
    assert "needs a terminal" in ran.err


async def test_a_command_that_is_not_there_is_not_offered(tmp_path: Path) -> None:
    ran = await phoenix_in(tmp_path).run("--help")
    assert ran.code == 0
    assert "conversations list|show|search" in ran.out
    assert "acp " in ran.out
    assert "\n  login" not in ran.out


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="no folder here that nobody can write to")
def test_where_no_folder_can_be_made_a_session_has_one_that_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended: list[Callable[[], object]] = []
    monkeypatch.setattr(atexit, "register", lambda work, *given, **more: ended.append(partial(work, *given, **more)))
    setup = prepare(run_arguments(run_parser().parse_args([])), {"PHOENIX_HOME": "/sys/phoenix"})
    assert setup.paths.data == Path("/sys/phoenix")
    assert stat.S_IMODE(setup.paths.state.stat().st_mode) == 0o700
    for work in ended:
        work()
    assert not setup.paths.state.exists()


async def talk(phoenix: Phoenix, title: str, prompt: str = "hello") -> str:
    ran = await phoenix.run("-p", "--output-format", "json", "-n", title, prompt)
    return str(ran.json["session_id"])


async def listed(phoenix: Phoenix, *flags: str) -> list[str]:
    ran = await phoenix.run("conversations", "list", "--json", *flags)
    rows: list[dict[str, Any]] = ran.json
    return [str(row["session_id"]) for row in rows]


async def test_conversations_are_listed_as_a_table_and_as_json(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    empty = await phoenix.run("conversations", "list")
    assert (empty.code, empty.out) == (0, "There are no conversations yet.\n")
    first = await talk(phoenix, "First talk")
    table = (await phoenix.run("conversations", "list")).out.splitlines()
    assert table[0].split() == ["ID", "UPDATED", "STATE", "MESSAGES", "MODEL", "TITLE", "FOLDER"]
    assert table[1].split()[0] == first[:8]
    assert "First talk" in table[1]
    assert " recent " in table[1]
    [row] = (await phoenix.run("conversations", "list", "--json")).json
    assert (row["session_id"], row["title"], row["state"], row["message_count"]) == (first, "First talk", "idle", 2)
    assert await listed(phoenix, "-C", str(tmp_path)) == []
    assert await listed(phoenix, "-C", str(phoenix.cwd)) == [first]


async def test_a_conversation_is_renamed_archived_deleted_and_brought_back(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    known = await talk(phoenix, "One")
    renamed = await phoenix.run("conversations", "rename", "One", "Two")
    assert (renamed.code, renamed.out) == (0, f"Renamed: One ({known[:8]}).\n")
    assert (await phoenix.run("conversations", "archive", "Two")).code == 0
    assert (await listed(phoenix), await listed(phoenix, "--archived")) == ([], [known])
    assert (await phoenix.run("conversations", "unarchive", known)).code == 0
    assert (await phoenix.run("conversations", "delete", known[:8], "--json")).json == {
        "session_id": known,
        "action": "delete",
    }
    assert (await listed(phoenix), await listed(phoenix, "--deleted")) == ([], [known])
    assert (await phoenix.run("conversations", "restore", known)).code == 0
    assert await listed(phoenix) == [known]
    assert (await phoenix.run("conversations", "delete", "--permanently", known)).code == 0
    assert (await phoenix.run("conversations", "show", known)).code == 2


async def test_a_conversation_is_shown_and_searched(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    known = await talk(phoenix, "Greeting", "hello")
    shown = (await phoenix.run("conversations", "show", "Greeting")).out
    assert shown.startswith(f"# Greeting\n\n- Conversation: {known}\n")
    assert "## You\n\nhello\n\n## Phoenix\n\nHello!" in shown
    messages = (await phoenix.run("conversations", "show", known, "--json")).json["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert messages[0]["content"] == [{"type": "text", "text": "hello"}]
    [hit, *_] = (await phoenix.run("conversations", "search", "hello", "--json")).json
    assert hit["session_id"] == known
    assert (await phoenix.run("conversations", "search", "no such words")).out == "No matches.\n"


async def test_an_export_is_imported_without_loss(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    known = await talk(phoenix, "Carry me")
    target = tmp_path / "export.json"
    exported = await phoenix.run("conversations", "export", known, "--format", "json", "-o", str(target))
    assert (exported.code, exported.out) == (0, "")
    assert target.stat().st_mode & 0o777 == 0o600
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    other = phoenix_in(other_folder)
    imported = (await other.run("conversations", "import", str(target), "--json")).json
    assert (imported["session_id"], imported["cwd"]) == (known, str(other.cwd))
    again = await other.run("conversations", "export", known, "--format", "json")
    before: dict[str, list[dict[str, Any]]] = json.loads(target.read_text())["tables"]
    after: dict[str, list[dict[str, Any]]] = again.json["tables"]
    assert after["messages"] == before["messages"]
    assert after.keys() == before.keys()
    twice = (await other.run("conversations", "import", "-", "--json", stdin=target.read_bytes())).json
    assert twice["session_id"] != known
    broken = await other.run("conversations", "import", "-", stdin=b"[1]")
    assert (broken.code, "was not written by" in broken.err) == (2, True)


async def test_an_export_cannot_drive_a_terminal(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    nasty = "hello \x1b]52;c;aGk=\x07 \x9b2J \u202e"
    known = await talk(phoenix, nasty, nasty)
    for arguments in (("export", known), ("export", known, "--format", "json"), ("show", known), ("list",)):
        ran = await phoenix.run("conversations", *arguments)
        assert ran.code == 0
        assert not [character for character in ran.out if character in "\x1b\x07\x9b\u202e"]


@pytest.mark.parametrize("reference", ["nothing", "zzzz"])
async def test_an_unknown_conversation_is_named_with_the_fix(tmp_path: Path, reference: str) -> None:
    ran = await phoenix_in(tmp_path).run("conversations", "archive", reference)
    assert ran.code == 2
    assert f"No conversation matches '{reference}'; `phoenix conversations list` shows them." in ran.err


async def test_config_says_every_value_with_its_source(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path, PHOENIX_SANDBOX="workspace")
    path = phoenix.home / "config.toml"
    assert (await phoenix.run("config", "path")).out == f"{path}\n"
    path.write_text("max_turns = 7\n")
    shown = (await phoenix.run("config", "show", "--json")).json
    assert (shown["max_turns"]["value"], shown["max_turns"]["source"]) == (7, f"{path}:1")
    assert (shown["sandbox"]["value"], shown["sandbox"]["source"]) == ("workspace", "PHOENIX_SANDBOX")
    assert shown["timeout"]["source"] == "default"
    assert "PHOENIX_SANDBOX" in (await phoenix.run("config", "show")).out


async def test_config_edit_opens_the_editor_and_checks_what_it_left(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "modle = 1" >> "$1"\n')
    editor.chmod(0o755)
    ran = await phoenix_in(tmp_path, EDITOR=str(editor)).run("config", "edit")
    assert ran.code == 2
    assert "unknown key 'modle'" in ran.err


async def test_models_are_listed_and_one_made_the_default(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path, PHOENIX_MODEL="")
    models = (await phoenix.run("models", "--json")).json
    assert {"model": "demo/guide", "local": True}.items() <= models[-1].items()
    installable = (await phoenix.run("model", "list", "--json")).json
    assert [(row["name"], row["state"]) for row in installable] == [("qwen2.5-coder-1.5b", "absent")]
    for name in ((), ("qwen2.5-coder-1.5b",)):
        refused = await phoenix.run("model", "install", *name)
        assert refused.code == 1
        assert "only downloaded with your consent" in refused.err
    missing = await phoenix.run("model", "use", "qwen2.5-coder-1.5b")
    assert (missing.code, "phoenix model install" in missing.err) == (1, True)
    assert (await phoenix.run("model", "use", "demo/guide")).out == "New conversations use demo/guide.\n"
    assert (phoenix.home / "config.toml").read_text() == 'model = "demo/guide"\n'
    assert (await phoenix.run("model", "remove", "nothing")).code == 2


async def test_the_doctor_reports_and_shows_no_key(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path, ANTHROPIC_API_KEY="sk-ant-planted-0123456789")
    await talk(phoenix, "One")
    ran = await phoenix.run("doctor", "--json")
    found = {row["topic"]: row for row in ran.json}
    assert ran.code == 0
    assert found["keys"]["text"] == "anthropic from ANTHROPIC_API_KEY"
    assert "1 conversation (those of scripts, archive and trash included), intact" in found["database"]["text"]
    assert {"phoenix", "packages", "terminal", "sqlite", "processes", "sandbox", "ripgrep"} <= found.keys()
    limits = "4 at the same time, one level deep, 20 model replies, 300 s and no budget each"
    assert found["sub-agents"]["text"].startswith(limits)
    parts = {topic: found[topic]["text"] for topic in ("mcp helper", "shell lines")}
    own = "a line after ! runs in a terminal of its own"
    assert parts == {"mcp helper": "can be started", "shell lines": own}
    assert "(by this machine; memory_limit changes it)" in found["memory"]["text"]
    assert "planted" not in ran.out
    assert "archive" not in found
    await phoenix.run("conversations", "archive", "One")
    (phoenix.home / "config.toml").write_text('memory_limit = "1 GB"\n')
    kept = {row["topic"]: row["text"] for row in (await phoenix.run("doctor", "--json")).json}
    source = f"memory_limit, {phoenix.home / 'config.toml'}:1"
    assert kept["memory"].startswith(
        f"at most 1,024 MB ({source}); from 614 caches are cleared, from 819 nothing new can start"
    )
    assert kept["archive"] == (
        "1 conversation in archive and trash, 0.0 MB, kept forever; retention_days in config.toml changes that"
    )
    phoenix.home.chmod(0o755)
    (phoenix.home / "phoenix.db").write_bytes(b"no database")
    bad = await phoenix.run("doctor")
    assert bad.code == 1
    assert "bad   database" in bad.out


SKILL = "---\nname: pdf\ndescription: Reads forms.\n---\n# Forms\n\nRun the script, then look at the last page.\n"


def folder_in(place: Path) -> Path:
    skill = place / "skills" / "pdf"
    script(skill / "scripts" / "fill.py", "#!/usr/bin/env python3\nprint('usage: fill FORM')\n")
    (skill / "SKILL.md").write_text(SKILL)
    (place / "hooks").mkdir()
    script(place / "hooks" / "quiet.py", PYTHON)
    (place / "hooks" / "record.log").write_text("no hook")
    return place


@pytest.mark.pty
async def test_each_skill_and_each_hook_has_its_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await try_folder(folder_in(tmp_path), on_screen=True) == 0
    rows = [row.split(" | ") for row in capsys.readouterr().out.splitlines()[2:]]
    assert [(row[0].removeprefix("| "), row[1], row[3].removesuffix(" |")) for row in rows] == [
        ("pdf", "in the list of the model", "ok"),
        ("pdf", "loaded by the model", "ok"),
        ("pdf", "starts scripts/fill.py", "ok"),
        ("pdf", "called by the user", "ok"),
        ("pdf", "called on the screen", "ok"),
        ("quiet.py", "runs", "ok"),
        ("quiet.py", "on the screen", "ok"),
    ]
    assert "usage: fill FORM" in rows[2][2]


async def test_what_differs_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "skills" / "broken").mkdir(parents=True)
    (tmp_path / "skills" / "broken" / "SKILL.md").write_bytes(b"---\nname: broken\n---\n\xff no text at all\n")
    hook = tmp_path / "hooks" / "guard"
    script(hook / "guard.sh", "#!/bin/sh\nexit 3\n")
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": "$TRIAL/guard.sh"}]}]}
    (hook / "trial.json").write_text(json.dumps({"hooks": hooks, "shows": ["never said"]}))
    assert await try_folder(tmp_path, on_screen=False) == 1
    out = capsys.readouterr().out
    assert "| guard | runs | PreToolUse error | otherwise |" in out
    assert "| guard | shows 'never said' |  | otherwise |" in out
    assert "| broken | in the list of the model | broken: | otherwise |" in out


async def test_a_run_works_in_its_worktree_and_says_where_that_is(claude: Claude) -> None:
    phoenix, _ = await claude(*(says("Yes.") for _ in range(3)))
    repository(phoenix.cwd)
    tree = phoenix.cwd.parent / FOLDER / phoenix.cwd.name / "fix-it"
    ran = await phoenix.run("-p", "-w", "Fix it", "--", "a")
    assert (ran.code, ran.out.strip()) == (0, "Yes.")
    assert f"Worktree fix-it: branch phoenix/fix-it of main, in {tree}." in ran.err
    assert git(tree, "branch", "--show-current") == "phoenix/fix-it"
    ran = await phoenix.run("-p", "--worktree", "fix-it", "b")
    assert "is used again" in ran.err
    assert (await phoenix.run("-p", "-w", "--base", "main", "c")).code == 0
    folders = rows(phoenix, "SELECT cwd FROM conversations ORDER BY rowid")
    assert folders == [(str(tree),), (str(tree),), (str(tree.with_name("work-1")),)]


@pytest.mark.parametrize("flags", [("-c",), ("-r", "ask-first")])
async def test_a_copy_of_a_conversation_works_in_a_worktree_of_its_folder(
    claude: Claude, flags: tuple[str, ...]
) -> None:
    phoenix, server = await claude(*(says("Yes.") for _ in range(2)))
    repository(phoenix.cwd)
    tree = phoenix.cwd.parent / FOLDER / phoenix.cwd.name / "fix-it"
    await phoenix.run("-p", "--name", "Ask first", "a")
    ran = await phoenix.run("-p", *flags, "--fork", "-w", "Fix it", "--", "b")
    assert (ran.code, ran.out.strip()) == (0, "Yes."), ran.err
    assert f"in {tree}." in ran.err
    told = server.requests[1].body.decode()
    found = rows(phoenix, "SELECT cwd FROM conversations ORDER BY rowid")
    assert found == [(str(phoenix.cwd),), (str(tree),)]
    assert f"a git worktree on the branch phoenix/fix-it that began with the newest commit of {phoenix.cwd}" in told


async def test_a_copy_of_nothing_makes_no_worktree(tmp_path: Path) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:1")
    repository(phoenix.cwd)
    ran = await phoenix.run("-p", "-r", "nothing", "--fork", "-w", "x", "--", "a")
    assert (ran.code, ran.out) == (2, "")
    assert "nothing" in ran.err
    assert not (phoenix.cwd.parent / FOLDER).exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ("-c", "-w", "x"),
            "--worktree begins a new conversation; add --fork to copy one into it, or leave out -c and -r.",
        ),
        (("--base", "main"), "--base works with --worktree; add -w NAME."),
        (("-w", "x", "--base", "nothing"), "There is no branch, tag or commit nothing here; `git branch` lists them."),
        (("-w", "merge"), "The name merge has no letters or digits of ASCII, or is a word of /worktree."),
    ],
)
async def test_what_cannot_be_is_one_sentence(tmp_path: Path, flags: tuple[str, ...], said: str) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:1")
    repository(phoenix.cwd)
    ran = await phoenix.run("-p", *flags, "--", "a")
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


async def test_outside_a_repository_it_is_one_sentence(tmp_path: Path) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:1")
    ran = await phoenix.run("-p", "-w", "x", "--", "a")
    assert ran.code == 2
    assert "is in no git repository" in ran.err


async def test_the_doctor_counts_worktrees_and_names_what_a_crash_left(tmp_path: Path) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:1")

    async def said() -> tuple[str, str]:
        found = {row["topic"]: row for row in (await phoenix.run("doctor", "--json")).json}
        return found["git worktree"]["health"], found["git worktree"]["text"]

    health, text = await said()
    assert health == "ok"
    assert text.startswith("not here: ")
    repository(phoenix.cwd)
    assert await said() == ("ok", "0 worktrees of this repository")
    (phoenix.cwd.parent / FOLDER / phoenix.cwd.name / "fix").mkdir(parents=True)
    health, text = await said()
    assert health == "note"
    assert text.startswith("fix left by a crash; ")


async def test_the_screen_begins_in_the_worktree_and_counts_its_commits_after_a_run(claude: Claude) -> None:
    phoenix, _ = await claude(says("Yes."), says("Yes."))
    repository(phoenix.cwd)
    async with program(phoenix, "-w", "fix", rows=30, columns=160) as running:
        await running.shows("Worktree fix: branch phoenix/fix of main", "(phoenix/fix)")
        running.type("!git -c user.name=n -c user.email=e commit -q --allow-empty -m x; touch new\r")
        await running.shows("(phoenix/fix +1 *)")


async def test_the_screen_opens_a_copy_in_its_worktree(claude: Claude) -> None:
    phoenix, _ = await claude(says("Yes."))
    repository(phoenix.cwd)
    await phoenix.run("-p", "--name", "Ask first", "a")
    async with program(phoenix, "-r", "ask-first", "--fork", "-w", "fix", rows=30, columns=160) as running:
        await running.shows("Worktree fix: branch phoenix/fix of main", "Yes.", "(phoenix/fix)")


async def test_a_part_of_a_title_is_enough_where_one_has_it(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    for title in ("Retry work ✨", "Old retry notes", "100% done"):
        await talk(phoenix, title)
    for words, title in (("Retry work", "Retry work ✨"), ("retry", "Retry work ✨"), ("NOTES", "Old retry notes")):
        shown = await phoenix.run("conversations", "show", words)
        assert (shown.code, shown.out.splitlines()[0]) == (0, f"# {title}")
    assert (await phoenix.run("conversations", "export", "100%")).out.startswith("# 100% done")
    assert (await phoenix.run("conversations", "show", "%")).out.startswith("# 100% done")


async def test_several_are_listed_and_a_change_wants_the_whole_title(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    ids = {title: await talk(phoenix, title) for title in ("Retry one", "Retry the second of them")}
    several = await phoenix.run("conversations", "show", "Retry")
    assert (several.code, several.out) == (2, "")
    first, *below = several.err.splitlines()
    assert first == "phoenix: 'Retry' matches 2 conversations; give more of the title, or one of these:"
    named = {title: f"  {known[:8]}  {title.lower().replace(' ', '-')}  {title}" for title, known in ids.items()}
    assert sorted(below) == sorted(named.values())
    for action in ("delete", "archive"):
        ran = await phoenix.run("conversations", action, "Retry o")
        assert (ran.code, "No conversation matches 'Retry o'" in ran.err) == (2, True)
    nothing = await phoenix.run("conversations", "show", "")
    assert nothing.code == 2


async def test_a_slug_names_one_for_every_command(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    ids = [await talk(phoenix, "Retry work ✨") for _ in range(2)]
    listed = (await phoenix.run("conversations", "list", "--json")).json
    assert {one["session_id"]: one["slug"] for one in listed} == {ids[0]: "retry-work", ids[1]: "retry-work-2"}
    assert (await phoenix.run("conversations", "show", "retry-work-2", "--json")).json["session_id"] == ids[1]
    going_on = await phoenix.run("-p", "-r", "retry-work", "--output-format", "json", "help")
    assert going_on.json["session_id"] == ids[0]
    ambiguous = await phoenix.run("conversations", "show", "Retry work ✨")
    assert (ambiguous.code, "retry-work-2" in ambiguous.err) == (2, True)
    unknown = await phoenix.run("-p", "-r", "retry", "help")
    assert (unknown.code, "No conversation matches 'retry'" in unknown.err) == (2, True)
    assert (await phoenix.run("conversations", "rename", "retry-work-2", "Done")).code == 0
    assert (await phoenix.run("conversations", "delete", "done", "--json")).json["session_id"] == ids[1]
    assert (await phoenix.run("conversations", "restore", "done", "--json")).json["session_id"] == ids[1]


async def test_one_that_was_cut_off_says_so_with_what_it_had_stored(claude: Claude) -> None:
    two = calls_all(
        ("bash", "toolu_1", {"command": "echo first-result"}),
        ("bash", "toolu_2", {"command": "touch begun; sleep 60"}),
    )
    phoenix, _ = await claude(two)
    process = await phoenix.start("-p", "-n", "Cut", "--permission-mode", "auto", "go")
    assert await poll((phoenix.cwd / "begun").exists)
    running = await phoenix.run("conversations", "list", "--json")
    process.kill()
    await process.wait()
    assert [one["interrupted"] for one in running.json] == [False]
    [listed] = (await phoenix.run("conversations", "list", "--json")).json
    table = (await phoenix.run("conversations", "list")).out
    shown = await phoenix.run("conversations", "show", "Cut")
    whole = (await phoenix.run("conversations", "show", "Cut", "--json")).json
    assert (listed["interrupted"], whole["interrupted"]) == (True, True)
    assert "interrupted" in table
    assert "# Interrupted" in shown.out
    assert "first-result" in shown.out
    assert f"phoenix --resume {listed['session_id'][:8]} continues it" in shown.out.replace("`", "")
    assert "first-result" in str(whole)
