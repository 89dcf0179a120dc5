"""Hosts that are known of a command before it runs: guesses for a question."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.command_access import NeededHosts, find_needed_hosts

PYPI = ("pypi.org", "files.pythonhosted.org")


@pytest.mark.parametrize(
    ("command", "hosts"),
    [
        ("curl -sS https://a.example/x?y=https%3A", ("a.example",)),
        ("curl http://a.example:80/ https://b.example:8443/", ("a.example", "b.example:8443")),
        ("curl https://user:pw@a.example/", ("a.example",)),
        ("curl -o x a.example/path", ("a.example",)),
        ("wget 'https://a.example/a b'", ("a.example",)),
        ("git clone https://a.example/x.git", ("a.example",)),
        ("bash -c 'curl https://a.example'", ("a.example",)),
        ("echo $(curl https://a.example)", ("a.example",)),
        ("curl https://$HOST/x", ()),
        ("curl https://2130706433/", ()),
        ("python fetch.py", ()),
        ("cargo fetch", ("index.crates.io", "static.crates.io")),
        ("npm install --registry https://r.example/ x", ("r.example",)),
        ("uv pip install -i https://r.example/simple x", ("r.example",)),
    ],
)
def test_hosts_are_read_from_the_words_of_a_command(tmp_path: Path, command: str, hosts: tuple[str, ...]) -> None:
    assert find_needed_hosts(command, (), tmp_path) == NeededHosts(hosts)


@pytest.mark.parametrize(
    "command",
    [
        "ping a.example",
        "dig a.example",
        "nc a.example 80",
        "curl http://localhost:3000",
        "curl http://127.0.0.1/",
        "curl http://10.0.0.1/",
        "curl http://printer.local/",
        "npm run dev",
        "python -m http.server",
    ],
)
def test_what_cannot_use_the_proxy_needs_the_whole_network(tmp_path: Path, command: str) -> None:
    assert find_needed_hosts(command, (), tmp_path) == NeededHosts((), any_host=True)


def test_a_model_names_hosts_or_the_whole_network(tmp_path: Path) -> None:
    assert find_needed_hosts("x", ("B.example", "b.example:8443", "*.c.example"), tmp_path).hosts == (
        "b.example",
        "b.example:8443",
        "*.c.example",
    )
    assert find_needed_hosts("x", ("b.example", "*"), tmp_path) == NeededHosts((), any_host=True)


def test_settings_of_a_package_manager_take_the_place_of_the_usual_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home/.pip").mkdir(parents=True)
    assert find_needed_hosts("npm install", (), tmp_path).hosts == ("registry.npmjs.org",)
    (tmp_path / ".npmrc").write_text("registry=https://npm.example/\n@own:registry = https://own.example/x\n")
    assert find_needed_hosts("npm install", (), tmp_path).hosts == ("npm.example", "own.example")
    assert set(PYPI) <= set(find_needed_hosts(".venv/bin/pip install x", (), tmp_path).hosts)
    (tmp_path / "home/.pip/pip.conf").write_text("[global]\nindex-url = https://pip.example/simple\n")
    assert "pip.example" in find_needed_hosts(".venv/bin/pip install x", (), tmp_path).hosts
    assert not set(PYPI) & set(find_needed_hosts(".venv/bin/pip install x", (), tmp_path).hosts)


def test_a_pipe_in_place_of_settings_holds_nothing_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".npmrc")
    assert find_needed_hosts("npm install", (), tmp_path).hosts == ("registry.npmjs.org",)
