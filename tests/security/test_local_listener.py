"""Weakness: whoever listens on a local model port was sent prompts and files when no key was set; now it is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phoenix_tui.models.accepted import AcceptedServers
from phoenix_tui.models.choice import ChosenBy, ModelFacts, choose_model
from phoenix_tui.models.servers import LocalServer, ServerKind
from tests.support.cli import Phoenix, phoenix_in
from tests.support.loopback import Loopback, Talk, serve
from tests.support.program import program

ELSEWHERE = LocalServer(ServerKind.OLLAMA, "http://127.0.0.1:11434/v1", ("evil\x1b[2J\n-m other/x", "b"))


def test_a_listener_is_used_only_after_a_yes_for_its_kind_and_address(tmp_path: Path) -> None:
    accepted = AcceptedServers(tmp_path / "servers.json")
    assert accepted.split([ELSEWHERE]) == ((), (ELSEWHERE,))
    accepted.accept("anthropic/claude")
    assert not accepted.path.exists()
    accepted.accept("vllm/some")
    assert accepted.split([ELSEWHERE]) == ((), (ELSEWHERE,))
    accepted.accept("ollama/b")
    assert accepted.split([ELSEWHERE]) == ((ELSEWHERE,), ())
    moved = LocalServer(ServerKind.OLLAMA, "http://127.0.0.1:11435/v1", ("b",))
    assert accepted.split([moved]) == ((), (moved,))
    assert accepted.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"accepted": 5}', '{"accepted": [5, null]}', "[" * 9999, "\0"])
def test_a_file_that_makes_no_sense_accepts_nothing(text: str, tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    path.write_text(text, "ascii")
    assert AcceptedServers(path).split([ELSEWHERE]) == ((), (ELSEWHERE,))


def test_what_waits_is_named_and_never_chosen() -> None:
    choice = choose_model(ModelFacts(waiting=(ELSEWHERE,)))
    assert (choice.is_guide, choice.sentence) == (True, choice.waiting)
    assert "http://127.0.0.1:11434/v1" in choice.sentence
    assert "\x1b" not in choice.sentence
    assert "\n" not in choice.sentence
    beside = choose_model(ModelFacts(waiting=(ELSEWHERE,), embedded=("small",)))
    assert beside.chosen_by is ChosenBy.EMBEDDED
    assert choose_model(ModelFacts(servers=(ELSEWHERE,))).chosen_by is ChosenBy.LOCAL_SERVER
    assert choose_model(ModelFacts(flag="ollama/b", waiting=(ELSEWHERE,))).sentence == ""


PORTS = """
import sys
from phoenix_tui.models import servers
servers.ENDPOINTS = tuple(servers.Endpoint(one.kind, {port}, words=one.words) for one in servers.ENDPOINTS[:1])
servers.discover_local_servers.__defaults__ = (5.0, servers.ENDPOINTS)
"""


def listening(folder: Path, server: Loopback) -> Phoenix:
    """A Phoenix without a key, for which the usual ports are that of `server`."""
    hook = folder / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(PORTS.format(port=server.url.rpartition(":")[2]), "ascii")
    phoenix = phoenix_in(folder, PHOENIX_MODEL="")
    return Phoenix(
        phoenix.home, phoenix.cwd, {"PHOENIX_MODEL": "", "PYTHONPATH": f"{hook}:{Path(__file__).parents[2]}"}
    )


async def lists(talk: Talk) -> None:
    await talk.plain(200, json.dumps({"data": [{"id": "planted"}]}).encode())


async def test_a_run_without_a_screen_refuses_and_says_what_to_pass(tmp_path: Path) -> None:
    async with serve(*[lists] * 5) as server:
        ran = await listening(tmp_path, server).run("-p", "a secret")
        assert all(seen.path == "/v1/models" and not seen.body for seen in server.requests)
        assert server.requests
    assert (ran.code, ran.out) == (41, "")
    assert "-m ollama/planted" in ran.err
    assert len(ran.err.splitlines()) == 1


async def test_the_first_screen_says_it_and_a_choice_is_remembered(tmp_path: Path) -> None:
    async with serve(*[lists] * 20) as server:
        phoenix = listening(tmp_path, server)
        async with program(phoenix) as running:
            await running.shows("Found on this machine: ollama/planted", "/model uses it; until then", "demo/guide")
            await running.ready()
            await running.send("/model ollama/planted")
            await running.shows("ask · no sandbox · planted ·")
            await running.until((phoenix.home / "servers.json").exists)
        assert all(seen.path == "/v1/models" for seen in server.requests)
        kept = json.loads((phoenix.home / "servers.json").read_text("utf-8"))
    assert kept["accepted"][0].startswith("ollama http://127.0.0.1:")
