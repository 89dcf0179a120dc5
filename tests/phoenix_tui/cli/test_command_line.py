"""Arguments, help and what they cost."""

from __future__ import annotations

import atexit
import shlex
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from engine.records import PermissionMode
from phoenix_tui.cli.arguments import RunArguments, run_arguments
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.names import VERSION
from phoenix_tui.cli.parser import run_parser
from phoenix_tui.cli.setup import prepare
from phoenix_tui.config.choices import PERMISSION_MODES, SANDBOXES
from tests.support.cli import ROOT, phoenix_in
from tools.contract import SandboxMode

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
