"""Notes that a model writes before a summary (SPEC T-CMPX 10)."""

from __future__ import annotations

import re
import sqlite3
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.conversation import Conversation
from engine.executor import compacting
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted
from engine.machine.messages import TextBlock, ToolResultBlock
from engine.machine.states import Compacting, Idle
from engine.ports import ModelInfo, ModelRequest
from engine.records.runs import CallPurpose
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.scripted_provider import Fail, Hang, Reply, Script, ScriptedCall, ScriptedProvider, ScriptPart, Text
from tests.support.storage import query
from tests.support.turns import turns

FLUSHING = EngineSettings(auto_title=False, memory_flush=True)
MARK = "Pre-compaction memory flush."
TURNS = 20
"""Turns of the loop in which a stop reaches everything that it stops."""
SUMMARY = Reply((Text("the plan is kept"),), when="Write the summary now.", always=True)
TODAY = time.strftime("%Y-%m-%d", time.gmtime())


def flush(*parts: ScriptPart) -> Reply:
    return Reply(parts, when=MARK)


def write(path: str = f"memory/{TODAY}.md", content: str = "we use tabs") -> ScriptedCall:
    return ScriptedCall("write_file", f'{{"path": "{path}", "content": "{content}"}}')


NO_REPLY = flush(Text("NO_REPLY"))


def talk() -> list[Reply]:
    return [Reply((Text("word " * 200),), when=f"[go] {number}") for number in range(12)]


async def say(conversation: Conversation, *numbers: int) -> None:
    for number in numbers:
        assert isinstance(await conversation.say(f"[go] {number}"), Accepted)
        assert isinstance(await conversation.wait_idle(), Idle)


async def compact(conversation: Conversation) -> None:
    assert isinstance(await conversation.context.compact(), Accepted)
    await conversation.wait_idle()


def flushes(harness: EngineHarness) -> list[ModelRequest]:
    return [request for request in harness.provider.requests if MARK in str(request.messages)]


def notes(home: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (home / "memory").rglob("*.md")}


def results(request: ModelRequest) -> list[tuple[bool, str]]:
    return [
        (block.is_error, "".join(part.text for part in block.content if isinstance(part, TextBlock)))
        for block in request.messages[-1].blocks
        if isinstance(block, ToolResultBlock)
    ]


async def test_a_summary_is_preceded_by_one_flush_with_the_default_prompt_and_two_tools(tmp_path: Path) -> None:
    async with engine_harness(
        tmp_path, SUMMARY, flush(write()), NO_REPLY, *talk(), settings=FLUSHING, memory=True
    ) as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(8))
        before = conversation.record.message_count
        await compact(conversation)
        assert conversation.record.summary.startswith("the plan is kept")
        first, second = flushes(harness)
        (asked,) = first.messages[0].blocks
        assert isinstance(asked, TextBlock)
        assert asked.text.endswith(
            f"Pre-compaction memory flush. Store durable memories now (use memory/{TODAY}.md; create memory/ if "
            "needed). If nothing to store, reply with NO_REPLY."
        )
        assert re.findall(r"\[go\] (\d+)", asked.text) == ["3", "4", "5", "6", "7"], "the last ten messages"
        assert [tool.name for tool in first.tools] == ["write_file", "read_file"]
        assert results(second) == [(False, f"Added to memory/{TODAY}.md.")]
        assert list(notes(tmp_path)) == [f"{TODAY}.md"]
        assert re.fullmatch(
            rf"## \d\d:\d\d UTC, conversation {conversation.id}\nwe use tabs\n", notes(tmp_path)[f"{TODAY}.md"]
        )
        assert conversation.record.message_count == before + 1, "the notice of the summary alone"
        spent = {one.purpose: one for one in await harness.store.library.calls(conversation.id)}
        assert (spent[CallPurpose.MEMORY].calls, spent[CallPurpose.MEMORY].totals.cost_usd) == (2, 0.02)


async def test_an_existing_file_is_appended_and_no_reply_makes_none(tmp_path: Path) -> None:
    replies = (flush(write(content="one")), NO_REPLY, flush(write(content="two")), NO_REPLY, NO_REPLY)
    async with engine_harness(tmp_path, SUMMARY, *replies, *talk(), settings=FLUSHING, memory=True) as harness:
        conversation = await harness.conversation()
        for first in (0, 4, 8):
            await say(conversation, *range(first, first + 4))
            await compact(conversation)
        text = notes(tmp_path)[f"{TODAY}.md"]
        assert text.index("one") < text.index("two")
        assert (len(flushes(harness)), text.count("## ")) == (5, 2)


async def test_no_reply_alone_makes_no_file(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SUMMARY, NO_REPLY, *talk(), settings=FLUSHING, memory=True) as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(6))
        await compact(conversation)
        assert (conversation.record.summary != "", notes(tmp_path)) == (True, {})


async def test_a_flush_is_not_repeated_for_the_same_count_also_after_a_restart(tmp_path: Path) -> None:
    failing = Reply((Fail("down", retryable=False),), when="Write the summary now.")
    async with engine_harness(tmp_path, failing, NO_REPLY, *talk(), settings=FLUSHING, memory=True) as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(8))
        await compact(conversation)
        assert (conversation.record.summary, len(flushes(harness))) == ("", 1)
        key = conversation.id
    assert query(tmp_path / "phoenix.db", "SELECT flush_compaction_count, compaction_count FROM conversations") == [
        (0, 0)
    ]
    async with engine_harness(tmp_path, SUMMARY, NO_REPLY, settings=FLUSHING, memory=True) as harness:
        conversation = await harness.engine.open(key)
        await compact(conversation)
        assert (conversation.record.summary != "", len(flushes(harness))) == (True, 0)


@pytest.mark.parametrize(
    "path",
    [
        "notes.md",
        "/etc/passwd",
        "memory/../config.toml",
        f"memory/../../{TODAY}.md",
        "memory/1999-01-01.md",
        "~/.bashrc",
        f"../memory/{TODAY}.md",
        f"memory/user/{TODAY}.md",
        f"memory/{TODAY}.md/x",
        f"memory/{TODAY}.md\\u0000",
    ],
)
async def test_a_write_elsewhere_is_an_error_of_the_tool_and_writes_nothing(tmp_path: Path, path: str) -> None:
    async with engine_harness(
        tmp_path, SUMMARY, flush(write(path)), NO_REPLY, *talk(), settings=FLUSHING, memory=True
    ) as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(6))
        await compact(conversation)
        ((is_error, text),) = results(flushes(harness)[1])
        assert is_error
        assert text == f"write_file: {compacting.ONLY_NOTES.format(date=TODAY)}"
        assert (conversation.record.summary != "", notes(tmp_path)) == (True, {})
        assert list(harness.cwd.iterdir()) == []


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (ScriptedCall("bash", '{"command": "id"}'), "bash: Only write_file and read_file can be used here."),
        (ScriptedCall("write_file", "{broken"), "write_file: the arguments are not one JSON object"),
        (ScriptedCall("write_file", "{}"), "write_file: The argument path is missing."),
        (write(content="x" * 8_001), "write_file: An entry has at most 8,000 characters; this one has 8,0"),
        (write(content=" "), "write_file: There is no text to add."),
        (ScriptedCall("read_file", '{"path": "/etc/passwd"}'), "read_file: Only memory/"),
        (ScriptedCall("read_file", '{"path": "memory/1999-01-01.md"}'), "There are no notes of this day yet."),
    ],
)
async def test_a_wrong_call_is_answered_and_the_summary_follows(tmp_path: Path, call: ScriptedCall, text: str) -> None:
    async with engine_harness(
        tmp_path, SUMMARY, flush(call), NO_REPLY, *talk(), settings=FLUSHING, memory=True
    ) as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(6))
        await compact(conversation)
        ((is_error, said),) = results(flushes(harness)[1])
        assert is_error
        assert said.startswith(text)
        assert (conversation.record.summary != "", notes(tmp_path)) == (True, {})
        assert harness.tool.calls == []


async def test_a_model_that_never_stops_gets_five_replies(tmp_path: Path) -> None:
    endless = Reply((ScriptedCall("read_file", f'{{"path": "memory/{TODAY}.md"}}'),), when=MARK, always=True)
    async with engine_harness(tmp_path, SUMMARY, endless, *talk(), settings=FLUSHING, memory=True) as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(6))
        await compact(conversation)
        assert (len(flushes(harness)), conversation.record.summary != "") == (5, True)


async def test_twenty_calls_of_one_reply_are_answered_and_eight_are_made(tmp_path: Path) -> None:
    many = flush(*(write(content=f"fact {number}") for number in range(20)))
    async with engine_harness(tmp_path, SUMMARY, many, NO_REPLY, *talk(), settings=FLUSHING, memory=True) as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(6))
        await compact(conversation)
        assert [is_error for is_error, _ in results(flushes(harness)[1])] == [False] * 8 + [True] * 12
        assert notes(tmp_path)[f"{TODAY}.md"].count("fact") == 8


@pytest.mark.parametrize("trouble", [Fail("down"), Fail("no such tool", kind="invalid_request", retryable=False)])
async def test_a_flush_that_fails_prevents_no_summary(tmp_path: Path, trouble: Fail) -> None:
    async with engine_harness(tmp_path, SUMMARY, flush(trouble), *talk(), settings=FLUSHING, memory=True) as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(6))
        await compact(conversation)
        assert conversation.record.summary.startswith("the plan is kept")


async def test_a_slow_flush_ends_at_its_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compacting, "TIME_LIMIT", 0.05)
    async with engine_harness(
        tmp_path, SUMMARY, flush(write()), flush(Hang()), *talk(), settings=FLUSHING, memory=True
    ) as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(6))
        await compact(conversation)
        assert (conversation.record.summary != "", len(notes(tmp_path))) == (True, 1)


async def test_esc_stops_a_flush_and_the_summary_with_it(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SUMMARY, flush(Hang()), *talk(), settings=FLUSHING, memory=True) as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(6))
        assert isinstance(await conversation.context.compact(), Accepted)
        await until(lambda: flushes(harness))
        assert isinstance(conversation.state, Compacting)
        conversation.cancel()
        assert isinstance(await conversation.wait_idle(), Idle)
        assert (conversation.record.summary, notes(tmp_path)) == ("", {})


async def test_a_flush_that_is_stopped_after_it_wrote_is_not_made_again(tmp_path: Path) -> None:
    replies = (SUMMARY, flush(write()), flush(Hang()), flush(write(content="again")), NO_REPLY)
    async with engine_harness(tmp_path, *replies, *talk(), settings=FLUSHING, memory=True) as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(6))
        assert isinstance(await conversation.context.compact(), Accepted)
        await until(lambda: len(flushes(harness)) == 2)
        conversation.cancel()
        assert isinstance(await conversation.wait_idle(), Idle)
        await compact(conversation)
        assert (len(flushes(harness)), conversation.record.summary != "") == (2, True)
        assert "again" not in notes(tmp_path)[f"{TODAY}.md"]


async def test_a_flush_that_is_stopped_between_its_mark_and_its_note_has_written_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = (SUMMARY, flush(write()), NO_REPLY)
    async with engine_harness(tmp_path, *replies, *talk(), settings=FLUSHING, memory=True) as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(6))
        mark = harness.store.notes.mark_flushed

        async def mark_and_stop(conversation_id: str) -> None:
            await mark(conversation_id)
            conversation.cancel()
            for _ in range(TURNS):
                await turns().next()

        monkeypatch.setattr(harness.store.notes, "mark_flushed", mark_and_stop)
        await compact(conversation)
        await until(lambda: f"{TODAY}.md" in notes(tmp_path))
        assert conversation.record.summary == ""


async def test_a_flush_precedes_a_summary_in_the_background(tmp_path: Path) -> None:
    settings = replace(FLUSHING, compact_after_runs=True, compact_messages=8)
    replies = (SUMMARY, flush(write()), NO_REPLY)
    async with engine_harness(tmp_path, *replies, *talk(), settings=settings, memory=True) as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(5))
        await until(lambda: conversation.record.summary)
        assert (len(flushes(harness)), len(notes(tmp_path))) == (2, 1)


async def test_a_folder_that_cannot_be_written_prevents_no_summary(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("a file")
    async with engine_harness(
        tmp_path, SUMMARY, flush(write()), NO_REPLY, *talk(), settings=FLUSHING, memory=True
    ) as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(6))
        await compact(conversation)
        ((is_error, _),) = results(flushes(harness)[1])
        assert (is_error, conversation.record.summary != "") == (True, True)


class Gauge:
    """Memory that is short once it says so."""

    said = ""

    def refusal(self) -> str:
        return self.said


class LocalProvider(ScriptedProvider):
    """A model on this machine."""

    def describe(self, model: str) -> ModelInfo:
        return replace(super().describe(model), local=True)


@pytest.mark.parametrize("why", ["switched off", "no memory", "local model", "memory short", "budget used up"])
async def test_there_is_no_flush_where_it_is_not_wanted(tmp_path: Path, why: str) -> None:
    script = {"main": Script((SUMMARY, NO_REPLY, *talk()))}
    provider = LocalProvider(script) if why == "local model" else ScriptedProvider(script)
    settings = replace(FLUSHING, memory_flush=why != "switched off")
    gauge = Gauge()
    settings = replace(settings, memory_gauge=gauge)
    async with engine_harness(tmp_path, provider=provider, settings=settings, memory=why != "no memory") as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(6))
        if why == "memory short":
            gauge.said = "Memory is short."
        if why == "budget used up":
            session = conversation.context._session
            session.run.caps = replace(session.run.caps, max_budget_usd=0.01)
            session.run.cost_usd = 0.02
        await compact(conversation)
        assert (conversation.record.summary != "", flushes(harness)) == (True, [])


async def test_the_cheap_model_writes_the_notes(tmp_path: Path) -> None:
    provider = ScriptedProvider({"main": Script((SUMMARY, *talk())), "small": Script((NO_REPLY,))})
    settings = replace(FLUSHING, cheap_model="scripted/small")
    async with engine_harness(tmp_path, provider=provider, settings=settings, memory=True) as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(6))
        await compact(conversation)
        assert [request.model for request in flushes(harness)] == ["small"]


async def test_old_results_are_shortened_without_a_flush(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SUMMARY, NO_REPLY, *talk(), settings=FLUSHING, memory=True) as harness:
        conversation = await harness.conversation()
        await say(conversation, 0)
        await compact(conversation)
        assert (conversation.record.summary, flushes(harness)) == ("", [])


async def test_purged_exported_and_imported_conversations_leave_the_notes_alone(tmp_path: Path) -> None:
    async with engine_harness(
        tmp_path, SUMMARY, flush(write()), NO_REPLY, *talk(), settings=FLUSHING, memory=True
    ) as harness:
        conversation = await harness.conversation()
        await say(conversation, *range(6))
        await compact(conversation)
        before = notes(tmp_path)
        assert "we use tabs" not in str(await harness.store.library.export(conversation.id))
        await harness.engine.forget(conversation.id)
        await harness.store.library.purge(conversation.id)
        assert notes(tmp_path) == before
        memory = harness.engine.ports.memory
        assert memory is not None
        found = await memory.search("tabs", (await memory.project(harness.cwd),), 5)
        assert len(found.hits) == 1
    with sqlite3.connect(tmp_path / "phoenix.db") as database:
        assert database.execute("SELECT count(*) FROM conversations").fetchone() == (0,)
