"""A conversation from message to answer, on a real store (SPEC BED-002 to BED-007, STM-01 to STM-07, STM-12)."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from functools import partial
from pathlib import Path

import pytest

from engine.conversation import Conversation
from engine.engine import ConversationOptions, EngineError
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted, ApprovalAnswer, ApprovalChoice, Refused, RunCaps
from engine.machine.messages import Origin, Role, StopReason, TextBlock, ToolResultBlock, ToolStatus
from engine.machine.states import AwaitingApproval, AwaitingLlm, Cancelling, Errored, Idle, ToolExecuting
from engine.machine.views import CompactionKind
from engine.permissions.place import project_of
from engine.ports import ConversationChanges, ModelMessage
from engine.records import PermissionMode
from engine.updates import (
    AnswerEnded,
    ApprovalAsked,
    ContextChanged,
    LiveTextDropped,
    MessageSaved,
    RetryScheduled,
    RunEnded,
    Snapshot,
    StateChanged,
    TextArrived,
    ToolEnded,
    ToolStarted,
)
from tests.support.engine import EngineHarness, Providers, StubTool, engine_harness, run_turn, until
from tests.support.long_run import FACTS, LongRunProvider, LongTool
from tests.support.scripted_provider import Fail, Hang, Reply, ScriptedCall, Text
from tools.contract import JsonObject, OutputChunk, ToolClass, ToolContext, ToolInputError

HELLO = Reply((Text("hello there", 3),))
BASH = Reply((Text("I look."), ScriptedCall("bash", '{"command": "ls"}', "t1")))


async def saved(harness: EngineHarness, conversation_id: str) -> list[tuple[str, str]]:
    """(role, first text) of every stored message."""
    rows = await harness.store.messages(conversation_id)
    return [(row.role.value, next((b.text for b in row.blocks if isinstance(b, TextBlock)), "")) for row in rows]


async def test_a_message_is_answered_and_both_are_stored(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        conversation = await harness.conversation()
        accepted = await conversation.say("hi")
        assert isinstance(await conversation.wait_idle(), Idle)
        assert isinstance(accepted, Accepted)
        assert await saved(harness, conversation.id) == [("user", "hi"), ("assistant", "hello there")]
        assert conversation.record.title == "hi"
        assert (await harness.store.messages(conversation.id))[0].id == accepted.message_id


async def test_every_piece_comes_before_the_saved_message_and_that_before_the_state(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        await harness.run("hi")
        kinds = [type(update) for update in harness.updates]
        assert kinds[0] is Snapshot
        last_text = len(kinds) - 1 - kinds[::-1].index(TextArrived)
        last_saved = len(kinds) - 1 - kinds[::-1].index(MessageSaved)
        assert last_text < last_saved < len(kinds) - 1
        assert kinds[-2:] == [StateChanged, AnswerEnded]
        assert "".join(update.text for update in harness.seen(TextArrived)) == "hello there"


async def test_a_tool_runs_and_its_result_goes_back_to_the_model(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, BASH, HELLO) as harness:
        conversation = await harness.run("look")
        assert harness.tool.calls == [{"command": "ls"}]
        assert harness.provider.requests[1].messages[-1] == ModelMessage(
            Role.USER, (ToolResultBlock("t1", (TextBlock("ran ls"),)),)
        )
        assert [u.call.id for u in harness.seen(ToolStarted)] == ["t1"]
        assert harness.seen(ToolEnded)[0].result.status is ToolStatus.SUCCESS
        assert harness.seen(RunEnded)[0].iterations == 2
        [call] = await harness.store.tool_calls(
            conversation.id, [row.id for row in await harness.store.messages(conversation.id)]
        )
        assert (call.status, call.display_json) == (ToolStatus.SUCCESS, '{"type":"plain","text":"shown"}')


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("{", "not one JSON object"),
        ("[1]", "not one JSON object"),
        ('{"bad": 1}', "'bad' is no argument"),
        ('{"a":' * 20_000, "nested too deeply"),
    ],
)
async def test_arguments_that_make_no_sense_are_an_error_result_and_run_nothing(
    tmp_path: Path, arguments: str, said: str
) -> None:
    async with engine_harness(tmp_path, Reply((ScriptedCall("bash", arguments, "t1"),)), HELLO) as harness:
        await harness.run("go")
        result = harness.seen(ToolEnded)[0].result
        assert said in result.text
        assert result.is_error
        assert harness.tool.calls == []


async def test_an_unknown_tool_and_a_broken_tool_are_error_results(tmp_path: Path) -> None:
    script = (Reply((ScriptedCall("nope", "{}", "t1"), ScriptedCall("bash", "{}", "t2"))), HELLO)
    async with engine_harness(tmp_path, *script, tool=StubTool(breaks=True)) as harness:
        await harness.run("go")
        texts = [update.result.text for update in harness.seen(ToolEnded)]
        assert texts == [
            "nope: no such tool. There are: bash, spawn_agents, spawn_task",
            "bash failed: RuntimeError: broken inside",
        ]


async def test_a_busy_conversation_refuses_a_message_and_says_why(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text("a"), Hang()))) as harness:
        conversation = await harness.start("first")
        assert await conversation.say("second") == Refused("agent is busy — press Esc to cancel")
        assert await saved(harness, conversation.id) == [("user", "first")]


async def test_escape_while_the_model_writes_closes_the_stream_and_keeps_no_text(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text("half an answer"), Hang())), HELLO) as harness:
        conversation = await harness.start("hi")
        await until(lambda: harness.seen(TextArrived))
        conversation.cancel()
        assert isinstance(await conversation.wait_idle(), Idle)
        assert harness.provider.dropped == 1
        assert harness.seen(LiveTextDropped) == [LiveTextDropped(cancelled=True)]
        assert await saved(harness, conversation.id) == [("user", "hi"), ("system", "Stopped by you after 0 s")]
        assert harness.seen(StateChanged)[-1].resumable
        await conversation.retry()
        await conversation.wait_idle()
        assert (await saved(harness, conversation.id))[-1] == ("assistant", "hello there")
        assert harness.provider.requests[-1].messages == (ModelMessage(Role.USER, (TextBlock("hi"),)),)


async def test_escape_while_a_tool_runs_stops_it_and_answers_every_call(tmp_path: Path) -> None:
    three = Reply(tuple(ScriptedCall("bash", "{}", f"t{n}") for n in (1, 2, 3)))
    tool = StubTool(release=asyncio.Event())
    async with engine_harness(tmp_path, three, HELLO, tool=tool) as harness:
        conversation = await harness.start("go")
        await tool.started.wait()
        conversation.cancel()
        assert isinstance(await conversation.wait_idle(), Idle)
        assert tool.stopped == 1
        rows = await harness.store.messages(conversation.id)
        results = [b for row in rows for b in row.blocks if isinstance(b, ToolResultBlock)]
        assert [(r.tool_use_id, r.content[0], r.is_error) for r in results] == [
            ("t1", TextBlock("Cancelled by user"), True),
            ("t2", TextBlock("Skipped due to cancellation"), True),
            ("t3", TextBlock("Skipped due to cancellation"), True),
        ]
        assert rows[-1].blocks == (TextBlock("Stopped by you after 0 s · 3 processes ended"),)
        assert await conversation.say("and now?") != Refused("")
        await conversation.wait_idle()
        assert (await saved(harness, conversation.id))[-1] == ("assistant", "hello there")


@pytest.mark.parametrize("slow", [False, True])
async def test_killing_is_never_cut_short_and_its_count_is_told(tmp_path: Path, slow: bool) -> None:
    tool = StubTool(release=asyncio.Event(), dying=asyncio.Event())
    async with engine_harness(tmp_path, BASH, tool=tool) as harness:
        conversation = await harness.start("go")
        await tool.started.wait()
        conversation.cancel()
        await until(lambda: isinstance(conversation.state, Idle if slow else Cancelling))
        assert tool.dying is not None
        tool.dying.set()
        await until(lambda: any("3 processes ended" in text for text in notices(harness)))
        expected = ["Stopped by you after 0 s", "Stopped: 3 processes ended"]
        assert notices(harness) == (expected if slow else ["Stopped by you after 0 s · 3 processes ended"])


def notices(harness: EngineHarness) -> list[str]:
    """The quiet rows saved so far."""
    rows = (update.message for update in harness.seen(MessageSaved))
    return [row.blocks[0].text for row in rows if row.origin is Origin.NOTICE and isinstance(row.blocks[0], TextBlock)]


async def test_a_question_waits_for_its_answer_and_a_rule_answers_the_next_one(tmp_path: Path) -> None:
    again = Reply((ScriptedCall("bash", '{"command": "make test"}', "t2"),))
    first = Reply((ScriptedCall("bash", '{"command": "make test"}', "t1"),))
    async with engine_harness(tmp_path, first, again, HELLO) as harness:
        conversation = await harness.start("test it", PermissionMode.ASK)
        await until(lambda: isinstance(conversation.state, AwaitingApproval))
        question = conversation.question
        assert question is not None
        assert (question.rule, question.call.id) == ("bash(make test)", "t1")
        assert harness.tool.calls == []
        await conversation.answer("t1", ApprovalAnswer(ApprovalChoice.ALWAYS))
        await conversation.wait_idle()
        (kept,) = harness.rules.kept
        assert (kept.text, kept.project) == ("bash(make test)", str(project_of(conversation.record.cwd)))
        assert len(harness.tool.calls) == 2
        assert len([u for u in harness.seen(ApprovalAsked) if u.question]) == 1
        assert ("system", "bash: always allowed in this project: bash(make test)") in await saved(
            harness, conversation.id
        )


async def test_a_rule_that_does_not_match_the_call_is_refused_and_the_question_stays_open(tmp_path: Path) -> None:
    async with engine_harness(
        tmp_path, Reply((ScriptedCall("bash", '{"command": "make test"}', "t1"),)), HELLO
    ) as harness:
        conversation = await harness.start("test it", PermissionMode.ASK)
        await until(lambda: isinstance(conversation.state, AwaitingApproval))
        receipt = await conversation.answer("t1", ApprovalAnswer(ApprovalChoice.ALWAYS, rule="bash(make lint*)"))
        expected = "This rule does not match: begin with the words of the command, such as `make test`."
        assert receipt == Refused(expected)
        assert (harness.rules.kept, isinstance(conversation.state, AwaitingApproval)) == ([], True)
        assert (
            await conversation.answer("t1", ApprovalAnswer(ApprovalChoice.CONVERSATION, rule="bash(make*)"))
            == Accepted()
        )
        await conversation.wait_idle()
        assert (harness.rules.kept, len(harness.tool.calls)) == ([], 1)


async def test_a_yes_to_the_edits_of_a_file_is_about_every_tool_that_edits(tmp_path: Path) -> None:
    tools = [StubTool(name, ToolClass.EDIT, paths=(tmp_path / "a",)) for name in ("patch", "write_file")]
    calls = Reply((ScriptedCall("patch", "{}", "t1"), ScriptedCall("write_file", "{}", "t2")))
    async with engine_harness(tmp_path, calls, HELLO, tools=tools) as harness:
        conversation = await harness.start("go", PermissionMode.ASK)
        await until(partial(asks_for, conversation, "t1"))
        await conversation.answer("t1", ApprovalAnswer(ApprovalChoice.CONVERSATION))
        await conversation.wait_idle()
        assert [len(tool.calls) for tool in tools] == [1, 1]


class Doomed(StubTool):
    """A tool that knows its calls would fail."""

    async def foresee(self, args: JsonObject, context: ToolContext) -> None:
        raise ToolInputError("it was not read.")


async def test_what_could_not_work_is_not_asked_about(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, BASH, HELLO, tool=Doomed()) as harness:
        await harness.run("go", PermissionMode.ASK)
        assert harness.seen(ApprovalAsked) == []
        assert harness.seen(ToolEnded)[0].result.text == "bash: it was not read."


def asks_for(conversation: Conversation, call: str) -> bool:
    return conversation.question is not None and conversation.question.call.id == call


async def test_a_deny_with_a_reason_is_what_the_model_reads(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, BASH, HELLO) as harness:
        conversation = await harness.start("go", PermissionMode.ASK)
        await until(lambda: conversation.question)
        await conversation.answer("t1", ApprovalAnswer(ApprovalChoice.DENY, "use make"))
        await conversation.wait_idle()
        assert harness.seen(ToolEnded)[0].result.text == "User denied permission to run bash: use make"
        assert harness.tool.calls == []
        assert [text for role, text in await saved(harness, conversation.id) if role == "system"] == []


async def test_the_row_of_a_yes_names_the_call_in_short(tmp_path: Path) -> None:
    command = f"python -m pytest {'tests/one/directory/' * 4}"
    calls = Reply((
        ScriptedCall("bash", f'{{"command": "{command}"}}', "t1"),
        ScriptedCall("bash", '{"command": "ls"}', "t2"),
    ))
    async with engine_harness(tmp_path, calls, HELLO) as harness:
        conversation = await harness.start("go", PermissionMode.ASK)
        for call in ("t1", "t2"):
            await until(partial(asks_for, conversation, call))
            await conversation.answer(call, ApprovalAnswer(ApprovalChoice.ONCE))
        await conversation.wait_idle()
        assert [text for role, text in await saved(harness, conversation.id) if role == "system"] == [
            f"bash {command[:59]}…: allowed once",
            "bash ls: allowed once",
        ]


async def test_plan_mode_refuses_without_asking(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, BASH, HELLO) as harness:
        await harness.run("go", PermissionMode.PLAN)
        assert harness.seen(ToolEnded)[0].result.text == "Permission mode 'plan' does not allow bash."


async def test_a_retry_is_announced_and_succeeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.machine.reply.LONGEST_WAIT", 0.0)
    async with engine_harness(tmp_path, Reply((Text("par"), Fail("overloaded"))), HELLO) as harness:
        conversation = await harness.run("hi")
        assert harness.seen(RetryScheduled) == [RetryScheduled(1, 0.0, "overloaded")]
        assert harness.seen(LiveTextDropped) == [LiveTextDropped(cancelled=False)]
        assert await saved(harness, conversation.id) == [("user", "hi"), ("assistant", "hello there")]


async def test_a_rejected_key_is_an_error_that_a_message_leaves(tmp_path: Path) -> None:
    refused = Reply((Fail("API key rejected: set ANTHROPIC_API_KEY", "auth", retryable=False),))
    async with engine_harness(tmp_path, refused, HELLO) as harness:
        conversation = await harness.start("hi")
        state = await conversation.wait_idle()
        assert isinstance(state, Errored)
        assert state.message == "API key rejected: set ANTHROPIC_API_KEY"
        assert harness.seen(RunEnded)[0].error_code == "auth"
        assert isinstance(await run_turn(conversation, "again"), Idle)


async def test_a_cut_reply_is_continued_into_one_message(tmp_path: Path) -> None:
    half = Reply((Text("one "),), StopReason.MAX_TOKENS)
    async with engine_harness(tmp_path, half, Reply((Text("two"),))) as harness:
        conversation = await harness.run("count")
        assert await saved(harness, conversation.id) == [("user", "count"), ("assistant", "one two")]
        assert harness.provider.requests[1].messages[1] == ModelMessage(Role.ASSISTANT, (TextBlock("one "),))


async def test_turn_and_budget_and_time_caps_end_a_run_with_their_code(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, BASH, BASH, Reply((Hang(),))) as harness:
        conversation = await harness.conversation()
        for caps in (RunCaps(max_turns=1), RunCaps(max_budget_usd=0.005), RunCaps(timeout=0.05)):
            await conversation.say("go", caps=caps)
            await conversation.wait_idle()
        assert [u.error_code for u in harness.seen(RunEnded)] == ["iteration_limit", "budget", "timeout"]


async def test_the_meter_follows_each_reply(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        conversation = await harness.run("hi")
        assert harness.seen(ContextChanged)[-1] == ContextChanged(
            120, 200_000, estimated=False, cost_usd=0.01, used=120
        )
        stored = await harness.store.conversation(conversation.id)
        assert stored is not None
        assert stored.context_tokens == 120


async def test_a_tool_id_that_was_used_before_is_rewritten(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, BASH, BASH, HELLO) as harness:
        await harness.run("go")
        assert [u.call.id for u in harness.seen(ToolStarted)] == ["t1", "t1_dedup_1"]


async def test_images_are_stored_and_sent_before_the_text(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        conversation = await harness.conversation()
        image = await conversation.attach(b"png bytes")
        await conversation.say("what is this?", [image.id])
        await conversation.wait_idle()
        request = harness.provider.requests[0]
        assert request.images[image.id].data == b"png bytes"
        assert type(request.messages[0].blocks[0]).__name__ == "ImageBlock"


async def test_a_subscriber_that_comes_late_gets_what_is_streaming(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text("live text"), Hang()))) as harness:
        conversation = await harness.start("hi")
        await until(lambda: harness.seen(TextArrived))
        late: list[object] = []
        end = await conversation.subscribe(late.append)
        assert isinstance(late[0], Snapshot)
        assert late[0].live_text == "live text"
        assert isinstance(late[0].state, AwaitingLlm)
        end()
        conversation.cancel()
        await conversation.wait_idle()
        assert len(late) == 1


async def test_a_subscriber_that_comes_late_gets_the_clock_and_the_output_of_what_runs(tmp_path: Path) -> None:
    tool = StubTool(release=asyncio.Event())
    async with engine_harness(tmp_path, BASH, HELLO, tool=tool) as harness:
        conversation = await harness.start("go")
        await tool.started.wait()
        tool.contexts[0].report(OutputChunk("x" * 5000 + "the newest line\n"))
        late: list[object] = []
        await conversation.subscribe(late.append)
        await conversation.subscribe(late.append)
        first, second = late
        assert isinstance(first, Snapshot)
        assert isinstance(second, Snapshot)
        assert first.running is not None
        assert (first.running.call_id, len(first.running.tail)) == ("t1", 4096)
        assert first.running.tail.endswith("the newest line\n")
        assert first.state_since == second.state_since == harness.seen(StateChanged)[-1].since
        assert 0 < first.run_started <= first.running.started
        assert tool.release is not None
        tool.release.set()
        await conversation.wait_idle()
        after: list[object] = []
        await conversation.subscribe(after.append)
        assert isinstance(after[0], Snapshot)
        assert (after[0].running, after[0].run_started) == (None, 0.0)


async def test_small_amounts_are_said_in_dollars_without_an_exponent(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, BASH) as harness:
        conversation = await harness.conversation()
        await conversation.say("go", caps=RunCaps(max_budget_usd=0.00001))
        await conversation.wait_idle()
        assert harness.seen(RunEnded)[0].error == "The budget of $0.00001 for this run is used up ($0.01 spent)."


async def test_two_conversations_run_at_once_and_escape_stops_only_one(tmp_path: Path) -> None:
    tool = StubTool(release=asyncio.Event())
    async with engine_harness(tmp_path, BASH, BASH, HELLO, tool=tool) as harness:
        one, two = await harness.conversation(), await harness.conversation()
        await one.say("go")
        await two.say("go")
        await until(lambda: len(tool.contexts) == 2)
        one.cancel()
        assert isinstance(await one.wait_idle(), Idle)
        assert isinstance(two.state, ToolExecuting)
        assert tool.release is not None
        tool.release.set()
        assert isinstance(await two.wait_idle(), Idle)


async def test_interrupt_and_say_stops_the_run_and_sends(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text("a"), Hang())), HELLO) as harness:
        conversation = await harness.start("first")
        await until(lambda: harness.seen(TextArrived))
        await conversation.interrupt_and_say("second")
        await conversation.wait_idle()
        roles = [role for role, _ in await saved(harness, conversation.id)]
        assert roles == ["user", "system", "user", "assistant"]


async def test_drafts_and_modes_survive_a_restart(tmp_path: Path) -> None:
    async with engine_harness(tmp_path) as harness:
        conversation = await harness.conversation()
        await conversation.change(ConversationChanges(draft="half a thou", permission_mode=PermissionMode.PLAN))
        kept = conversation.id
    async with engine_harness(tmp_path) as harness:
        conversation = await harness.engine.open(kept)
        assert conversation.record.draft == "half a thou"
        assert conversation.record.permission_mode is PermissionMode.PLAN


async def test_a_running_conversation_is_interrupted_at_close_and_valid_after_it(tmp_path: Path) -> None:
    tool = StubTool(release=asyncio.Event())
    async with engine_harness(tmp_path, BASH, tool=tool) as harness:
        conversation = await harness.start("go")
        await tool.started.wait()
        kept = conversation.id
    assert tool.stopped == 1
    async with engine_harness(tmp_path, HELLO) as harness:
        conversation = await harness.engine.open(kept)
        await conversation.retry()
        await conversation.wait_idle()
        assert harness.provider.requests[0].messages[-1].blocks == (
            ToolResultBlock("t1", (TextBlock("[Tool execution interrupted by restart]"),), is_error=True),
        )


async def test_a_conversation_that_another_process_owns_is_read_only(tmp_path: Path) -> None:
    async with engine_harness(tmp_path) as owner, engine_harness(tmp_path) as second:
        conversation = await owner.conversation()
        seen = await second.engine.open(conversation.id)
        assert seen.read_only == f"Open in another window (pid {os.getpid()}): answers and messages go there · /fork"
        assert await seen.say("hi") == Refused(seen.read_only)
        copy = await second.engine.fork(conversation.id)
        assert copy.read_only == ""


async def test_a_working_directory_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    async with engine_harness(tmp_path) as harness:
        missing, file = tmp_path / "missing", tmp_path / "file"
        file.touch()
        with pytest.raises(EngineError, match="missing"):
            await harness.engine.create(ConversationOptions(missing, "scripted/main"))
        with pytest.raises(EngineError, match="not a directory"):
            await harness.engine.create(ConversationOptions(file, "scripted/main"))


async def test_an_unknown_provider_is_an_error_and_the_message_stays(tmp_path: Path) -> None:
    async with engine_harness(tmp_path) as harness:
        conversation = await harness.engine.create(ConversationOptions(harness.cwd, "nobody/x"))
        state = await run_turn(conversation, "hi")
        assert isinstance(state, Errored)
        assert [m.origin for m in await harness.store.messages(conversation.id)] == [Origin.HUMAN]


async def test_a_run_leaves_a_trace_of_model_and_tool_spans(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, BASH, HELLO) as harness:
        await harness.run("go")
    with sqlite3.connect(harness.store.path) as database:
        spans = database.execute("SELECT kind, name, iteration, status FROM spans WHERE kind != 'agent'").fetchall()
    database.close()
    assert [(kind, name, status) for kind, name, _, status in spans] == [
        ("llm", "main", "ok"),
        ("tool", "bash", "success"),
        ("llm", "main", "ok"),
    ]


SETTINGS = EngineSettings(max_iterations=1_000, auto_title=False)


async def last_answer(harness: EngineHarness, conversation: Conversation) -> str:
    (block,) = (await harness.store.messages(conversation.id))[-1].blocks
    assert isinstance(block, TextBlock)
    return block.text


async def ask(harness: EngineHarness, conversation: Conversation, text: str) -> str:
    assert isinstance(await conversation.say(text), Accepted)
    assert isinstance(await conversation.wait_idle(), Idle)
    return await last_answer(harness, conversation)


@pytest.mark.parametrize(("window", "scale"), [(32_000, 1), (200_000, 4)])
async def test_hundreds_of_tool_calls_end_in_any_window_without_one_request_that_is_refused(
    tmp_path: Path, window: int, scale: int
) -> None:
    steps = 500 // scale
    provider, tool = LongRunProvider(window, steps, checked_every=scale), LongTool(scale=scale)
    async with engine_harness(tmp_path, tool=tool, settings=SETTINGS, providers=Providers(provider)) as harness:
        conversation = await harness.conversation()
        assert await ask(harness, conversation, "Do all the steps.") == "done"
        assert (len(tool.calls), provider.overflows) == (steps, 0)
        made = await harness.store.library.compactions(conversation.id)
        kinds = [one.facts.kind for one in made]
        assert kinds.count(CompactionKind.SUMMARY) == provider.summaries
        assert kinds.count(CompactionKind.NONE) == 0
        assert len(provider.misses) == len(kinds), "only a compaction or a pruning costs the prompt cache"
        assert provider.cache_share > 0.9
        for one in made:
            assert one.facts.tokens_after < one.facts.tokens_before * 0.9
        if window == 32_000:
            assert provider.summaries > 20
            for number in range(1, FACTS + 1):
                answer = await ask(harness, conversation, f"What is FACT-{number}?")
                assert answer == f"FACT-{number} = value{number * 7919}", "kept through every summary"
