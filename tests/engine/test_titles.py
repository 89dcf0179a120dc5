"""A model names a conversation after its first answer: once, in the background, never against the user."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.background.after_run import read_title
from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor.asking import small_model
from engine.executor.engine_settings import AUTO, EngineSettings
from engine.machine.messages import TextBlock
from engine.ports import ConversationChanges, ModelInfo
from engine.records import PermissionMode, TitleBy
from engine.records.runs import Totals
from engine.run_options import Effort
from engine.updates import Noticed
from tests.support.engine import EngineHarness, engine_harness, run_turn, until
from tests.support.scripted_provider import Fail, Hang, Reply, Script, ScriptedCall, ScriptedProvider, Text
from tests.support.waiting import PATIENCE

ON = EngineSettings(auto_title=True)
ANSWER = Reply((Text("The second try reuses a closed socket."),))
AGAIN = Reply((Text("As I said."),))
NAMING = "Assistant:"
"""Text that only requests for a title contain."""
NAMES = Reply((Text("“Closed socket in retries.”\n"),), when=NAMING)


async def said(harness: EngineHarness, text: str = "why does the retry hang?") -> Conversation:
    """A conversation after its first answer."""
    return await harness.run(text)


def named(harness: EngineHarness, conversation: Conversation) -> Callable[[], bool]:
    return lambda: conversation.record.title_by is TitleBy.MODEL


def request_texts(harness: EngineHarness, number: int) -> str:
    request = harness.provider.requests[number]
    return "\n".join(b.text for message in request.messages for b in message.blocks if isinstance(b, TextBlock))


async def test_the_first_answer_gives_a_title_and_its_cost_is_counted(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, ANSWER, NAMES, AGAIN, settings=ON) as harness:
        conversation = await said(harness)
        assert conversation.record.title == "why does the retry hang?"
        await until(named(harness, conversation))
        stored = await harness.store.conversation(conversation.id)
        assert stored is not None
        assert stored.title == conversation.record.title == "Closed socket in retries"
        assert stored.totals == conversation.record.totals == Totals(200, 40, 0, 0, 0.02)
        asked = harness.provider.requests[1]
        assert asked.tools == ()
        assert asked.max_tokens == 1_024
        assert request_texts(harness, 1) == (
            "User: why does the retry hang?\n\nAssistant: The second try reuses a closed socket."
        )
        await run_turn(conversation, "sure?")
        assert len(harness.provider.requests) == 3
        assert "title" not in request_texts(harness, 2)


async def test_a_run_with_tools_is_named_after_what_it_came_to(tmp_path: Path) -> None:
    looks = Reply((Text("I look."), ScriptedCall("bash", '{"command": "ls"}', "t1")))
    async with engine_harness(tmp_path, looks, ANSWER, NAMES, settings=ON) as harness:
        conversation = await said(harness)
        await until(named(harness, conversation))
        assert request_texts(harness, 2).endswith("Assistant: The second try reuses a closed socket.")


async def test_the_cheap_model_is_asked_where_there_is_one(tmp_path: Path) -> None:
    scripts = {"main": Script((ANSWER,)), "small": Script((NAMES,))}
    settings = replace(ON, cheap_model="scripted/small")
    async with engine_harness(tmp_path, settings=settings, provider=ScriptedProvider(scripts)) as harness:
        conversation = await said(harness)
        await until(named(harness, conversation))
        assert [request.model for request in harness.provider.requests] == ["main", "small"]
        assert conversation.record.model == "scripted/main"


class ServiceWithSmall(ScriptedProvider):
    """A service whose catalogue names a small model."""

    def describe(self, model: str) -> ModelInfo:
        return replace(super().describe(model), small="small")


AUTOMATIC = replace(ON, cheap_model=AUTO)


async def test_the_small_model_of_the_service_is_asked_without_thinking_and_told_once(tmp_path: Path) -> None:
    service = ServiceWithSmall({"main": Script((ANSWER, ANSWER)), "small": Script((NAMES, NAMES))})
    async with engine_harness(tmp_path, settings=AUTOMATIC, provider=service) as harness:
        for _ in range(2):
            conversation = await said(harness)
            await until(named(harness, conversation))
        asked = [(request.model, request.effort) for request in service.requests]
        assert asked == [("main", Effort.DEFAULT), ("small", Effort.OFF)] * 2
        assert [update.text for update in harness.seen(Noticed)] == [
            "scripted/small writes titles, summaries and the task board; this title was $0.01 (cheap_model, /cost)."
        ]


async def test_a_small_model_that_the_service_does_not_have_is_asked_once_and_the_own_one_answers(
    tmp_path: Path,
) -> None:
    gone = Reply((Fail("model: small", "invalid_request", retryable=False, status=404),), when=NAMING)
    service = ServiceWithSmall({"main": Script((ANSWER, NAMES)), "small": Script((gone,))})
    async with engine_harness(tmp_path, settings=AUTOMATIC, provider=service) as harness:
        conversation = await said(harness)
        await until(named(harness, conversation))
        asked = [(request.model, request.effort) for request in service.requests]
        assert asked == [("main", Effort.DEFAULT), ("small", Effort.OFF), ("main", Effort.OFF)]
        assert small_model(conversation._session) == ""
        assert harness.seen(Noticed) == []


async def test_a_title_of_the_user_stays(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, ANSWER, settings=ON) as harness:
        options = ConversationOptions(harness.cwd, "scripted/main", "mine", permission_mode=PermissionMode.AUTO)
        conversation = await harness.engine.create(options)
        await run_turn(conversation, "hello")
        await harness.engine.forget(conversation.id)
        assert len(harness.provider.requests) == 1


async def test_a_title_given_while_the_model_thinks_of_one_stays(tmp_path: Path) -> None:
    slow = Reply((Hang(),), when=NAMING)
    async with engine_harness(tmp_path, ANSWER, slow, settings=ON) as harness:
        conversation = await said(harness)
        await until(lambda: len(harness.provider.requests) == 2)
        await conversation.change(ConversationChanges(title="mine"))
        await conversation.change(ConversationChanges(suggested_title="the model's"))
        stored = await harness.store.conversation(conversation.id)
        assert stored is not None
        assert (stored.title, stored.title_by) == ("mine", TitleBy.USER)
        assert conversation.record.title == "mine"


async def test_the_next_turn_does_not_wait_and_closing_ends_the_request(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, ANSWER, Reply((Hang(),), when=NAMING), AGAIN, settings=ON) as harness:
        conversation = await said(harness)
        await until(lambda: len(harness.provider.requests) == 2)
        await run_turn(conversation, "and now?")
        assert len(harness.provider.requests) == 3
        async with asyncio.timeout(PATIENCE):
            await harness.engine.forget(conversation.id)


@pytest.mark.parametrize("local", [True, False])
async def test_nobody_is_asked_where_it_is_off_or_the_model_runs_here(tmp_path: Path, local: bool) -> None:
    async with engine_harness(tmp_path, ANSWER, settings=ON if local else None) as harness:
        describe = harness.provider.describe
        harness.provider.describe = lambda model: replace(describe(model), local=local)  # type: ignore[method-assign] # a model of this machine
        conversation = await said(harness)
        await harness.engine.forget(conversation.id)
        assert len(harness.provider.requests) == 1


@pytest.mark.parametrize("reply", [Reply((Fail("out of order"),), when=NAMING), Reply((Text(" \n"),), when=NAMING)])
async def test_a_failure_is_only_in_the_log(tmp_path: Path, reply: Reply, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "engine.background.after_run")
    async with engine_harness(tmp_path, ANSWER, reply, settings=ON) as harness:
        conversation = await said(harness)
        failed = isinstance(reply.parts[0], Fail)
        expected = 0.01 if failed else 0.02
        await until(lambda: "no title" in caplog.text if failed else conversation.record.totals.cost_usd == expected)
        assert conversation.record.title == "why does the retry hang?"
        assert conversation.record.totals.cost_usd == expected
        assert not any(getattr(update, "error", "") for update in harness.updates)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('"Fix the build"', "Fix the build"),
        ("**Retry storms**", "Retry storms"),
        ("# Title\nand more", "Title"),
        ("\n\n Title: Backoff explained. ", "Backoff explained"),
        ("a b " * 30, "a b a b a b a b a b a b a b a b a b a b a b a b a"),
        ("x" * 80, "x" * 50),
        ("«日本語の題»", "日本語の題"),
        ("...", ""),
        ("", ""),
    ],
)
def test_an_answer_becomes_a_bare_title(text: str, title: str) -> None:
    assert read_title(text) == title
