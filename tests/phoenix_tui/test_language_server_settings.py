"""`[lsp.NAME]`, `[format]` and the folders in which servers may run what they contain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phoenix_tui.config.language_servers import read_tables
from phoenix_tui.config.load import parse_layer
from phoenix_tui.config.settings import ConfigError
from phoenix_tui.wiring.edit_services import AllowedFolders
from tools.lsp.definitions import KNOWN_SERVERS


def tables(tmp_path: Path, text: str) -> tuple[dict[str, object], tuple[str, ...]]:
    """Servers by name, and notices without the path of the file."""
    path = tmp_path / "config.toml"
    path.write_text(text)
    found = read_tables(path)
    return {one.name: one for one in found.servers}, tuple(one.replace(f"{path}:", "") for one in found.notices)


def test_without_tables_the_known_servers_are_in_force(tmp_path: Path) -> None:
    assert read_tables(tmp_path / "config.toml").servers == KNOWN_SERVERS
    names = [server.name for server in KNOWN_SERVERS]
    assert len(set(names)) == len(names)
    for server in KNOWN_SERVERS:
        assert all("." in pattern for pattern in server.languages)
    json = next(server for server in KNOWN_SERVERS if server.name == "json")
    assert [json.language_of(name) for name in ("a.json", "tsconfig.base.json", "b.jsonc")] == [
        "json",
        "jsonc",
        "jsonc",
    ]


def test_a_table_changes_a_known_server_or_adds_one_before_all_others(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        "[lsp.ruff]\nenabled = false\n[lsp.pyright]\ncommand = \"my-pyright --stdio 'a b'\"\ntimeout = 5\n"
        '[lsp.own]\ncommand = ["own", "--x"]\nfiles = ["*.own", "Ownfile"]\nlanguage = "ownish"\nignore = ["W1"]\n'
        "runs_project = true\noptions = {a = 1}\nsettings = {own = {b = 2}}\n"
    )
    found = read_tables(path)
    assert found.notices == ()
    assert [server.name for server in found.servers][:3] == ["ruff", "pyright", "own"]
    ruff, pyright, own = found.servers[:3]
    assert (ruff.is_enabled, ruff.is_users) == (False, False)
    assert (pyright.command, pyright.timeout, pyright.is_users) == (("my-pyright", "--stdio", "a b"), 5.0, True)
    assert pyright.languages == {"*.py": "python", "*.pyi": "python"}
    assert (own.language_of("x.own"), own.language_of("Ownfile"), own.language_of("x.py")) == ("ownish", "ownish", "")
    assert (own.passed_over, own.runs_project, own.options, own.settings) == (
        ("W1",),
        True,
        {"a": 1},
        {"own": {"b": 2}},
    )


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        ('[lsp.x]\ncommand = "x"\n', "1: [lsp.x] is left out: it needs 'command' and 'files'."),
        (
            'a = 1\n[lsp."x y"]\ncommand = ""\nfiles = "*.x"\n',
            "2: [lsp.x y] is left out: 'command' must be a program and",
        ),
        (
            '[lsp.ruff]\ncommand = "a \'b"\n',
            "1: [lsp.ruff] is left out: 'command' cannot be read: No closing quotation.",
        ),
        ("[lsp.ruff]\nenabled = 1\n", "1: [lsp.ruff] is left out: 'enabled' must be true or false."),
        (
            "[lsp.ruff]\ntimeout = 0\n",
            "1: [lsp.ruff] is left out: 'timeout' must be a number of seconds from 1 to 600.",
        ),
        ("[lsp.ruff]\nfiles = []\n", "1: [lsp.ruff] is left out: 'files' must be a list of texts."),
        ("[lsp.ruff]\nfile = 1\n", "1: [lsp.ruff] is left out: unknown key 'file'. Valid keys are command, files,"),
        ("[lsp]\nruff = 3\n", "1: [lsp.ruff] is left out: it must be a table."),
        ("lsp = 3\n", "1: 'lsp' must be at most 50 tables or entries."),
        ('[format]\n"*.py" = 3\n', "1: a formatter of [format] is left out: '*.py' must be a list of texts."),
    ],
)
def test_a_wrong_table_is_left_out_with_its_line(tmp_path: Path, text: str, notice: str) -> None:
    servers, notices = tables(tmp_path, text)
    assert len(notices) == 1
    assert notices[0].startswith(notice)
    assert set(servers) == {server.name for server in KNOWN_SERVERS}


@pytest.mark.parametrize("text", ["lsp = [", "x" * 2_000_000, "[lsp." + "a." * 5_000 + "b]\n"])
def test_a_file_that_cannot_be_read_leaves_the_known_servers(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    assert {one.name for one in read_tables(path).servers} >= {server.name for server in KNOWN_SERVERS}


@pytest.mark.parametrize("text", ['[lsp.x]\ncommand = "sh -c evil"\nfiles = "*.py"\n', '[format]\n"*.py" = "evil"\n'])
def test_a_project_names_neither_a_server_nor_a_formatter(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"unknown key '(lsp|format)'\. A project can set"):
        parse_layer(text, tmp_path / "config.toml", project=True)
    assert parse_layer(text, tmp_path / "config.toml", project=False).values == {}


def test_an_answer_is_about_this_very_folder_and_lasts(tmp_path: Path) -> None:
    path, folder = tmp_path / "config" / "language_servers.json", tmp_path / "project"
    folder.mkdir()
    answers = AllowedFolders(path)
    assert not answers.is_allowed(folder)
    answers.answer(folder, allowed=True)
    assert answers.is_allowed(folder) and AllowedFolders(path).is_allowed(folder)
    assert not answers.is_allowed(tmp_path)
    folder.rename(tmp_path / "moved")
    folder.mkdir()
    assert not answers.is_allowed(folder)  # another folder in its place
    assert not answers.is_allowed(tmp_path / "moved")
    answers.answer(folder, allowed=True)
    AllowedFolders(path).answer(folder, allowed=False)
    assert not answers.is_allowed(folder)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"folders": 3}', '{"folders": {"/x": 3}}', "[" * 50_000])
def test_a_broken_file_allows_nothing_and_can_be_answered_again(tmp_path: Path, text: str) -> None:
    path = tmp_path / "language_servers.json"
    path.write_text(text)
    answers = AllowedFolders(path)
    assert not answers.is_allowed(tmp_path)
    answers.answer(tmp_path, allowed=True)
    assert answers.is_allowed(tmp_path)
    assert list(json.loads(path.read_text())["folders"]) == [str(tmp_path)]


def test_an_answer_of_a_run_that_keeps_nothing_ends_with_it(tmp_path: Path) -> None:
    path = tmp_path / "language_servers.json"
    answers = AllowedFolders(path, keeps=False)
    answers.answer(tmp_path, allowed=True)
    assert answers.is_allowed(tmp_path)
    assert not path.exists()
