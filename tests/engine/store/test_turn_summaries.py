"""Effects of each prompt, read back from real moves."""

from __future__ import annotations

from engine.machine.effects import FinishRun, RunStatus, SaveToolResult, StartRun
from engine.machine.messages import TextBlock, ToolCall, ToolResult, ToolStatus
from engine.ports import ConversationChanges
from engine.records.runs import TurnDigest, TurnNote, TurnSummary
from engine.store import Store, StorePaths
from engine.store.turns import EXCERPT, FIRST_WORDS
from tests.support.storage import asks_for_tools, move, new_conversation, new_id, query, reply, say


async def test_a_turn_names_its_tools_its_failures_its_files_its_time_and_its_cost(
    store: Store, paths: StorePaths
) -> None:
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    run_id, first = new_id(), say("\n  Fix the test.\nIt hangs.", new_turn=True)
    calls = (
        ToolCall("c1", "bash", '{"command":"make test"}'),
        ToolCall("c2", "patch", '{"path":"a.py"}'),
        ToolCall("c3", "patch", '{"path":"b.py"}'),
        ToolCall("c4", "patch", '{"path":"a.py"}'),
        ToolCall("c5", "write_file", "no json"),
    )
    statuses = (ToolStatus.ERROR, *([ToolStatus.SUCCESS] * 4))
    await store.commit(move(conversation_id, first, StartRun(run_id, first.message.id), at=10.0))
    await store.commit(move(conversation_id, *asks_for_tools(run_id, *calls), at=11.0))
    results = [SaveToolResult(ToolResult(call.id, "x", status)) for call, status in zip(calls, statuses, strict=True)]
    await store.commit(move(conversation_id, *results, reply(TextBlock("done"), run_id=run_id), at=12.0))
    await store.commit(move(conversation_id, FinishRun(run_id, RunStatus.SUCCESS, 2), at=14.5))
    await store.commit(move(conversation_id, say("Thanks.", new_turn=True), at=20.0))
    query(paths.database, "UPDATE runs SET cost_usd = 0.25")
    turns = await store.library.turns(conversation_id)
    assert turns == [
        TurnSummary(
            1, "Fix the test.", 10.0, (("patch", 3), ("bash", 1), ("write_file", 1)), 1, ("a.py", "b.py"), 4.5, 0.25
        ),
        TurnSummary(turns[1].seq, "Thanks.", 20.0),
    ]


async def test_a_megabyte_of_a_prompt_is_not_read_for_its_first_line(store: Store) -> None:
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    await store.commit(move(conversation_id, say("x" * 1_000_000, new_turn=True)))
    (turn,) = await store.library.turns(conversation_id)
    assert turn.words == "x" * FIRST_WORDS


async def test_a_summary_stands_with_the_last_prompt_of_its_turn_and_goes_into_a_fork(store: Store) -> None:
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    for message in (say("Fix it.", new_turn=True), say("And test it."), say("Thanks.", new_turn=True)):
        await store.commit(move(conversation_id, message))
    note = ConversationChanges(turn_note=TurnNote(0, "Fixed the retry \ud800 and its test."))
    await store.change(conversation_id, note, 2.0)
    wanted = ["", "Fixed the retry � and its test.", ""]
    assert [turn.summary for turn in await store.library.turns(conversation_id)] == wanted
    fork = await store.library.fork(conversation_id, new_id(), 3.0)
    assert [turn.summary for turn in await store.library.turns(fork.id)] == wanted
    await store.change(conversation_id, ConversationChanges(turn_note=TurnNote(9, "gone")), 4.0)
    assert [turn.summary for turn in await store.library.turns(conversation_id)] == wanted


async def test_the_newest_turn_is_told_in_its_own_words_alone(store: Store) -> None:
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    assert await store.library.newest_turn(conversation_id) is None
    run_id, first = new_id(), say("Look.", new_turn=True)
    await store.commit(move(conversation_id, first, StartRun(run_id, first.message.id)))
    await store.commit(move(conversation_id, *asks_for_tools(run_id, ToolCall("c0", "bash", "{}"))))
    second = say("Fix it.\n" + "x" * 5_000, new_turn=True)
    await store.commit(move(conversation_id, second))
    calls = (ToolCall("c1", "patch", '{"path":"b.py"}'), ToolCall("c2", "patch", '{"path":"a.py"}'))
    await store.commit(move(conversation_id, *asks_for_tools(run_id, *calls)))
    results = [SaveToolResult(ToolResult(call.id, "x", ToolStatus.SUCCESS)) for call in calls]
    await store.commit(move(conversation_id, *results, reply(TextBlock("Done."), run_id=run_id)))
    assert await store.library.newest_turn(conversation_id) == TurnDigest(
        1, ("Fix it.\n" + "x" * 5_000)[:EXCERPT], "Done.", (("patch", 2),), ("b.py", "a.py")
    )
