"""Questions of servers to the user: with a real helper, real servers and the engine between them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Raw

from engine.conversation import Conversation
from engine.executor.requests import Accepted, ApprovalAnswer, ApprovalChoice, Refused
from engine.extensions.mcp.server_asks import CANCEL, DECLINE, AskingServer, NoAnswerError, ServerAsks, UserAsker
from engine.machine.messages import TextBlock, ToolResultBlock
from engine.machine.states import ToolExecuting
from engine.updates import ApprovalAsked
from phoenix_tui.wiring.mcp import let_servers_ask
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.mcp_hubs import KINDS, Hub, hub_in, stdio
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tools.mcp_form import FormAnswer, ServerForm
from tools.mcp_host.protocol import ServerAsk, raw
from tools.mcp_sampling import SampleAnswer, SampleRequest

CALLS_FORM = Reply((ScriptedCall("mcp__kinds__form", "{}", "t1"),))
DONE = Reply((Text("Done."),))
NO = ApprovalAnswer(ApprovalChoice.DENY)
LEFT = ApprovalAnswer(ApprovalChoice.DENY, is_left=True)


def own_words(*answers: tuple[str, ...]) -> ApprovalAnswer:
    return ApprovalAnswer(ApprovalChoice.ONCE, answers=answers)


@asynccontextmanager
async def asked(home: Path, times: int = 1) -> AsyncIterator[tuple[EngineHarness, Conversation, Hub]]:
    """A conversation whose server asks for a name, and replies for as many of them as ask one after the other."""
    (place := home / "hub").mkdir()
    async with (
        hub_in(place, stdio(command=KINDS)) as one,
        engine_harness(home, *(CALLS_FORM, DONE) * times, extensions=[one.hub]) as harness,
    ):
        let_servers_ask(one.hub, harness.engine)
        yield harness, await asking(harness), one


async def asking(harness: EngineHarness) -> Conversation:
    """Begin a conversation and wait for the question of its server."""
    conversation = await harness.start("go")
    await until(lambda: conversation.question)
    return conversation


def result(harness: EngineHarness) -> str:
    """The result of the call, as the model reads it."""
    newest = harness.provider.requests[-1].messages[-1].blocks
    blocks = [block for block in newest if isinstance(block, ToolResultBlock)]
    return "".join(part.text for part in blocks[0].content if isinstance(part, TextBlock))


async def answer(conversation: Conversation, given: ApprovalAnswer) -> object:
    assert conversation.question is not None
    return await conversation.answer(conversation.question.call.id, given)


async def test_the_answer_of_the_user_reaches_the_server(tmp_path: Path) -> None:
    answers = {"accept {'name': 'Ada'}": own_words(("Ada",)), "decline None": NO, "cancel None": LEFT}
    async with asked(tmp_path, len(answers)) as (harness, conversation, _):
        for number, (text, given) in enumerate(answers.items(), 1):
            question = conversation.question
            assert question is not None
            assert isinstance(conversation.state, ToolExecuting), "the machine has no state for it"
            assert (question.asker, question.server) == ("MCP server kinds", "kinds")
            assert question.request.questions[0].question.startswith("Your name?\nGive it no passwords")
            assert await answer(conversation, given) == Accepted()
            await conversation.wait_idle()
            assert result(harness) == text
            assert conversation.question is None
            assert [one.question is None for one in harness.seen(ApprovalAsked)] == [False, True] * number
            if number < len(answers):
                conversation = await asking(harness)


async def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays(tmp_path: Path) -> None:
    async with asked(tmp_path) as (harness, conversation, _):
        question = conversation.question
        assert question is not None
        assert await answer(conversation, own_words(("a", "b"))) == Refused("“name” takes fewer answers: choose again.")
        assert await conversation.answer("another", NO) == Refused("The server's question is no longer open.")
        assert conversation.question is question
        await answer(conversation, NO)
        await conversation.wait_idle()
        assert result(harness) == "decline None"


async def test_stopping_the_run_withdraws_the_question(tmp_path: Path) -> None:
    async with asked(tmp_path) as (_, conversation, one):
        conversation.cancel()
        await conversation.wait_idle()
        await until(lambda: conversation.question is None)
        assert (await one.call("mcp__kinds__echo", {"text": "on"}, conversation.record)).text == "on"


async def test_the_end_of_the_server_withdraws_the_question(tmp_path: Path) -> None:
    async with asked(tmp_path) as (_, conversation, one):
        await one.hub.end(conversation.record, "kinds")
        await conversation.wait_idle()
        assert conversation.question is None


async def test_a_server_is_told_that_it_may_ask_only_where_someone_can_answer(tmp_path: Path) -> None:
    async with hub_in(tmp_path, stdio()) as one:
        await one.hub.prepare(one.record)
        output = await one.call("mcp__kinds__form")
    assert output.is_error


class Asker:
    """Answers once the test does."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ServerForm]] = []
        self.answer: asyncio.Future[FormAnswer] = asyncio.get_running_loop().create_future()

    async def ask(self, conversation_id: str, server: str, form: ServerForm) -> FormAnswer:
        """Remember the question."""
        self.asked.append((conversation_id, form))
        return await self.answer

    async def sample(self, conversation_id: str, server: str, request: SampleRequest) -> SampleAnswer:
        """Not asked here."""
        raise AssertionError


def asker_of(asker: Asker) -> UserAsker:
    return UserAsker(asker.ask, asker.sample)


def a_question(kind: Any = "form", **params: Any) -> ServerAsk:
    shown = params or {"message": "m", "requestedSchema": {"properties": {"a": {"type": "string"}}}}
    return ServerAsk(ask=1, server="key", kind=kind, params=raw(shown))


async def told(asks: ServerAsks, question: ServerAsk, server: AskingServer | None = None) -> list[Raw]:
    """Answers that the server gets, once its question is over."""
    found: list[Raw] = []
    asks.take(question, server or AskingServer(stdio()), found.append)
    await until(lambda: found)
    return found


async def test_a_question_without_a_call_or_a_user_is_answered_at_once() -> None:
    asks = ServerAsks()
    assert await told(asks, a_question()) == [CANCEL], "nobody is there"
    asks.asker = asker_of(Asker())
    assert await told(asks, a_question()) == [CANCEL], "no call of a conversation runs"


async def test_a_question_goes_to_the_conversation_that_called_last_and_ends_with_its_call() -> None:
    asks, found = ServerAsks(), list[Raw]()
    asker = Asker()
    asks.asker = asker_of(asker)
    for conversation in ("c1", "c2", "c1", "c3"):
        asks.begin("key", conversation)
    asks.end("key", "c3")
    asks.take(a_question(), AskingServer(stdio()), found.append)
    await until(lambda: asker.asked)
    assert asker.asked[0][0] == "c1"
    asks.end("key", "c1")
    await asyncio.sleep(0)
    assert found == [], "another call of this conversation runs on"
    asks.end("key", "c1")
    await until(lambda: found)
    assert found == [CANCEL]


async def test_a_form_that_cannot_be_shown_is_declined_and_noted() -> None:
    asks, server = ServerAsks(), AskingServer(stdio())
    asks.asker = asker_of(Asker())
    asks.begin("key", "c1")
    long = a_question("form", message="x" * 70_000)
    assert await told(asks, long, server) == [DECLINE]
    assert await told(asks, a_question("url", message="m", url="javascript:1"), server) == [DECLINE]
    assert server.log[1].endswith("it names an address that no browser should open")


async def test_an_address_is_opened_after_the_yes_alone() -> None:
    asks, opened = ServerAsks(), list[str]()
    asker = Asker()
    asks.asker, asks.open_address = asker_of(asker), opened.append
    asks.begin("key", "c1")
    found: list[Raw] = []
    asks.take(a_question("url", message="m", url="https://a.example/x"), AskingServer(stdio()), found.append)
    await until(lambda: asker.asked)
    assert opened == []
    asker.answer.set_result(FormAnswer((("Open it",),)))
    await until(lambda: found)
    assert (opened, json.loads(bytes(found[0]))) == (["https://a.example/x"], {"action": "accept"})


class Program:
    """A host; answers, or raises."""

    def __init__(self, answer: dict[str, Any] | Exception) -> None:
        self.answer = answer

    async def ask(self, conversation_id: str, server: str, kind: str, params: Any) -> Any:
        """Answer at once."""
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer | {"content": [conversation_id, server, kind, params["message"]]}


async def test_a_host_is_asked_in_place_of_the_user_and_none_of_its_failures_leaves_a_call_hanging() -> None:
    asks, server = ServerAsks(), AskingServer(stdio())
    asks.asker, asks.host = asker_of(Asker()), Program({"action": "accept"})
    asks.begin("key", "c1")
    (given,) = await told(asks, a_question(), server)
    assert json.loads(bytes(given)) == {"action": "accept", "content": ["c1", "kinds", "form", "m"]}
    asks.host = Program(NoAnswerError("it is gone"))
    assert await told(asks, a_question(), server) == [CANCEL]
    assert list(server.log) == ["warning: a question to the user was cancelled: it is gone"]
    asks.host = Program(RuntimeError("a fault of ours"))
    assert await told(asks, a_question(), server) == [CANCEL]
