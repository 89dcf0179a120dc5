"""One move is one transaction: messages by the turn rule, calls, runs, the inbox, the meter and the state."""

from __future__ import annotations

import asyncio
import json
import sqlite3

import pytest
from msgspec.structs import replace

from engine.machine.effects import FinishRun, MarkToolCall, RunStatus, SaveToolCalls, SaveToolResult, StartRun
from engine.machine.messages import (
    ImageBlock,
    NewMessage,
    Origin,
    Role,
    TextBlock,
    ToolCall,
    ToolResult,
    ToolResultBlock,
    ToolStatus,
    ToolUseBlock,
    Usage,
)
from engine.machine.states import Completed, Failed, Idle
from engine.ports import AppendMessage, DrainInboxRows, RecordEvent, RecordSpan, SetContext, StorageError
from engine.ports.storage import USER
from engine.records import ConversationQuery
from engine.records.events import EventKind
from engine.records.runs import Totals
from engine.store import Store
from engine.store.inbox import deposit_entry
from tests.support.storage import (
    asking,
    asks_for_tools,
    move,
    new_conversation,
    new_id,
    query,
    reply,
    say,
    start_run,
    used,
)


@pytest.fixture
async def conversation_id(store: Store) -> str:
    return (await store.create(new_conversation(), 1.0)).id


async def test_a_new_conversation_comes_back_as_it_was_asked_for(store: Store) -> None:
    new = replace(
        new_conversation("Title"), profile="p", system_prompt="s", append_system_prompt="a\x00b\ud800", cwd="/somewhere"
    )
    record = await store.create(new, 5.0)
    assert record == await store.conversation(new.id)
    assert (record.title, record.state, record.created_at, record.message_count) == ("Title", Idle(0), 5.0, 0)
    assert (record.profile, record.system_prompt, record.append_system_prompt) == ("p", "s", "ab\ufffd")
    assert await store.conversation("unknown") is None


async def test_a_message_comes_back_as_it_was_said(store: Store, conversation_id: str) -> None:
    run_id = await start_run(store, conversation_id)
    blocks = (TextBlock("Here."), ImageBlock("img", 4, 5))
    answer = replace(reply(*blocks, run_id=run_id), cost_usd=0.5)
    committed = await store.commit(move(conversation_id, answer, at=7.0))
    (stored,) = committed.messages
    assert (await store.messages(conversation_id))[1:] == [stored]
    assert stored.blocks == blocks
    assert (stored.seq, stored.turn_number, stored.message_number, stored.created_at) == (2, 0, 1, 7.0)
    assert (stored.run_id, stored.model, stored.usage, stored.duration_ms) == (run_id, "demo/guide", Usage(100, 20), 5)


async def test_seq_is_dense_and_numbers_start_again_in_each_turn(store: Store, conversation_id: str) -> None:
    for text, new_turn in (("a", True), ("b", False), ("c", True), ("d", False), ("e", True)):
        await store.commit(move(conversation_id, say(text, new_turn=new_turn)))
    found = [(each.seq, each.turn_number, each.message_number) for each in await store.messages(conversation_id)]
    assert found == [(1, 0, 0), (2, 0, 1), (3, 1, 0), (4, 1, 1), (5, 2, 0)]


async def test_an_empty_last_turn_is_used_again(store: Store, conversation_id: str) -> None:
    await store.commit(move(conversation_id, say("a", new_turn=True)))
    query(store.path, "INSERT INTO turns VALUES ('t1', ?, 1, 1, NULL, NULL)", conversation_id)
    await store.commit(move(conversation_id, say("b", new_turn=True)))
    assert [each.turn_number for each in await store.messages(conversation_id)] == [0, 1]
    assert query(store.path, "SELECT COUNT(*) FROM turns") == [(2,)]


async def test_order_is_by_seq_when_the_clock_jumps(store: Store, conversation_id: str) -> None:
    for text, at in (("a", 1e9), ("b", 1e9 - 86_400), ("c", 1e9 + 3e7)):
        await store.commit(move(conversation_id, say(text), at=at))
    assert [each.blocks for each in await store.messages(conversation_id)] == [
        (TextBlock("a"),),
        (TextBlock("b"),),
        (TextBlock("c"),),
    ]


async def test_a_range_of_messages_and_the_newest_of_it(store: Store, conversation_id: str) -> None:
    await store.commit(move(conversation_id, *(say(str(number)) for number in range(1, 11))))

    async def seqs(first: int = 1, last: int | None = None, limit: int | None = None) -> list[int]:
        found = await store.messages(conversation_id, first_seq=first, last_seq=last, limit=limit)
        return [each.seq for each in found]

    assert await seqs() == list(range(1, 11))
    assert await seqs(limit=3) == [8, 9, 10]
    assert await seqs(last=7, limit=3) == [5, 6, 7]
    assert await seqs(first=4, last=5) == [4, 5]
    assert await seqs(first=11) == []


async def test_the_first_thing_said_gives_the_title(store: Store, conversation_id: str) -> None:
    await store.commit(move(conversation_id, say("  Fix the\n\tparser " + "x" * 80)))
    await store.commit(move(conversation_id, say("Second")))
    (summary,) = await store.conversations(ConversationQuery())
    assert summary.title == "Fix the parser " + "x" * 35
    assert len(summary.title) == 50


def command(text: str) -> AppendMessage:
    call = ToolUseBlock(f"shell_{text}", "bash", json.dumps({"command": text}))
    return AppendMessage(NewMessage(new_id(), Role.SYSTEM, Origin.NOTICE, (call,)), new_turn=False)


async def test_a_command_is_the_title_until_something_is_said(store: Store, conversation_id: str) -> None:
    titles: list[str] = []
    printed = NewMessage("m", Role.USER, Origin.NOTICE, (TextBlock("$ git status\n M a.py"),))
    for addition in (
        command("git \n status"),
        AppendMessage(printed, new_turn=True),
        command("ls"),
        say("What changed?"),
        say("! and more"),
        command("pwd"),
    ):
        await store.commit(move(conversation_id, addition))
        titles += [one.title for one in await store.conversations(ConversationQuery())]
    assert titles == ["! git status"] * 3 + ["What changed?"] * 3


async def test_a_title_of_the_user_that_looks_like_a_command_stays(store: Store) -> None:
    record = await store.create(new_conversation("! mine"), 1.0)
    await store.commit(move(record.id, command("ls")))
    await store.commit(move(record.id, say("Hello")))
    assert (await store.find("! mine"))[0].id == record.id


async def test_a_given_title_stays(store: Store) -> None:
    record = await store.create(new_conversation("Mine"), 1.0)
    await store.commit(move(record.id, say("Hello")))
    assert (await store.find("Mine"))[0].message_count == 1


async def test_text_that_no_database_takes_is_cleaned(store: Store, conversation_id: str) -> None:
    run_id = await start_run(store, conversation_id, "a\x00b\udfff")
    call = ToolCall("t\x00\ud800", "bash", '{"x":"\ud800"}')
    await store.commit(
        move(
            conversation_id,
            *asks_for_tools(run_id, call),
            MarkToolCall(call.id, ToolStatus.RUNNING),
            SaveToolResult(ToolResult(call.id, "out\x00\ud800", ToolStatus.SUCCESS)),
            FinishRun(run_id, RunStatus.FAILURE, 1, error="\ud800\x00"),
        )
    )
    first, second = await store.messages(conversation_id)
    assert first.blocks == (TextBlock("ab\ufffd"),)
    (stored,) = await store.tool_calls(conversation_id, [second.id])
    assert (stored.tool_use_id, stored.output_text, stored.status) == ("t\ufffd", "out\ufffd", ToolStatus.SUCCESS)


async def test_calls_go_from_queued_to_settled_in_request_order(store: Store, conversation_id: str) -> None:
    run_id = await start_run(store, conversation_id)
    asked = asks_for_tools(run_id, ToolCall("b", "bash", "{}"), ToolCall("a", "think", '{"x":1}'))
    await store.commit(move(conversation_id, *asked))
    message_id = asked[0].message.id

    async def found() -> list[tuple[str, int, ToolStatus, str, str, int]]:
        calls = await store.tool_calls(conversation_id, ["unknown", message_id])
        return [(c.tool_use_id, c.ordinal, c.status, c.output_text, c.display_json, c.duration_ms) for c in calls]

    assert await found() == [("b", 0, ToolStatus.QUEUED, "", "", 0), ("a", 1, ToolStatus.QUEUED, "", "", 0)]
    await store.commit(move(conversation_id, MarkToolCall("b", ToolStatus.RUNNING), at=10.0))
    assert [each[2] for each in await found()] == [ToolStatus.RUNNING, ToolStatus.QUEUED]
    result = ToolResult("b", "done", ToolStatus.ERROR, display_json='{"type":"plain","text":"x"}')
    await store.commit(move(conversation_id, SaveToolResult(result), at=12.5))
    assert (await found())[0] == ("b", 0, ToolStatus.ERROR, "done", '{"type":"plain","text":"x"}', 2500)


async def test_waiting_for_an_answer_is_no_part_of_a_calls_duration(store: Store, conversation_id: str) -> None:
    run_id = await start_run(store, conversation_id)
    asked = asks_for_tools(run_id, ToolCall("b", "bash", "{}"), ToolCall("n", "bash", "{}"))
    await store.commit(move(conversation_id, *asked))
    for call_id, status, at in (
        ("b", ToolStatus.RUNNING, 10.0),
        ("b", ToolStatus.AWAITING_APPROVAL, 10.5),
        ("b", ToolStatus.RUNNING, 60.0),
        ("n", ToolStatus.RUNNING, 70.0),
        ("n", ToolStatus.AWAITING_APPROVAL, 70.5),
    ):
        await store.commit(move(conversation_id, MarkToolCall(call_id, status), at=at))
    for call_id, at in (("b", 62.0), ("n", 90.0)):
        await store.commit(move(conversation_id, SaveToolResult(ToolResult(call_id, "", ToolStatus.ERROR)), at=at))
    calls = await store.tool_calls(conversation_id, [asked[0].message.id])
    assert [call.duration_ms for call in calls] == [2000, 0]


async def test_a_run_has_its_turn_its_trace_and_its_cost(store: Store, conversation_id: str) -> None:
    await store.commit(move(conversation_id, say("first", new_turn=True)))
    run_id = new_id()
    said = say("second", new_turn=True)
    await store.commit(move(conversation_id, StartRun(run_id, said.message.id), said, state=asking(run_id), at=10.0))
    await store.commit(
        move(
            conversation_id,
            reply(TextBlock("x"), run_id=run_id),
            used(Usage(7, 3), 0.25, run_id, attempt=1, at=11.5),
            RecordSpan("s2", run_id, "t1", "bash", 1, "success", 900),
            RecordEvent("e1", EventKind.STATE_CHANGED, '{"a":1}', run_id),
            FinishRun(run_id, RunStatus.SUCCESS, 2, recoverable=True),
            at=12.0,
        )
    )
    assert query(
        store.path,
        "SELECT t.turn_number, r.status, r.iterations, r.duration_ms, r.cost_usd, r.trigger_message_id, r.recoverable,"
        " t.ended_at, r.retries FROM runs AS r JOIN turns AS t ON t.id = r.turn_id",
    ) == [(1, "success", 2, 2000, 0.25, said.message.id, 1, 12.0, 1)]
    assert query(store.path, "SELECT status, input_tokens, output_tokens, cost_usd, ended_at FROM traces") == [
        ("completed", 7, 3, 0.25, 12.0)
    ]
    assert query(store.path, "SELECT kind, tool_use_id, started_at FROM spans ORDER BY kind") == [
        ("llm", "", 11.5),
        ("tool", "t1", 11.1),
    ]
    assert query(store.path, "SELECT id, type, payload_json, run_id FROM events WHERE id = 'e1'") == [
        ("e1", "state.changed", '{"a":1}', run_id)
    ]


async def test_the_meter_and_the_state_are_kept(store: Store, conversation_id: str) -> None:
    totals = Totals(1, 2, 3, 4, None)
    await store.commit(
        move(
            conversation_id,
            used(Usage(1, 2, 3, 4), None),
            SetContext(70, 100, True, Usage(5, 6)),
            state=asking("r", gen=9),
            at=50.0,
        )
    )
    record = await store.conversation(conversation_id)
    assert record is not None
    assert (record.context_tokens, record.context_window, record.context_estimated) == (70, 100, True)
    assert (record.totals, record.state, record.updated_at) == (totals, asking("r", gen=9), 50.0)
    assert query(store.path, "SELECT state, gen FROM conversations") == [("awaiting_llm", 9)]


@pytest.mark.parametrize(
    ("state", "columns"),
    [
        (Completed(3, "found it"), ("success", "found it", "")),
        (Failed(3, "timeout", "too slow", "half"), ("timeout", "half", "too slow")),
        (Failed(3, "turn_limit", "too long"), ("failure", "", "too long")),
    ],
)
async def test_the_end_of_an_agent_fills_its_result(
    store: Store, conversation_id: str, state: Completed | Failed, columns: tuple[str, str, str]
) -> None:
    await store.commit(move(conversation_id, state=state))
    assert query(store.path, "SELECT result_status, result_text, result_error FROM conversations") == [columns]


async def test_the_inbox_becomes_one_message_of_results_and_one_for_each_text(
    store: Store, conversation_id: str
) -> None:
    await store.commit(move(conversation_id, say("start")))
    results = [ToolResultBlock(name, (TextBlock(name),)) for name in ("a", "b")]
    for kind, block in (
        ("tool_result", results[0]),
        ("completion", TextBlock("x")),
        ("tool_result", results[1]),
        ("user", TextBlock("y")),
    ):
        _deposit(store, conversation_id, kind, block)
    ids = tuple(new_id() for _ in range(4))
    committed = await store.commit(move(conversation_id, DrainInboxRows("", ids, new_turn=True)))
    assert [(each.origin, each.blocks) for each in committed.messages] == [
        (Origin.TOOL, tuple(results)),
        (Origin.COMPLETION, (TextBlock("x"),)),
        (Origin.HUMAN, (TextBlock("y"),)),
    ]
    assert [(each.id, each.turn_number, each.message_number) for each in committed.messages] == [
        (ids[0], 1, 0),
        (ids[1], 1, 1),
        (ids[2], 1, 2),
    ]
    again = await store.commit(move(conversation_id, DrainInboxRows("", ids, new_turn=True)))
    assert again.messages == ()
    assert query(store.path, "SELECT COUNT(*) FROM turns") == [(2,)]


def _deposit(store: Store, conversation_id: str, kind: str, block: TextBlock | ToolResultBlock) -> None:

    connection = sqlite3.connect(store.path)
    deposit_entry(connection, conversation_id, kind, (block,), USER if kind == "user" else "child", 2.0)
    connection.commit()
    connection.close()


async def test_a_move_that_fails_leaves_nothing_behind(store: Store, conversation_id: str) -> None:
    said = say("kept")
    await store.commit(move(conversation_id, said))
    with pytest.raises(StorageError):
        await store.commit(move(conversation_id, say("lost"), said, state=asking("r")))
    record = await store.conversation(conversation_id)
    assert record is not None
    assert (record.message_count, record.state) == (1, Idle(1))


async def test_a_move_for_a_conversation_of_nobody_is_refused(store: Store, conversation_id: str) -> None:
    await store.release(conversation_id)
    with pytest.raises(StorageError, match="open it again"):
        await store.commit(move(conversation_id, say("x")))
    with pytest.raises(StorageError, match="open it again"):
        await store.commit(move("unknown", say("x")))


async def test_moves_of_many_conversations_at_once_all_arrive(store: Store) -> None:
    ids = [(await store.create(new_conversation(), 1.0)).id for _ in range(8)]
    await asyncio.gather(*(store.commit(move(each, say(f"{turn}"))) for turn in range(10) for each in ids))
    for each in ids:
        found = await store.messages(each)
        assert [message.blocks for message in found] == [(TextBlock(str(turn)),) for turn in range(10)]


async def test_a_call_may_be_saved_before_its_message(store: Store, conversation_id: str) -> None:
    notice = NewMessage(new_id(), Role.SYSTEM, Origin.NOTICE, (TextBlock("$ ls"),))
    calls = SaveToolCalls(notice.id, (ToolCall("c", "bash", "{}"),))
    await store.commit(move(conversation_id, calls, AppendMessage(notice)))
    assert [call.tool_use_id for call in await store.tool_calls(conversation_id, [notice.id])] == ["c"]
