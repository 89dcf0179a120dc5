"""Completion scripts in real shells, their look-ups, and the manual page."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from phoenix_tui.cli.completion.scripts import bash_script, fish_script, zsh_script
from phoenix_tui.cli.completion.tables import (
    ArgumentGroup,
    CommandTable,
    CompletedFlag,
    command_tables,
    escape_roff,
    manual_page,
)
from phoenix_tui.cli.names import COMMANDS
from tests.support.cli import ROOT, Phoenix, phoenix_in

DEADLINE = 60
SETTINGS = 'model = "anthropic/claude-sonnet-5-5"\ncheap_model = "ollama/qwen3:8b"\nsummary_model = "a/$(touch ran)"\n'


def need(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    return found


@pytest.fixture
def phoenix(tmp_path: Path) -> Phoenix:
    """An installation with models, a profile, and the program on the search path under its own name."""
    made = phoenix_in(tmp_path)
    (made.home / "config.toml").write_text(SETTINGS)
    (made.home / "profiles").mkdir()
    (made.home / "profiles" / "reviewer.md").write_text("Review.\n")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "phoenix"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m phoenix_tui "$@"\n')
    program.chmod(0o755)
    return made


def in_shell(phoenix: Phoenix, argv: list[str]) -> list[str]:
    path = f"{phoenix.home.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**phoenix.environment, "PATH": path}
    ran = subprocess.run(argv, cwd=phoenix.cwd, env=environment, capture_output=True, text=True, timeout=DEADLINE)
    assert ran.stderr == ""
    return ran.stdout.splitlines()


def complete_in_bash(phoenix: Phoenix, *words: str) -> list[str]:
    """Proposals for the last of the pieces into which bash splits a command line."""
    script = (
        f"source <(phoenix completion bash)\nCOMP_WORDS=(phoenix {shlex.join(words)})\nCOMP_CWORD={len(words)}\n"
        '_phoenix phoenix\n((${#COMPREPLY[@]})) && printf "%s\\n" "${COMPREPLY[@]}" || true\n'
    )
    return in_shell(phoenix, [need("bash"), "--norc", "--noprofile", "-c", script])


@pytest.mark.parametrize(
    ("words", "proposed"),
    [
        (["conv"], ["conversations"]),
        (["conversations", "e"], ["export"]),
        (["conversations", "export", "--form"], ["--format"]),
        (["conversations", "export", "--format", ""], ["json", "markdown"]),
        (["--permission-mode", "a"], ["ask", "accept-edits", "auto"]),
        (["--permission-mode", "=", "pl"], ["plan"]),
        (["-p", "--output-format", "s"], ["stream-json"]),
        (["-m", "anth"], ["anthropic/claude-sonnet-5-5"]),
        (["--model", "=", "anth"], ["anthropic/claude-sonnet-5-5"]),
        (["-m", "ollama/qwen3", ":"], ["8b"]),
        (["model", "use", "ollama/qwen3", ":", "8"], ["8b"]),
        (["--profile", ""], ["reviewer"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["-r", "--no-sa"], ["--no-sandbox-network"]),
        (["-p", "conv"], []),
        (["-n", "--", "--model", ""], []),
        (["serve", "--", "--mod"], []),
        (["--max-turns", ""], []),
    ],
)
def test_bash_proposes(phoenix: Phoenix, words: list[str], proposed: list[str]) -> None:
    if words[:2] == ["-n", "--"]:  # the value of -n, so the model that follows is looked up
        assert len(complete_in_bash(phoenix, *words)) == 3
        return
    assert complete_in_bash(phoenix, *words) == proposed


def test_bash_quotes_a_name_and_never_runs_it(phoenix: Phoenix) -> None:
    assert complete_in_bash(phoenix, "-m", "a/") == ["a/\\$\\(touch\\ ran\\)"]
    assert not (phoenix.cwd / "ran").exists()


def test_bash_completes_files_and_folders(phoenix: Phoenix) -> None:
    (phoenix.cwd / "a folder").mkdir()
    (phoenix.cwd / "a file").touch()
    assert complete_in_bash(phoenix, "-C", "a") == ["a folder"]
    assert sorted(complete_in_bash(phoenix, "-i", "a")) == ["a file", "a folder"]


def test_conversations_are_proposed_by_name(phoenix: Phoenix) -> None:
    ran = asyncio.run(phoenix.run("-p", "hello", "-n", "Mend the parser"))
    assert ran.code == 0, ran.err
    assert complete_in_bash(phoenix, "-r", "m") == ["mend-the-parser"]
    assert complete_in_bash(phoenix, "conversations", "rename", "") == ["mend-the-parser"]
    assert complete_in_bash(phoenix, "conversations", "rename", "mend-the-parser", "") == []
    assert asyncio.run(phoenix.run("__complete", "conversations")).out == "mend-the-parser\tMend the parser\n"
    with sqlite3.connect(phoenix.home / "phoenix.db") as database:
        database.execute("UPDATE conversations SET deleted_at = 1")
    assert asyncio.run(phoenix.run("__complete", "conversations")).out == ""


@pytest.mark.parametrize("kind", ["conversations", "models", "profiles", "nothing", "../x"])
def test_a_look_up_is_silent_in_trouble(tmp_path: Path, kind: str) -> None:
    phoenix = phoenix_in(tmp_path)
    (phoenix.home / "config.toml").write_text("model = [broken\n")
    (phoenix.home / "phoenix.db").write_bytes(b"no database" * 1000)
    (phoenix.home / "profiles").write_text("no folder")
    ran = asyncio.run(phoenix.run("__complete", kind))
    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_a_look_up_gives_one_word_a_line(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    (phoenix.home / "config.toml").write_text(
        'model = "a/b\\nc"\ncheap_model = "--trust"\nsummary_model = "x/\\u001b[2J"\n'
    )
    assert asyncio.run(phoenix.run("__complete", "models")).out == ""


def test_a_look_up_loads_little(tmp_path: Path) -> None:
    heavy = "argparse, asyncio, textual, rich, engine, dataclasses, tomlkit, aiosqlite"
    program = (
        "import sys\nfrom phoenix_tui.__main__ import main\nmain(['__complete', 'conversations'])\n"
        f"print([name for name in {heavy!r}.split(', ') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "PHOENIX_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines()[-1] == "[]"


def test_the_tables_hold_every_command_and_its_help() -> None:
    tables = {table.path: table for table in command_tables()}
    assert {name for name, _ in tables[()].below} == set(COMMANDS) == {path[0] for path in tables if path}
    assert all(help_text for _, help_text in tables[()].below)
    assert tables["config", "edit"].help == "Open the settings file in $VISUAL or $EDITOR."
    assert {"-p", "--model", "--resume"} <= {flag for option in tables[()].options for flag in option.flags}


def odd_table() -> tuple[CommandTable, ...]:
    """A command whose words hold every sign that a shell or roff would take for its own."""
    option = CompletedFlag(("--odd",), "it's `odd` $(touch ran) \\ 'x' [y]: \"z\"", "X", "", ("it's", "$(touch ran)"))
    return (CommandTable((), "", (ArgumentGroup("", (option,)),), ()),)


def test_words_of_the_tables_are_quoted_for_bash(phoenix: Phoenix) -> None:
    (phoenix.cwd / "script").write_text(bash_script(odd_table()))
    code = (
        'source ./script\nCOMP_WORDS=(phoenix --odd "")\nCOMP_CWORD=2\n_phoenix phoenix\n'
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    shown = in_shell(phoenix, [need("bash"), "--norc", "--noprofile", "-c", code])
    assert shown == ["it\\'s", "\\$\\(touch", "ran\\)"]
    assert not (phoenix.cwd / "ran").exists()


def complete_in_zsh(phoenix: Phoenix, line: str) -> str:
    """Proposals that zsh is given, one a line; the functions of its line editor are stand-ins."""
    code = (
        "compdef() { }\nsource <(phoenix completion zsh)\n"
        "compadd() { [[ $1 == -P ]] && shift 2\n"
        "  local -a all; all=(); local from=0 one; while [[ $1 == -* && $1 != -- ]]; do\n"
        "  case $1 in -d) shift 2;; -a) from=1; shift;; *) shift;; esac; done; shift\n"
        '  if ((from)); then all=("${(@P)1}"); else all=("$@"); fi\n'
        '  for one in $all; do [[ $one == "$PREFIX"* ]] && print -r -- $one; done }\n'
        "compset() { PREFIX=${PREFIX#*=} }\n"
        f"words=({line})\nCURRENT=${{#words}}\nPREFIX=${{words[CURRENT]}}\n_phoenix\n"
    )
    return "\n".join(in_shell(phoenix, [need("zsh"), "-f", "-c", code]))


@pytest.mark.parametrize(
    ("line", "proposed"),
    [
        ("phoenix conv", "conversations"),
        ("phoenix conversations e", "export"),
        ("phoenix conversations export --format ''", "json\nmarkdown"),
        ("phoenix --permission-mode=pl", "plan"),
        ("phoenix -m ollama/qwen3:", "ollama/qwen3:8b"),
        ("phoenix -r --no-sa", "--no-sandbox-network"),
        ("phoenix -m a/", "a/\\$\\(touch\\ ran\\)"),
        ("phoenix -p conv", ""),
    ],
)
def test_zsh_proposes(phoenix: Phoenix, line: str, proposed: str) -> None:
    assert complete_in_zsh(phoenix, line) == proposed
    assert not (phoenix.cwd / "ran").exists()


def test_zsh_can_read_every_word_of_the_tables(phoenix: Phoenix) -> None:
    (phoenix.cwd / "script").write_text(zsh_script(odd_table()))
    assert in_shell(phoenix, [need("zsh"), "-f", "-n", "script"]) == []


@pytest.mark.parametrize(
    ("line", "proposed"),
    [
        ("phoenix conv", ["conversations"]),
        ("phoenix conversations e", ["export"]),
        ("phoenix conversations export --format ", ["json", "markdown"]),
        ("phoenix --permission-mode=pl", ["--permission-mode=plan"]),
        ("phoenix -m ollama/qwen3:", ["ollama/qwen3:8b"]),
        ("phoenix -m a/", ["a/$(touch ran)"]),
        ("phoenix -p conv", []),
    ],
)
def test_fish_proposes(phoenix: Phoenix, line: str, proposed: list[str]) -> None:
    code = f"phoenix completion fish | source\ncomplete -C {shlex.quote(line)}\n"
    shown = in_shell(phoenix, [need("fish"), "--no-config", "-c", code])
    assert [one.partition("\t")[0] for one in shown] == proposed
    assert not (phoenix.cwd / "ran").exists()


def test_fish_can_read_every_word_of_the_tables(phoenix: Phoenix) -> None:
    (phoenix.cwd / "script").write_text(fish_script(odd_table()))
    assert in_shell(phoenix, [need("fish"), "--no-execute", "script"]) == []


def test_an_unknown_shell_is_a_sentence(tmp_path: Path) -> None:
    ran = asyncio.run(phoenix_in(tmp_path).run("completion", "tcsh"))
    assert ran.code == 2
    assert ran.err.startswith("phoenix: Argument SHELL: invalid choice: 'tcsh' (choose from ")


def test_the_manual_page_in_the_repository_is_current() -> None:
    """Renew it with `phoenix man > docs/phoenix.1`."""
    assert (ROOT / "docs" / "phoenix.1").read_text("utf-8") == manual_page(command_tables())


def test_roff_takes_no_text_for_a_request() -> None:
    assert [escape_roff(text) for text in (".SH x", "'x", "a\\fB", "--x")] == ["\\&.SH x", "\\&'x", "a\\efB", "\\-\\-x"]
    assert escape_roff("A… é") == "A\\[u2026] \\[u00E9]"


def test_the_manual_page_is_formatted_without_a_warning(tmp_path: Path) -> None:
    groff = need("groff")
    page = tmp_path / "page.1"
    page.write_text(manual_page(command_tables()))
    ran = subprocess.run(
        [groff, "-man", "-Tutf8", "-P-cbou", "-ww", str(page)], capture_output=True, text=True, timeout=DEADLINE
    )
    assert ran.stderr == ""
    assert "phoenix conversations export" in ran.stdout
