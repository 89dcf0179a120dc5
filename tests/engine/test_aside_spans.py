"""Model calls beside runs have spans: in the trace of the run before them, with previews, failures and exact sums."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import cast

import pytest

from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.machine.effects import FinishRun, RunStatus, StartRun
from engine.machine.messages import Usage
from engine.ports import ImportTerms, ProviderError
from engine.records.traces import SpanKind, SpanStatus, TraceSpan
from engine.store import Store, StorePaths, open_store
from engine.store.migrations import migrate
from engine.store.opening import connect
from engine.store.traces import fill_in_aside_spans
from tests.support.engine import EngineHarness, engine_harness, run_turn
from tests.support.scripted_provider import Fail, Reply, Script, ScriptedProvider, Text
from tests.support.storage import move, new_conversation, new_id, query, say, used
from tools.contract import JsonObject

DONE = Reply((Text("done"),))


@asynccontextmanager
async def asked(
    home: Path, aside: Reply = DONE, settings: EngineSettings | None = None
) -> AsyncGenerator[tuple[EngineHarness, Conversation]]:
    """A conversation with one run that has ended; its model gives `aside` to questions beside runs."""
    provider = ScriptedProvider({"main": Script((DONE, DONE), aside=aside)})
    async with engine_harness(home, provider=provider, settings=settings) as harness:
        conversation = await harness.run("go")
        yield harness, conversation


async def asides(store: Store, conversation_id: str) -> list[list[TraceSpan]]:
    """The asides of each run, newest run first."""
    traces = store.library.traces
    found = [await traces.of_run(one.run_id) for one in await traces.of_conversation(conversation_id)]
    return [[one for one in trace.spans if one.kind is SpanKind.ASIDE] for trace in found if trace is not None]


async def test_an_aside_shows_its_answer_tokens_and_cost(tmp_path: Path) -> None:
    async with asked(tmp_path, Reply((Text("y" * 700),))) as (harness, conversation):
        await conversation.side.ask("What was it?")
        ((aside,),) = await asides(harness.store, conversation.id)
        ((call_id, tokens, cost),) = query(
            harness.store.path, "SELECT id, input_tokens, cost_usd FROM model_calls WHERE run_id IS NULL"
        )
        assert (aside.id, aside.name, aside.status, aside.output) == (call_id, "aside", SpanStatus.OK, "y" * 500)
        assert aside.usage is not None
        assert (aside.usage.input_tokens, aside.cost_usd) == (tokens, cost)
        seen = await harness.store.library.traces.content(aside)
        assert (seen.input, seen.output) == ("", "y" * 500)


async def test_a_failed_aside_names_the_kind_of_its_failure(tmp_path: Path) -> None:
    async with asked(tmp_path, Reply((Fail("busy", retryable=False),))) as (harness, conversation):
        with pytest.raises(ProviderError):
            await conversation.side.ask("What was it?")
        await run_turn(conversation, "on")
        found = [(one.status, one.error) for run in await asides(harness.store, conversation.id) for one in run]
        assert found == [(SpanStatus.ERROR, "server")]


@pytest.mark.parametrize("verbose", [False, True])
async def test_the_input_of_an_aside_is_kept_only_when_verbose_and_cut(tmp_path: Path, verbose: bool) -> None:
    settings = EngineSettings(trace_verbose=verbose)
    async with asked(tmp_path, settings=settings) as (harness, conversation):
        await conversation.side.ask("w" * 60_000)
        ((aside,),) = await asides(harness.store, conversation.id)
        seen = await harness.store.library.traces.content(aside)
        assert len(seen.input) == (50_000 if verbose else 0)
        assert seen.input.startswith('{"model":"main",' if verbose else "")


async def test_a_call_before_any_run_has_no_span_and_is_counted(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, DONE) as harness:
        conversation = await harness.conversation()
        await conversation.side.ask("Anything?")
        assert query(harness.store.path, "SELECT count(*) FROM spans") == [(0,)]
        assert query(harness.store.path, "SELECT count(*) FROM model_calls") == [(1,)]


async def ran(store: Store, conversation_id: str, at: float, calls: int = 0) -> None:
    """A whole run at one time."""
    run_id = new_id()
    made = [used(Usage(1, 1), 0.1, run_id, at=at) for _ in range(calls)]
    ends = FinishRun(run_id, RunStatus.SUCCESS, 1)
    await store.commit(move(conversation_id, say("go"), StartRun(run_id), *made, ends, at=at))


async def stored_asides(store: Store) -> str:
    """Two runs, begun at 10 and at 20, and calls beside them that began at 5, 15 and 25."""
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    for at in (10.0, 20.0):
        await ran(store, conversation_id, at)
    await store.commit(move(conversation_id, *(used(Usage(1, 1), 0.1, at=at) for at in (5.0, 15.0, 25.0))))
    return conversation_id


async def test_a_call_belongs_to_the_run_that_had_begun_before_it(tmp_path: Path) -> None:
    store = await open_store(StorePaths.under(tmp_path))
    conversation_id = await stored_asides(store)
    found = [[one.started_at for one in run] for run in await asides(store, conversation_id)]
    await store.close()
    assert found == [[25.0, 5.0][::-1], [15.0]], "one from before all runs is shown with the newest"


def without_asides(document: JsonObject) -> None:
    tables = document["tables"]
    assert isinstance(tables, dict)
    tables["spans"] = []


async def test_a_file_whose_span_says_it_is_a_run_makes_no_run(tmp_path: Path) -> None:
    async with asked(tmp_path / "one") as (harness, conversation):
        await conversation.side.ask("What was it?")
        document = await harness.store.library.export(conversation.id)
    tables = cast("dict[str, list[JsonObject]]", document["tables"])
    for span in tables["spans"]:
        span["kind"] = "agent"
    store = await open_store(StorePaths.under(tmp_path / "two"))
    imported = await store.library.import_conversation(document, 1.0, ImportTerms(tmp_path, "demo/guide"))
    traces = store.library.traces
    trace = await traces.of_run((await traces.of_conversation(imported.id))[0].run_id)
    await store.close()
    assert trace is not None
    assert [one.kind for one in trace.spans] == [SpanKind.AGENT, SpanKind.TOOL, SpanKind.TOOL]


@pytest.mark.parametrize(("change", "words"), [(without_asides, ""), (lambda document: None, "It was a build.")])
async def test_an_import_has_its_asides_also_from_a_file_without_their_spans(
    tmp_path: Path, change: Callable[[JsonObject], None], words: str
) -> None:
    async with asked(tmp_path / "one", Reply((Text("It was a build."),))) as (harness, conversation):
        await conversation.side.ask("What was it?")
        document = await harness.store.library.export(conversation.id)
    change(document)
    terms = ImportTerms(tmp_path, "demo/guide")
    store = await open_store(StorePaths.under(tmp_path / "two"))
    imported = await store.library.import_conversation(document, 1.0, terms)
    ((aside,),) = await asides(store, imported.id)
    await store.close()
    assert (aside.name, aside.output) == ("aside", words)


def test_filling_in_a_file_of_many_runs_and_calls_takes_one_pass(tmp_path: Path) -> None:
    paths = StorePaths.under(tmp_path)
    paths.database.parent.mkdir(parents=True, exist_ok=True)
    with closing(connect(str(paths.database))) as connection:
        migrate(connection)
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("BEGIN")
        connection.executemany(
            """INSERT INTO traces (id, run_id, conversation_id, status, started_at)
                VALUES (?1, ?1, 'c', 'completed', 9e9)""",
            [(f"run-{number}",) for number in range(20_000)],
        )
        connection.executemany(
            """INSERT INTO model_calls (id, conversation_id, purpose, status, provider, model, iteration, attempt,
                input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens, estimated, started_at,
                duration_ms, error) VALUES (?, 'c', 'title', 'ok', '', '', 0, 0, 0, 0, 0, 0, 0, ?, 0, '')""",
            [(f"call-{number}", number + 8.9e9 + (1e9 if number % 2 else 0)) for number in range(20_000)],
        )
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        connection.set_progress_handler(count, 1_000)
        fill_in_aside_spans(connection, "c")
        connection.set_progress_handler(None, 0)
        assert connection.execute("SELECT count(*) FROM spans").fetchone()[0] == 10_000
        assert steps < 5_000, "thousands of steps of SQLite; a search for each call would take 200,000"
