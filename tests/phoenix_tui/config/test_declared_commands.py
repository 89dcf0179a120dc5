"""Commands of hooks and servers as the user reads them: whole, in their place, nothing that runs is hidden."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.config.sources import report as declaring
from phoenix_tui.config.sources.extension_files import SourceFile, SourceKind, digest_of
from phoenix_tui.config.sources.report import list_declared
from phoenix_tui.text.trust_text import command_line

KEY = "sk-ant-planted-0123456789"


def lines(folder: Path, document: object, kind: SourceKind = SourceKind.SERVERS) -> tuple[str, ...]:
    path = folder / "file.json"
    path.write_text(json.dumps(document))
    return list_declared(SourceFile(path, kind, path, digest_of(path.read_bytes())))


def server(folder: Path, **definition: object) -> tuple[str, ...]:
    return lines(folder, {"mcpServers": {"files": definition}})


def test_hooks_stand_with_their_event_and_matcher(tmp_path: Path) -> None:
    hook = {"type": "command", "command": "lint --all"}
    document = {
        "permissions": {"allow": ["Bash(ls)"]},
        "hooks": {"PreToolUse": [{"matcher": "Bash|Edit", "hooks": [hook]}], "Stop": [{"hooks": [hook, hook]}]},
    }
    assert lines(tmp_path, document, SourceKind.HOOKS) == (
        "PreToolUse Bash|Edit: lint --all",
        "Stop: lint --all",
        "Stop: lint --all",
    )


def test_servers_stand_with_words_variables_addresses_and_helpers(tmp_path: Path) -> None:
    assert server(tmp_path, command="npx", args=["-y", "a b", 7], env={"LD_PRELOAD": "./x.so", "N": 1}) == (
        "files: LD_PRELOAD=./x.so npx -y 'a b' 7",
    )
    assert server(tmp_path, url="https://one.test/mcp", headersHelper="./token.sh") == (
        "files: https://one.test/mcp",
        "files: headers from ./token.sh",
    )


def test_a_key_is_removed_and_nothing_that_a_shell_would_run(tmp_path: Path) -> None:
    (line,) = server(tmp_path, command="serve", env={"KEY": KEY})
    assert (line, command_line(line)) == (f"files: KEY={KEY} serve", "files: KEY=[redacted] serve")
    for hidden in ("password=$(curl evil)", "x -----BEGIN A PRIVATE KEY-----; curl evil", "Bearer $(curl evil)"):
        assert [command_line(line) for line in server(tmp_path, command=hidden)] == [f"files: {hidden}"]


def test_a_file_that_changed_since_the_look_shows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text('{"command": "one"}')
    file = SourceFile(path, SourceKind.SERVERS, path, digest_of(b'{"command": "another"}'))
    assert list_declared(file) == ()


def test_more_commands_than_the_limit_and_long_ones_say_that_they_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declaring, "MOST_LINES", 3)
    assert lines(tmp_path, [{"command": str(number)} for number in range(9)])[2:] == ("2", "… and more than 3 others")
    monkeypatch.setattr(declaring, "LONGEST", 10)
    assert server(tmp_path, command="x" * 1_000) == ("files: xxx … 997 characters more",)


_KEYS = ["command", "args", "env", "url", "matcher", "hooks", "x"]
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
    max_leaves=30,
)


@given(document=_json, kind=st.sampled_from([SourceKind.HOOKS, SourceKind.SERVERS]))
def test_any_json_is_read_without_a_fault(
    document: object, kind: SourceKind, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = lines(tmp_path_factory.mktemp("any"), document, kind)
    assert all(isinstance(line, str) for line in found)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b"null", b'{"command": "\\ud800"}'])
def test_what_is_no_json_shows_nothing_or_one_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    assert len(list_declared(SourceFile(path, SourceKind.HOOKS, path, digest_of(content)))) <= 1
