"""Effort of a conversation: kept with it, the same for a whole run, inherited by sub-agents."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.engine import ConversationOptions
from engine.executor.engine_settings import EngineSettings
from engine.ports import ConversationChanges, ImportTerms, ModelRequest, PromptRead, ProviderNotice, StreamItem
from engine.ports.profiles import Profile
from engine.records import PermissionMode
from engine.run_options import LEVELS, Effort, nearest
from engine.store import StorePaths, open_store
from engine.updates import Noticed, PromptProgressed
from tests.support.engine import EngineHarness, StubTool, engine_harness, run_turn, until
from tests.support.scripted_provider import Reply, Script, ScriptedCall, ScriptedProvider, Text

LOOKS = Reply((ScriptedCall("bash", '{"command": "ls"}', "t1"),))
DONE = Reply((Text("Done."),))
SPAWNS = Reply((ScriptedCall("spawn_agents", json.dumps({"tasks": [{"task": "TASK one"}]})),), when="begin")
SUBMITS = Reply((ScriptedCall("submit_result", '{"result": "first"}'),), when="TASK one")


def sent(harness: EngineHarness) -> list[Effort]:
    return [request.effort for request in harness.provider.requests]


@pytest.mark.parametrize(
    ("wanted", "known", "taken"),
    [
        ("default", "low high", "default"),
        ("high", "", "default"),
        ("high", "off low medium high max", "high"),
        ("medium", "low high max", "high"),
        ("max", "off low high", "high"),
        ("off", "low high", "low"),
        ("low", "off high", "high"),
        ("max", "off", "off"),
    ],
)
def test_a_level_that_a_model_lacks_becomes_the_next_higher_one_or_its_highest(
    wanted: str, known: str, taken: str
) -> None:
    assert nearest(Effort(wanted), [Effort(word) for word in known.split()]) is Effort(taken)


def test_the_nearest_level_is_always_one_that_the_model_knows() -> None:
    for number in range(1, 2**5):
        known = [level for place, level in enumerate(LEVELS[1:]) if number >> place & 1]
        assert {nearest(wanted, known) for wanted in LEVELS[1:]} <= set(known)


async def test_a_conversation_begins_with_its_effort_and_a_change_counts_from_the_next_run(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, LOOKS, DONE, DONE, DONE) as harness:
        tool = harness.engine.ports.tools["bash"]
        assert isinstance(tool, StubTool)
        options = ConversationOptions(harness.cwd, "scripted/main", permission_mode=PermissionMode.AUTO)
        conversation = await harness.engine.create(replace(options, effort=Effort.HIGH))
        await conversation.say("look")
        await until(tool.started.is_set)
        await conversation.change(ConversationChanges(effort=Effort.LOW))
        await conversation.wait_idle()
        await run_turn(conversation, "again")
        await conversation.change(ConversationChanges(effort=Effort.DEFAULT))
        await run_turn(conversation, "again")
    assert sent(harness) == [Effort.HIGH, Effort.HIGH, Effort.LOW, Effort.DEFAULT]


async def test_an_effort_is_stored_and_goes_with_a_fork_and_through_export_and_import(tmp_path: Path) -> None:
    async with engine_harness(tmp_path / "one", DONE) as harness:
        conversation = await harness.run("hello")
        await conversation.change(ConversationChanges(effort=Effort.MAX))
        fork = await harness.engine.fork(conversation.id)
        part = await harness.engine.fork(conversation.id, 1)
        stored = await harness.store.conversation(conversation.id)
        assert stored is not None
        assert (stored.effort, fork.record.effort, part.record.effort) == (Effort.MAX,) * 3
        document = json.loads(json.dumps(await harness.store.library.export(conversation.id)))
    store = await open_store(StorePaths.under(tmp_path / "two"))
    try:
        imported = await store.library.import_conversation(document, 9.0, ImportTerms(tmp_path, "scripted/main"))
        found = await store.conversation(imported.id)
        assert found is not None
        assert found.effort is Effort.MAX
    finally:
        await store.close()


@pytest.mark.parametrize(("own", "taken"), [("", Effort.HIGH), ("low", Effort.LOW), ("default", Effort.DEFAULT)])
async def test_a_sub_agent_has_the_effort_of_its_profile_or_else_its_parents(
    tmp_path: Path, own: str, taken: Effort
) -> None:
    done = Reply((Text("Both are back."),), when="Sub-agent results")
    async with engine_harness(tmp_path, SPAWNS, SUBMITS, done) as harness:
        assert harness.engine.ports.profiles is not None
        profile = Profile("general", effort=own)
        harness.engine.ports.profiles.resolve = lambda name, cwd: profile  # type: ignore[method-assign]  # the one of the test
        parent = await harness.conversation()
        await parent.change(ConversationChanges(effort=Effort.HIGH))
        await run_turn(parent, "begin")
    assert sent(harness) == [Effort.HIGH, taken, Effort.HIGH]


async def test_a_title_is_asked_for_without_thinking(tmp_path: Path) -> None:
    names = Reply((Text("A title"),), when="Assistant:")
    async with engine_harness(tmp_path, DONE, names, settings=EngineSettings(auto_title=True)) as harness:
        conversation = await harness.conversation()
        await conversation.change(ConversationChanges(effort=Effort.MAX))
        await conversation.say("hello")
        await until(lambda: len(harness.provider.requests) == 2)
    assert sent(harness) == [Effort.MAX, Effort.OFF]


class NoticingProvider(ScriptedProvider):
    """Says first that something was refused, then how much of the prompt was read."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        yield ProviderNotice("m does not accept effort max")
        yield PromptRead(40)
        async for item in super().stream(request):
            yield item


async def test_what_a_provider_says_about_a_refusal_reaches_the_user(tmp_path: Path) -> None:
    provider = NoticingProvider({"main": Script((DONE,))})
    async with engine_harness(tmp_path, provider=provider) as harness:
        await harness.run("hello")
        assert [notice.text for notice in harness.seen(Noticed)] == ["m does not accept effort max"]
        assert harness.seen(PromptProgressed) == [PromptProgressed(40)]
