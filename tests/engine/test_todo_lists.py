"""The todo list: kept with the result that wrote it, told to the model, changed by the user, carried everywhere."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from engine.context.prompt import AGAIN, CHANGED, EMPTIED, REMINDER
from engine.engine import ConversationOptions
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted, Refused
from engine.machine.messages import TextBlock
from engine.ports import ImportRefused, ImportTerms, ModelRequest
from engine.records import ConversationQuery
from engine.store import StorePaths, open_store
from tests.engine.test_storage_trouble import break_after
from tests.support.engine import EngineHarness, engine_harness, run_turn, until
from tests.support.scripted_provider import Hang, Reply, ScriptedCall, Text
from tools.displays import TodoItem, TodoList, TodoStatus
from tools.planning import TodoWrite

QUIET = EngineSettings(auto_title=False, turn_summaries=False)
DONE = Reply((Text("Done."),))
LOOKS = Reply((ScriptedCall("bash", '{"command": "ls"}'),))
READ, TESTS, REPORT = TodoItem("Read"), TodoItem("Test"), TodoItem("Report")
DONE_READ = TodoItem("Read", TodoStatus.COMPLETED)


def writes(*items: TodoItem) -> Reply:
    todos = [{"content": item.content, "status": item.status.value} for item in items]
    return Reply((ScriptedCall("todo_write", json.dumps({"todos": todos})),))


def last_words(request: ModelRequest) -> str:
    """The text at the very end of a request."""
    block = request.messages[-1].blocks[-1]
    return block.text if isinstance(block, TextBlock) else ""


def notes(harness: EngineHarness) -> list[str]:
    """The note about the list at the end of each request; empty without one."""
    return [words if words.startswith("[") else "" for words in map(last_words, harness.provider.requests)]


async def test_a_list_is_kept_with_its_result_and_survives_a_restart(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, writes(DONE_READ, TESTS), DONE, tools=[TodoWrite()], settings=QUIET) as harness:
        conversation = await harness.run("go")
        assert conversation.record.todos.items == (DONE_READ, TESTS)
        [row] = await harness.engine.list(ConversationQuery())
        assert row.progress == "1/2"
    store = await open_store(StorePaths.under(tmp_path))
    stored = await store.conversation(conversation.id)
    await store.close()
    assert stored is not None
    assert stored.todos == conversation.record.todos


async def test_a_move_that_cannot_be_stored_keeps_neither_the_result_nor_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_harness(tmp_path, writes(READ), DONE, tools=[TodoWrite()], settings=QUIET) as harness:
        conversation = await harness.conversation()
        break_after(harness, monkeypatch, 2)
        await run_turn(conversation, "go")
        stored = await harness.store.conversation(conversation.id)
        assert stored is not None
        rows = await harness.store.messages(conversation.id)
        calls = await harness.store.tool_calls(conversation.id, [row.id for row in rows])
        assert [(call.name, call.output_text) for call in calls] == [("todo_write", "")]
        assert stored.todos == conversation.record.todos == TodoList()


async def test_a_finished_list_goes_with_the_end_of_its_run(tmp_path: Path) -> None:
    finished = [TodoItem("Read", TodoStatus.COMPLETED), TodoItem("Test", TodoStatus.CANCELLED)]
    replies = (writes(*finished), DONE)
    async with engine_harness(tmp_path, *replies, tools=[TodoWrite()], settings=QUIET) as harness:
        conversation = await harness.run("go")
        assert conversation.record.todos.items == ()
        stored = await harness.store.conversation(conversation.id)
        assert stored is not None
        assert stored.todos == conversation.record.todos


async def test_the_model_is_told_of_a_change_of_the_user_in_every_request_until_it_writes_the_list(
    tmp_path: Path,
) -> None:
    replies = (writes(READ, TESTS), DONE, LOOKS, writes(READ, REPORT), DONE)
    async with engine_harness(tmp_path, *replies, tools=[TodoWrite()], settings=QUIET) as harness:
        conversation = await harness.run("go")
        before = len(await harness.store.messages(conversation.id))
        seen = conversation.todos.now
        assert await conversation.todos.replace(seen, (DONE_READ, TESTS, REPORT)) == Accepted()
        assert len(await harness.store.messages(conversation.id)) == before, "no message is made of it"
        await run_turn(conversation, "on")
        told = CHANGED.format(items="1. [x] Read\n2. [ ] Test\n3. [ ] Report")
        assert notes(harness) == ["", "", told, told, ""]
        assert conversation.record.todos.items == (READ, REPORT)
        systems = {request.system[0] for request in harness.provider.requests}
        assert len(systems) == 1, "the note is not in the system prompt"


async def test_the_model_is_told_of_a_change_after_a_restart_and_of_a_cleared_list(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, writes(READ), DONE, tools=[TodoWrite()], settings=QUIET) as harness:
        conversation = await harness.run("go")
        await conversation.todos.replace(conversation.todos.now, ())
    async with engine_harness(tmp_path, DONE, DONE, tools=[TodoWrite()], settings=QUIET) as harness:
        conversation = await harness.engine.open(conversation.id)
        for _ in range(2):
            await run_turn(conversation, "on")
        assert notes(harness) == [EMPTIED, ""]


async def test_a_list_that_knows_nothing_of_a_change_of_the_user_is_refused(tmp_path: Path) -> None:
    replies = (writes(READ), Reply((Hang(),)))
    async with engine_harness(tmp_path, *replies, tools=[TodoWrite()], settings=QUIET) as harness:
        conversation = await harness.start("go")
        await until(lambda: len(harness.provider.requests) == 2)
        conversation.cancel()
        await conversation.wait_idle()
    meanwhile = Reply((Text("hm"), ScriptedCall("todo_write", '{"todos": []}', delay=0.2, piece=4)))
    async with engine_harness(tmp_path, meanwhile, DONE, tools=[TodoWrite()], settings=QUIET) as harness:
        conversation = await harness.engine.open(conversation.id)
        await conversation.say("on")
        await until(lambda: len(harness.provider.requests) == 1)
        await conversation.todos.replace(conversation.todos.now, (READ, TESTS))
        await conversation.wait_idle()
        assert conversation.record.todos.items == (READ, TESTS)
        result = str(harness.provider.requests[-1].messages[-1].blocks[0])
        assert "the user changed the list meanwhile, so yours was not kept" in result
        assert "[ ] Read\\n[ ] Test" in result


async def test_a_change_of_a_list_that_is_another_by_now_is_refused(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, writes(READ), DONE, tools=[TodoWrite()], settings=QUIET) as harness:
        conversation = await harness.run("go")
        old = conversation.todos.now
        await conversation.todos.replace(old, (TESTS,))
        assert await conversation.todos.replace(old, ()) == Refused(
            "The list changed in the meantime; look at it again."
        )
        now = conversation.todos.now
        assert isinstance(await conversation.todos.replace(now, (TodoItem("a\nb"),)), Refused)
        assert isinstance(await conversation.todos.replace(now, (READ,) * 101), Refused)
        assert conversation.todos.now == now


async def test_after_ten_calls_without_a_new_list_the_model_is_reminded_three_times_at_most(tmp_path: Path) -> None:
    looks = [Reply((ScriptedCall("bash", json.dumps({"command": f"ls {number}"})),)) for number in range(45)]
    replies = (writes(READ), *looks, DONE)
    async with engine_harness(tmp_path, *replies, tools=[TodoWrite()], settings=QUIET) as harness:
        await harness.run("go")
        found = {number: note for number, note in enumerate(notes(harness), 1) if note}
        said = REMINDER.format(calls=10, items="1. [ ] Read")
        assert found == {12: said, 22: said, 32: said}


async def test_a_summary_of_the_call_gives_the_list_again(tmp_path: Path) -> None:
    words = Reply((Text("word " * 200),))
    replies = (writes(READ, TESTS), *[words] * 6)
    async with engine_harness(tmp_path, *replies, tools=[TodoWrite()], settings=QUIET) as harness:
        conversation = await harness.conversation()
        for text in ("one", "two", "three", "four", "five"):
            await run_turn(conversation, text)
        assert not any(notes(harness))
        await conversation.context.compact()
        await conversation.wait_idle()
        assert conversation.record.summary
        await run_turn(conversation, "six")
        assert notes(harness)[-1] == AGAIN.format(items="1. [ ] Read\n2. [ ] Test")


async def test_a_limit_of_turns_that_leaves_the_call_out_gives_the_list_again(tmp_path: Path) -> None:
    settings = EngineSettings(auto_title=False, turn_summaries=False, history_turns=2)
    replies = (writes(READ), DONE, DONE, DONE)
    async with engine_harness(tmp_path, *replies, tools=[TodoWrite()], settings=settings) as harness:
        conversation = await harness.conversation()
        for text in ("one", "two", "three"):
            await run_turn(conversation, text)
        assert notes(harness) == ["", "", "", AGAIN.format(items="1. [ ] Read")]


async def test_a_copy_up_to_a_message_has_the_list_of_that_time(tmp_path: Path) -> None:
    replies = (writes(READ, TESTS), DONE, writes(DONE_READ, TESTS), DONE)
    async with engine_harness(tmp_path, *replies, tools=[TodoWrite()], settings=QUIET) as harness:
        conversation = await harness.conversation()
        for text in ("one", "two"):
            await run_turn(conversation, text)
        rows = await harness.store.messages(conversation.id)
        second = next(row.seq for row in rows if row.blocks == (TextBlock("two"),))
        library = harness.store.library
        whole = await library.fork(conversation.id, "whole", 5.0)
        earlier = await library.fork(conversation.id, "earlier", 5.0, second - 1)
        nothing = await library.fork(conversation.id, "nothing", 5.0, 1)
        assert whole.todos == conversation.record.todos
        assert earlier.todos == TodoList((READ, TESTS), at=2)
        assert nothing.todos == TodoList()


async def test_an_export_carries_the_list_and_a_hostile_one_is_refused(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, writes(READ), DONE, tools=[TodoWrite()], settings=QUIET) as harness:
        conversation = await harness.run("go")
        document = json.loads(json.dumps(await harness.store.library.export(conversation.id)))
    (tmp_path / "other").mkdir()
    store = await open_store(StorePaths.under(tmp_path / "other"))
    terms = ImportTerms(tmp_path, "scripted/main")
    try:
        imported = await store.library.import_conversation(document, 9.0, terms)
        copy = await store.conversation(imported.id)
        assert copy is not None
        assert copy.todos == conversation.record.todos
        for hostile in (
            '{"items": [{"content": "a\\u001b[2J"}]}',
            '{"items": [{"content": ""}]}',
            '{"items": [{"content": "' + "x" * 501 + '"}]}',
            '{"items": [' + ", ".join(['{"content": "a"}'] * 101) + "]}",
            '{"items": [{"content": "a", "status": "burnt"}]}',
            '{"items": [], "at": -1}',
            "[" * 100_000,
            "not json",
        ):
            document["tables"]["conversations"][0]["todos_json"] = hostile
            with pytest.raises(ImportRefused, match=r"invalid part: conversations\.todos_json"):
                await store.library.import_conversation(document, 9.0, terms)
        document["tables"]["conversations"][0]["todos_json"] = ""
        document["tables"]["conversations"][0]["plan_text"] = "x" * 40_000
        with pytest.raises(ImportRefused, match=r"invalid part: conversations\.plan_text"):
            await store.library.import_conversation(document, 9.0, terms)
    finally:
        await store.close()


async def test_a_list_that_cannot_be_read_hides_no_conversation(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, DONE, settings=QUIET) as harness:
        conversation = await harness.engine.create(ConversationOptions(harness.cwd, "scripted/main"))
    with sqlite3.connect(StorePaths.under(tmp_path).database) as connection:
        connection.execute("UPDATE conversations SET todos_json = '{'")
    store = await open_store(StorePaths.under(tmp_path))
    try:
        found = await store.conversation(conversation.id)
        assert found is not None
        assert found.todos == TodoList()
        assert [row.progress for row in await store.conversations(ConversationQuery())] == [""]
    finally:
        await store.close()


async def test_a_restore_of_the_messages_before_a_summary_takes_the_list_from_the_notes(tmp_path: Path) -> None:
    words = Reply((Text("word " * 200),))
    async with engine_harness(tmp_path, writes(READ), *[words] * 8, tools=[TodoWrite()], settings=QUIET) as harness:
        conversation = await harness.conversation()
        for text in ("one", "two", "three", "four", "five"):
            await run_turn(conversation, text)
        await conversation.context.compact()
        await conversation.wait_idle()
        await conversation.context.restore()
        await run_turn(conversation, "six")
        assert notes(harness)[-1] == ""


async def test_a_list_of_hostile_arguments_is_answered_and_the_run_goes_on(tmp_path: Path) -> None:
    bad = (
        "{",
        '{"todos": ' + "[" * 50_000,
        '{"todos": [{"content": "a", "status": "\\u0000"}]}',
        "[]",
        '{"todos": 1e999}',
    )
    replies = [Reply((ScriptedCall("todo_write", arguments),)) for arguments in bad]
    async with engine_harness(tmp_path, *replies, DONE, tools=[TodoWrite()], settings=QUIET) as harness:
        conversation = await harness.run("go")
        assert len(harness.provider.requests) == len(bad) + 1
        assert conversation.record.todos == TodoList()
