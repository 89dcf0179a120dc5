"""Tokens of MCP servers in the keyring: chosen in credentials.toml, moved out of the file, never in the way."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec import Raw

from engine.extensions.mcp.credentials_file import LONGEST, CredentialsFile
from engine.ports.mcp import ServerState
from phoenix_tui.config.credentials import load_credentials, save_key
from phoenix_tui.config.settings import ConfigError
from phoenix_tui.wiring import mcp
from phoenix_tui.wiring.mcp import KeyringTokens
from tests.engine.extensions.test_sign_ins import address, over_http, wait_until_connected
from tests.support.mcp_hubs import hub_in
from tests.support.mcp_web import SignInServer, serving
from tests.tools.mcp_host.test_http_servers import fetch
from tools.mcp_host.protocol import NOTHING

Entries: TypeAlias = dict[tuple[str, str], str]


class Keyring:
    """A keyring whose entries a test sees; `wrong` happens at each use."""

    def __init__(self, entries: Entries, wrong: Callable[[], None] = lambda: None) -> None:
        self.entries, self.wrong = entries, wrong

    def get_password(self, service: str, name: str) -> str | None:
        self.wrong()
        return self.entries.get((service, name))

    def set_password(self, service: str, name: str, value: str) -> None:
        self.wrong()
        self.entries[service, name] = value

    def delete_password(self, service: str, name: str) -> None:
        del self.entries[service, name]


def stored_in(entries: Entries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", Keyring(entries))


def test_tokens_move_from_the_file_into_the_keyring_and_go_from_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries: Entries = {}
    stored_in(entries, monkeypatch)
    file = CredentialsFile(tmp_path / "mcp_tokens.json")
    for key in ("mcp:a", "mcp:b"):
        file.put(key, Raw(b'{"old":1}'))
    tokens = KeyringTokens(file)
    assert bytes(tokens.get("mcp:a")) == b'{"old": 1}'
    tokens.put("mcp:a", Raw(b'{"new":"\xc3\xa9"}'))
    assert entries == {("phoenix-tui", "mcp:a"): '{"new":"é"}'}
    assert bytes(tokens.get("mcp:a")).decode() == '{"new":"é"}'
    assert json.loads(file.path.read_text()) == {"mcp:b": {"old": 1}}
    for key in ("mcp:a", "mcp:b", "mcp:gone"):
        tokens.put(key, NOTHING)
    assert (entries, json.loads(file.path.read_text())) == ({}, {})


def _hangs() -> None:
    threading.Event().wait()


def _refuses() -> None:
    raise RuntimeError("no session bus\nat all")


@pytest.mark.parametrize(
    ("keyring", "why"),
    [
        (None, "the keyring is not installed; install `phoenix-tui"),
        (Keyring({}, _refuses), "the keyring refuses: no session bus"),
        (Keyring({}, _hangs), "unlock it"),
    ],
    ids=["missing", "refusing", "hanging"],
)
def test_a_keyring_that_does_not_work_is_a_sentence_and_keeps_nobody(
    keyring: object, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    monkeypatch.setattr(mcp, "KEYRING_PATIENCE", 0.05)
    tokens = KeyringTokens(CredentialsFile(tmp_path / "mcp_tokens.json"))
    for ask in (lambda: tokens.get("a"), lambda: tokens.put("a", Raw(b"1"))):
        with pytest.raises(OSError, match=why):
            ask()
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "keyring")


def test_odd_content_of_the_keyring_is_no_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = "phoenix-tui"
    stored_in({(service, "a"): "no JSON", (service, "b"): f'"{"x" * LONGEST}"'}, monkeypatch)
    tokens = KeyringTokens(CredentialsFile(tmp_path / "mcp_tokens.json"))
    assert [bytes(tokens.get(key)) for key in ("a", "b")] == [bytes(NOTHING)] * 2
    with pytest.raises(OSError, match="too long"):
        tokens.put("c", Raw(b'"' + b"x" * LONGEST + b'"'))


def test_the_choice_is_in_credentials_toml_and_a_new_key_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "credentials.toml"
    assert load_credentials(path, {}).mcp_tokens == "file"
    path.write_text('[openai]\napi_key = "k"\n\n[mcp]\ntokens = "keyring"\n')
    save_key(path, "groq", "g")
    save_key(path, "mcp", "of a provider of this name")
    found = load_credentials(path, {})
    assert (found.mcp_tokens, found.key("openai"), found.key("groq")) == ("keyring", "k", "g")
    assert found.key("mcp") == "of a provider of this name"
    path.write_text('[openai]\napi_key = "k"\n[mcp]\ntokens = "vault"\n')
    with pytest.raises(ConfigError) as caught:
        load_credentials(path, {})
    assert str(caught.value) == f'{path}:4: tokens must be "file" or "keyring".'


async def test_a_sign_in_is_kept_in_the_keyring_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries: Entries = {}
    stored_in(entries, monkeypatch)
    server, path = SignInServer(), tmp_path / "mcp_tokens.json"
    async with serving(server):
        async with hub_in(tmp_path, over_http(server.url)) as one:
            one.hub.credentials = KeyringTokens(CredentialsFile(path))
            found = await address(one)
            state = parse_qs(urlsplit(found.url).query)["state"][0]
            await fetch(f"{found.callback}?code=c&state={state}")
            await wait_until_connected(one)
        assert "token1" in "".join(entries.values())
        assert not path.exists()
        async with hub_in(tmp_path, over_http(server.url)) as one:
            one.hub.credentials = KeyringTokens(CredentialsFile(path))
            await one.hub.settle(one.record, 20.0)
            assert (await one.view("web")).state is ServerState.CONNECTED


def test_tokens_of_servers_that_are_stored_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "mcp_tokens.json"
    start = threading.Barrier(8)

    def put(number: int) -> None:
        start.wait()
        for turn in range(5):
            CredentialsFile(path).put(f"{number}-{turn}", Raw(b"1"))

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(json.loads(path.read_text())) == 40
