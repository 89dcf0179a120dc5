"""The models on offer: known without a request, then each provider as it answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.ports import ModelInfo
from phoenix_tui.config.credentials import Credentials
from phoenix_tui.models.offers import KeptLists, PreferredModels, ProviderState
from phoenix_tui.wiring.models import ModelBoard
from phoenix_tui.wiring.providers import ProviderRegistry
from tests.phoenix_tui.wiring.test_provider_registry import registry
from tests.support.loopback import Loopback, Talk, serve
from tests.support.waiting import poll


def table(name: str, server: Loopback) -> str:
    return f'[providers.{name}]\nbase_url = "{server.url}/v1"\n'


def board(made: ProviderRegistry) -> ModelBoard:
    return ModelBoard(made, PreferredModels())


async def answer(talk: Talk) -> None:
    await talk.plain(200, json.dumps({"data": [{"id": "m"}]}).encode())


async def test_the_list_of_an_earlier_process_is_known_without_a_request(tmp_path: Path) -> None:
    async with serve(answer) as server:
        text = table("work", server).replace("127.0.0.1", "localhost.localdomain") + table("own", server)
        first = registry(text)
        first.lists = KeptLists(tmp_path / "lists.json")
        first.lists.keep("work", text.split('"')[1], (ModelInfo("work", "kept", 1_000),))
        second = registry(text)
        second.lists = KeptLists(tmp_path / "lists.json")
        known = {one.name: one for one in await board(second).list_known()}
        assert server.requests == []
        await second.close()
    assert [one.name for one in known["work"].models] == ["kept"]
    assert (known["own"].state, known["own"].models) == (ProviderState.ASKING, ())
    assert [one.reference for one in known["demo"].models] == ["demo/guide"]
    assert (known["gemini"].state, known["gemini"].words) == (ProviderState.NO_KEY, "set GEMINI_API_KEY")
    assert not known["vllm"].is_expected


async def test_a_provider_that_hangs_holds_up_no_other_and_leaving_ends_the_request() -> None:
    async def hang(talk: Talk) -> None:
        await talk.stall()

    async with serve(hang) as slow, serve(answer) as quick:
        made = registry(table("slow", slow) + table("quick", quick))
        models = board(made)
        answers = models.ask_all()
        async for offer in answers:
            if offer.name == "quick":
                break
        await poll(lambda: slow.requests)
        await answers.aclose()
        known = {one.name: one for one in await models.list_known()}
        await made.close()
    assert [one.reference for one in known["quick"].models] == ["quick/m"]
    assert known["slow"].state is ProviderState.ASKING


async def test_a_key_that_is_stored_later_counts_at_once() -> None:
    made = registry("")
    models = board(made)
    assert next(one for one in await models.list_known() if one.name == "groq").state is ProviderState.NO_KEY
    made.credentials = Credentials({}, {"groq": "key-0123456789"})
    assert next(one for one in await models.list_known() if one.name == "groq").state is ProviderState.ASKING
    await made.close()


async def test_facts_come_from_the_list_else_from_the_catalogue_with_a_price() -> None:
    made = registry("", ANTHROPIC_API_KEY="sk-1")
    models = board(made)
    found = await models.facts("anthropic/claude-sonnet-5-5")
    assert found is not None
    assert (found.context_window, found.price_in, found.price_out, found.tools) == (1_000_000, 2.0, 10.0, True)
    assert await models.facts("nowhere/model") is None
    (demo,) = (one for one in await models.list_known() if one.name == "demo")
    assert await models.facts("demo/guide") == replace(demo.models[0])
    assert models.has_provider("openrouter")
    assert not models.has_provider("z-ai")
    await made.close()


class LockedKeyring:
    """A keyring that nothing can be read from."""

    @staticmethod
    def get_password(service: str, name: str) -> str:
        raise RuntimeError(f"{service} is locked for {name}")


@pytest.mark.parametrize(
    ("keyring", "words"),
    [
        (None, "install `phoenix-tui[keyring]`"),
        (LockedKeyring, "The key of groq cannot be read from the keyring: phoenix-tui is locked for groq."),
    ],
)
async def test_a_key_in_a_keyring_that_cannot_be_read_costs_its_provider_alone(
    monkeypatch: pytest.MonkeyPatch, keyring: object, words: str
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", keyring)  # None: it is not installed
    made = registry("")
    made.credentials = Credentials({}, {"groq": "keyring"})
    models = board(made)
    offers = {one.name: one async for one in models.ask_all()}
    assert offers["groq"].state is ProviderState.NO_KEY
    assert words in offers["groq"].words
    assert offers["demo"].state is ProviderState.READY
    assert await models.facts("groq/m") is None
    await made.close()


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_an_address_that_is_none_costs_its_provider_alone(kind: str) -> None:
    made = registry(f'[providers.own]\nbase_url = "http://["\nkind = "{kind}"\n')
    offers = {one.name: one async for one in board(made).ask_all()}
    assert (offers["own"].state, offers["own"].words) == (
        ProviderState.UNREACHABLE,
        "The address of own is not valid: Invalid IPv6 URL.",
    )
    assert offers["demo"].state is ProviderState.READY
    await made.close()
