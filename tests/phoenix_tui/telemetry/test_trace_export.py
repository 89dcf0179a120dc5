"""Export of traces: each ended span once, whatever the collector answers, and nothing while it is off."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from engine.executor.engine_settings import EngineSettings
from engine.machine.effects import FinishRun, RunStatus
from engine.machine.messages import Usage
from engine.ports import RecordSpan
from engine.records.traces import TraceBatch
from engine.store import Store, StorePaths, open_store
from phoenix_tui.config.settings import Settings
from phoenix_tui.telemetry.exporter import BATCH, LOOK, Collector, CollectorVerdict, SpanDelivery, TraceExporter
from phoenix_tui.telemetry.otlp import LONGEST_REASON, encode_spans, make_trace_id, partial_success
from phoenix_tui.wiring.trace_export import CollectorClient, export_findings
from tests.engine.agents.test_spawning import DONE, spawns, submits
from tests.support.cli import ROOT, Phoenix, phoenix_in
from tests.support.collector import FakeCollector, collect, decoded
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.loopback import Answer, Talk
from tests.support.scripted_provider import Fail, Reply, ScriptedCall, Text
from tests.support.storage import move, new_conversation, query, start_run, used

SECRET = "the-secret-word"


def exporter_of(store: Store, collector: FakeCollector, *, content: bool = False) -> TraceExporter:
    where = Collector(f"{collector.url}/v1/traces", {"x-key": "k"}, content)
    return TraceExporter(
        store.trace_queue,
        CollectorClient(where, seconds=1.0),
        lambda batch: encode_spans(batch.spans, content=content, version="1"),
    )


@asynccontextmanager
async def exporting(
    home: Path, *replies: Reply, content: bool = False, settings: EngineSettings | None = None
) -> AsyncGenerator[tuple[EngineHarness, FakeCollector, TraceExporter]]:
    async with collect() as collector, engine_harness(home, *replies, settings=settings) as harness:
        await harness.store.trace_queue.open()
        exporter = exporter_of(harness.store, collector, content=content)
        yield harness, collector, exporter
        await exporter.close()


async def talk_to(harness: EngineHarness, *texts: str) -> str:
    conversation = await harness.conversation()
    for text in texts:
        await conversation.say(text)
        await conversation.wait_idle()
    return conversation.id


async def drain(exporter: TraceExporter) -> None:
    while await exporter.step() == 0.0:
        pass


async def drain_once(store: Store, collector: FakeCollector) -> None:
    """Deliver as one process does, until the queue is empty or the collector takes nothing."""
    exporter = exporter_of(store, collector)
    await drain(exporter)
    await exporter.close()


def counted(path: Path) -> int:
    """Spans that a database has, by its tables: a run, a call of a model, a call of a tool."""
    ((count,),) = query(
        path,
        "SELECT (SELECT count(*) FROM traces) + (SELECT count(*) FROM model_calls) + (SELECT count(*) FROM tool_calls)",
    )
    assert isinstance(count, int)
    return count


def one_tree(collector: FakeCollector) -> None:
    """Each parent was taken, in the trace of its child."""
    known = {(span.trace, span.id) for span in collector.spans}
    for span in collector.spans:
        assert not span.parent or (span.trace, span.parent) in known, span


TREE = (
    spawns("TASK one", "TASK two"),
    submits("one", "first"),
    submits("two", "second"),
    DONE,
)


async def test_a_run_with_sub_agents_is_one_trace_whose_tokens_are_those_of_the_calls(tmp_path: Path) -> None:
    async with exporting(tmp_path, *TREE) as (harness, collector, exporter):
        await talk_to(harness, "begin")
        await drain(exporter)
        assert (len(collector.spans), collector.twice) == (counted(harness.store.path), [])
        one_tree(collector)
        ((run_id,),) = query(harness.store.path, "SELECT id FROM runs ORDER BY rowid LIMIT 1")
        assert {span.trace for span in collector.spans} == {str(run_id).replace("-", "")}
        tops = [span for span in collector.spans if not span.parent]
        assert [(span.name, span.attributes["phoenix.run.id"]) for span in tops] == [("invoke_agent agent", run_id)]
        ((tokens,),) = query(
            harness.store.path, "SELECT sum(input_tokens + cache_read_tokens + cache_creation_tokens) FROM model_calls"
        )
        assert sum(span.attributes.get("gen_ai.usage.input_tokens", 0) for span in collector.spans) == tokens
        assert collector.resources[0]["service.name"] == "phoenix"
        assert collector.server.requests[0].headers["x-key"] == "k"


async def test_names_are_those_of_the_conventions(tmp_path: Path) -> None:
    from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes  # noqa: PLC0415 - no other test needs it

    known = {
        value
        for module in (gen_ai_attributes, error_attributes)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    }
    operations = {one.value for one in gen_ai_attributes.GenAiOperationNameValues}
    replies = (*TREE, Reply((Fail("busy", retryable=False),)))
    async with exporting(tmp_path, *replies, content=True) as (harness, collector, exporter):
        await talk_to(harness, "begin", "more")
        await drain(exporter)
        used = {key for span in collector.spans for key in span.attributes if not key.startswith("phoenix.")}
        assert used - known == set()
        assert {span.attributes["gen_ai.operation.name"] for span in collector.spans} <= operations
        assert {"gen_ai.usage.cache_read.input_tokens", "gen_ai.tool.name", "error.type"} <= used
        assert [span.message for span in collector.spans if span.failed and "chat" in span.name] == ["server"]


@pytest.mark.parametrize("content", [False, True])
async def test_content_leaves_only_when_it_is_asked_for(tmp_path: Path, content: bool) -> None:
    call = Reply((ScriptedCall("bash", json.dumps({"command": SECRET})),))
    async with exporting(tmp_path, call, Reply((Text(SECRET),)), content=content) as (harness, collector, exporter):
        await talk_to(harness, SECRET)
        await drain(exporter)
        sent = b"".join(seen.body for seen in collector.server.requests)
        assert (SECRET.encode() in sent) is content
        if content:
            (tool,) = [span for span in collector.spans if span.name == "execute_tool bash"]
            assert tool.attributes["gen_ai.tool.call.result"] == f"ran {SECRET}"
            (top,) = [span for span in collector.spans if not span.parent]
            assert SECRET in top.attributes["gen_ai.input.messages"]


async def status_500(talk: Talk) -> None:
    await talk.plain(500, b"no")


async def reset(talk: Talk) -> None:
    await talk.reset()


async def hang(talk: Talk) -> None:
    await talk.stall()


async def endless_head(talk: Talk) -> None:
    talk.keep = False
    with suppress(ConnectionError):
        while True:
            talk.writer.write(b"x" * 65_536)
            await talk.writer.drain()


async def redirect(talk: Talk) -> None:
    await talk.plain(307, b"", "location: http://127.0.0.1:9/\r\n")


async def forbidden(talk: Talk) -> None:
    await talk.plain(401, b"")


DOWN = (status_500, reset, hang, endless_head, redirect, forbidden)


@pytest.mark.parametrize("down", DOWN)
async def test_a_collector_that_is_down_loses_nothing_and_gets_each_span_once(tmp_path: Path, down: Answer) -> None:
    replies = [Reply((Text("done"),))] * 4
    async with exporting(tmp_path, *replies) as (harness, collector, exporter):
        await talk_to(harness, "one")
        await drain(exporter)
        collector.answer = down
        await talk_to(harness, "two", "three")
        waits = [await exporter.step() for _ in range(3)]
        assert waits == [1.0, 2.0, 4.0]
        collector.answer = None
        await drain(exporter)
        await talk_to(harness, "four")
        await drain(exporter)
        assert (len(collector.spans), collector.twice) == (counted(harness.store.path), [])
        assert query(harness.store.path, "SELECT * FROM trace_queue") == []


async def test_an_answer_without_end_counts_as_taken_and_is_dropped(tmp_path: Path) -> None:
    async def endless(talk: Talk) -> None:
        await talk.begin("application/x-protobuf")
        talk.keep = False
        with suppress(ConnectionError):
            while True:
                await talk.send(b"x" * 65_536)

    async with exporting(tmp_path, Reply((Text("done"),))) as (harness, collector, exporter):
        await talk_to(harness, "one")
        collector.answer = endless
        await drain(exporter)
        await collector.server.wait_closed()
        assert len(collector.server.requests) == 1


async def test_spans_that_a_collector_refuses_for_good_do_not_hold_up_the_next(tmp_path: Path) -> None:
    async def refuse(talk: Talk) -> None:
        await talk.plain(400, b"bad")

    async with exporting(tmp_path, *[Reply((Text("done"),))] * 2) as (harness, collector, exporter):
        await talk_to(harness, "one")
        collector.answer = refuse
        await drain(exporter)
        collector.answer = None
        await talk_to(harness, "two")
        await drain(exporter)
        assert len(collector.server.requests) == 2
        assert [span.name for span in collector.spans] == ["invoke_agent agent", "chat main"]


async def test_a_restart_goes_on_where_the_last_process_stopped(tmp_path: Path) -> None:
    async with collect() as collector:
        for number in range(4):
            collector.answer = status_500 if number % 2 else None
            async with engine_harness(tmp_path, *[Reply((Text("done"),))] * 2) as harness:
                await harness.store.trace_queue.open()
                await talk_to(harness, "one", "two")
                await drain_once(harness.store, collector)
        collector.answer = None
        store = await open_store(StorePaths.under(tmp_path))
        await drain_once(store, collector)
        await store.close()
        assert (len(collector.spans), collector.twice) == (counted(store.path), [])
        assert len(collector.spans) == 16


async def test_a_long_run_goes_out_in_bounded_requests_and_continues_after_a_failure(tmp_path: Path) -> None:
    async with exporting(tmp_path, Reply((Text("done"),))) as (harness, collector, exporter):
        await talk_to(harness, "one")
        connection = sqlite3.connect(harness.store.path)
        connection.executemany(
            """INSERT INTO spans (id, trace_id, kind, name, iteration, status, started_at, duration_ms)
                SELECT ?, id, 'tool', 'bash', 1, 'success', 1.0, 10 FROM traces""",
            [(f"span-{number}",) for number in range(2_000)],
        )
        connection.commit()
        connection.close()
        assert await exporter.step() == 0.0
        collector.answer = reset
        assert await exporter.step() == 1.0
        collector.answer = None
        await drain(exporter)
        assert [len(batch) for batch in collector.batches] == [BATCH, BATCH, BATCH, 2_002 - 3 * BATCH]
        assert collector.twice == []
        assert max(len(seen.body) for seen in collector.server.requests) < 1 << 19


async def test_two_processes_on_one_database_deliver_each_span_once(tmp_path: Path) -> None:
    async with exporting(tmp_path, *[Reply((Text("done"),))] * 6) as (harness, collector, first):
        other = await open_store(StorePaths.under(tmp_path))
        second = exporter_of(other, collector)
        for _ in range(3):
            await talk_to(harness, "one", "two")
            await asyncio.gather(*(exporter.step() for exporter in (first, second)))
        await asyncio.gather(drain(first), drain(second))
        await drain(first)
        await second.close()
        await other.close()
        assert (len(collector.spans), collector.twice) == (counted(harness.store.path), [])


async def test_while_another_process_sends_this_one_waits_and_takes_over_when_it_is_gone(tmp_path: Path) -> None:
    async with exporting(tmp_path, Reply((Text("done"),))) as (harness, collector, exporter):
        await talk_to(harness, "one")
        other = await open_store(StorePaths.under(tmp_path))
        claimed = await other.trace_queue.claim(BATCH)
        assert isinstance(claimed, TraceBatch)
        assert await exporter.step() == LOOK
        assert collector.spans == []
        await other.close()
        await drain(exporter)
        assert len(collector.spans) == 2


CLAIMS = """
import asyncio, sys
from pathlib import Path
from engine.store import StorePaths, open_store

async def main():
    store = await open_store(StorePaths.under(Path(sys.argv[1])))
    assert await store.trace_queue.claim(10) is not None
    print("claimed", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_the_claim_of_a_killed_process_counts_as_none(tmp_path: Path) -> None:
    async with exporting(tmp_path, Reply((Text("done"),))) as (harness, collector, exporter):
        await talk_to(harness, "one")
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CLAIMS, str(tmp_path), cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        assert child.stdout is not None
        assert await child.stdout.readline() == b"claimed\n"
        assert await exporter.step() == LOOK
        child.kill()
        await child.communicate()
        await drain(exporter)
        assert (len(collector.spans), collector.twice) == (2, [])


@pytest.mark.parametrize("sent_before", [False, True])
async def test_a_call_that_ends_after_its_run_is_delivered_once(tmp_path: Path, sent_before: bool) -> None:
    async with collect() as collector:
        store = await open_store(StorePaths.under(tmp_path))
        await store.trace_queue.open()
        exporter = exporter_of(store, collector)
        conversation_id = (await store.create(new_conversation(), 1.0)).id
        run_id = await start_run(store, conversation_id)
        ends = FinishRun(run_id, RunStatus.CANCELLED, 1)
        await store.commit(move(conversation_id, used(Usage(1, 2), 0.1, run_id), ends))
        if sent_before:
            await drain(exporter)
        late = RecordSpan("late", run_id, "t1", "bash", 1, "cancelled", 5)
        await store.commit(move(conversation_id, used(Usage(3, 4), 0.1, run_id), late))
        await drain(exporter)
        await exporter.close()
        await store.close()
        assert (len(collector.spans), collector.twice) == (4, [])
        one_tree(collector)


async def test_calls_beside_runs_are_traces_of_their_own(tmp_path: Path) -> None:
    replies = (Reply((Text("built"),)), Reply((Text("A title"),)))
    async with exporting(tmp_path, *replies, settings=EngineSettings(auto_title=True)) as (
        harness,
        collector,
        exporter,
    ):
        await talk_to(harness, "please build everything there is")
        await until(lambda: query(harness.store.path, "SELECT 1 FROM model_calls WHERE run_id IS NULL"))
        await drain(exporter)
        assert (len(collector.spans), collector.twice) == (counted(harness.store.path), [])
        (title,) = [span for span in collector.spans if span.attributes.get("phoenix.purpose") == "title"]
        assert (title.parent, title.attributes["phoenix.span.kind"]) == ("", "aside")


async def test_a_removed_conversation_leaves_nothing_to_send(tmp_path: Path) -> None:
    async with exporting(tmp_path, *[Reply((Text("done"),))] * 2) as (harness, collector, exporter):
        gone = await talk_to(harness, "one")
        kept = await talk_to(harness, "two")
        await harness.engine.bulk.purge([gone])
        await drain(exporter)
        assert {span.attributes["gen_ai.conversation.id"] for span in collector.spans} == {kept}


async def test_what_ended_before_it_was_switched_on_is_not_exported(tmp_path: Path) -> None:
    async with collect() as collector, engine_harness(tmp_path, *[Reply((Text("done"),))] * 2) as harness:
        await talk_to(harness, "before")
        assert query(harness.store.path, "SELECT * FROM trace_queue") == []
        exporter = exporter_of(harness.store, collector)
        await exporter.start()
        after = await talk_to(harness, "after")
        await exporter.close()
        assert {span.attributes["gen_ai.conversation.id"] for span in collector.spans} == {after}


async def test_closing_ends_although_the_collector_hangs_and_keeps_what_was_not_sent(tmp_path: Path) -> None:
    class Never:
        """A sender whose request never ends."""

        asked = asyncio.Event()

        async def send(self, body: bytes) -> SpanDelivery:
            self.asked.set()
            await asyncio.Event().wait()
            return SpanDelivery(CollectorVerdict.DELIVERED)

        async def close(self) -> None:
            return

    async with engine_harness(tmp_path, Reply((Text("done"),))) as harness:
        sender = Never()
        exporter = TraceExporter(harness.store.trace_queue, sender, lambda batch: b"")
        await exporter.start()
        await talk_to(harness, "one")
        await sender.asked.wait()
        await exporter.close()
        assert len(query(harness.store.path, "SELECT * FROM trace_queue")) == 1
        assert query(harness.store.path, "SELECT owner FROM trace_export") == [(None,)]


def test_ids_come_from_the_stored_ids() -> None:
    assert make_trace_id("6f1c0d52-9f0e-4c5a-8a51-0b6c0c7b1d11").hex() == "6f1c0d529f0e4c5a8a510b6c0c7b1d11"
    assert len({make_trace_id("a"), make_trace_id("b"), make_trace_id("00000000-0000-0000-0000-000000000000")}) == 3


def installed(folder: Path, config: str, **extra: str) -> Phoenix:
    phoenix = phoenix_in(folder, **extra)
    (phoenix.home / "config.toml").write_text(config)
    return phoenix


async def test_the_program_exports_its_run_before_it_ends(tmp_path: Path) -> None:
    async with collect() as collector:
        ran = await installed(tmp_path, f'otel_endpoint = "{collector.url}"\n').run("-p", "hello")
        assert ran.code == 0
        assert [span.name for span in collector.spans] == ["invoke_agent agent", "chat guide"]


async def test_a_collector_that_hangs_changes_no_run_and_holds_up_no_exit(tmp_path: Path) -> None:
    async with collect() as collector:
        plain = await phoenix_in(tmp_path).run("-p", "hello")
        collector.answer = hang
        phoenix = installed(tmp_path, f'otel_endpoint = "{collector.url}"\n')
        ran = await phoenix.run("-p", "hello")
        assert (ran.code, ran.out) == (plain.code, plain.out)
        collector.answer = None
        await phoenix.run("-p", "hello")
        assert len(collector.spans) == 4
        assert collector.twice == []


@pytest.mark.parametrize(("config", "requests"), [("", 0), ("otel = true\n", 1)])
async def test_a_variable_alone_switches_nothing_on(tmp_path: Path, config: str, requests: int) -> None:
    async with collect() as collector:
        phoenix = installed(
            tmp_path,
            config,
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
            OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20abc",
        )
        assert (await phoenix.run("-p", "hello")).code == 0
        assert len(collector.server.requests) == requests
        assert [seen.headers["authorization"] for seen in collector.server.requests] == ["Bearer abc"] * requests


async def test_a_projects_settings_cannot_name_a_collector(tmp_path: Path) -> None:
    async with collect() as collector:
        phoenix = phoenix_in(tmp_path)
        (phoenix.cwd / ".phoenix").mkdir()
        (phoenix.cwd / ".phoenix" / "config.toml").write_text(f'otel_endpoint = "{collector.url}"\n')
        ran = await phoenix.run("-p", "hello", "--trust")
        assert (ran.code, collector.server.connections) == (2, 0)
        assert "unknown key 'otel_endpoint'. A project can set permission_mode, " in ran.err


async def test_the_doctor_says_where_traces_go_and_what_waits(tmp_path: Path) -> None:
    async with collect() as collector:
        collector.answer = status_500
        address = collector.url.replace("http://", "http://user:key@")
        phoenix = installed(tmp_path, f'otel_endpoint = "{address}/x?key=key"\n')
        assert (await phoenix.run("-p", "hello")).code == 0
        found = (await phoenix.run("doctor")).out
        assert f"exported to {collector.url}, 1 run waiting" in found
        assert "key" not in next(line for line in found.splitlines() if "exported to" in line)


async def test_an_address_that_is_none_is_said_and_stops_nothing(tmp_path: Path) -> None:
    ran = await installed(tmp_path, 'otel_endpoint = "localhost:4318"\n').run("-p", "hello")
    assert ran.code == 0
    assert "otel_endpoint must be an address such as http://localhost:4318." in ran.err


DONE_REPLY = Reply((Text("done"),))
PROTOBUF = "application/x-protobuf"


def told(rejected: int, why: str = "") -> bytes:
    body: bytes = ExportTraceServiceResponse(
        partial_success=ExportTracePartialSuccess(rejected_spans=rejected, error_message=why)
    ).SerializeToString()
    return body


def answering(collector: FakeCollector, body: bytes, content_type: str = PROTOBUF) -> Answer:
    """Take the spans and answer with `body`."""

    async def answer(talk: Talk) -> None:
        collector.batches.append(decoded(talk.seen.body))
        await talk.begin(content_type)
        await talk.send(body)
        await talk.end()

    return answer


def doctor(database: Path) -> list[str]:
    settings = Settings({"otel_endpoint": "http://127.0.0.1:1", "otel": False, "otel_content": False}, {})
    return [found.text for found in export_findings(settings, {}, database)]


async def test_rejected_spans_are_counted_said_and_not_sent_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with exporting(tmp_path, DONE_REPLY, DONE_REPLY) as (harness, collector, exporter):
        collector.answer = answering(collector, told(1, "span too old"))
        await talk_to(harness, "one", "two")
        await drain(exporter)
        collector.answer = None
        await drain(exporter)
        assert (len(collector.spans), collector.twice) == (counted(harness.store.path), [])
        assert query(harness.store.path, "SELECT rejected, rejected_why FROM trace_export") == [(1, "span too old")]
        assert "the collector rejected 1 of 4 spans: span too old" in caplog.text
        assert doctor(harness.store.path)[1:] == [
            "the collector rejected 1 span, which are not sent again; last: span too old"
        ]


async def test_a_refused_request_counts_all_of_its_spans(tmp_path: Path) -> None:
    async def refuse(talk: Talk) -> None:
        await talk.plain(400, b"bad")

    async with exporting(tmp_path, DONE_REPLY) as (harness, collector, exporter):
        collector.answer = refuse
        await talk_to(harness, "one")
        await drain(exporter)
        assert query(harness.store.path, "SELECT rejected, rejected_why FROM trace_export") == [(2, "status 400")]


async def test_a_warning_without_rejected_spans_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with exporting(tmp_path, DONE_REPLY, DONE_REPLY) as (harness, collector, exporter):
        collector.answer = answering(collector, told(0, "use gzip"))
        for text in ("one", "two"):
            await talk_to(harness, text)
            await drain(exporter)
        assert caplog.text.count("use gzip") == 1
        assert query(harness.store.path, "SELECT rejected FROM trace_export") == [(0,)]
        assert len(doctor(harness.store.path)) == 1


@pytest.mark.parametrize(
    ("body", "content_type", "rejected"),
    [
        (told(1 << 62), PROTOBUF, 2),
        (told(-5), PROTOBUF, 0),
        (b"", PROTOBUF, 0),
        pytest.param(b"\xff" * 40_000, PROTOBUF, 0, id="no-protobuf"),
        (told(1)[:-1], PROTOBUF, 0),
        pytest.param(told(1) + b"\x00" * 70_000, PROTOBUF, 0, id="much-behind-it"),
        (b'{"partialSuccess":{"rejectedSpans":"1"}}', PROTOBUF, 0),
        (told(1), "text/html", 0),
    ],
)
async def test_any_answer_delivers_and_counts_at_most_what_was_sent(
    tmp_path: Path, body: bytes, content_type: str, rejected: int
) -> None:
    async with exporting(tmp_path, DONE_REPLY) as (harness, collector, exporter):
        collector.answer = answering(collector, body, content_type)
        await talk_to(harness, "one")
        await drain(exporter)
        assert (len(collector.spans), collector.twice) == (2, [])
        assert query(harness.store.path, "SELECT rejected FROM trace_export") == [(rejected,)]
        assert query(harness.store.path, "SELECT * FROM trace_queue") == []


def test_the_words_of_a_collector_are_clean_short_and_without_keys() -> None:
    words = "\x1b]0;x\x07bad key s3cr3t-of-the-user \n\n" + "why " * 9_000
    _, why = partial_success(told(1, words), ["s3cr3t-of-the-user"])
    assert "s3cr3t" not in why
    assert "\x1b" not in why
    assert "\n" not in why
    assert len(why) == LONGEST_REASON


async def test_the_doctor_reads_a_file_from_before_rejected_spans_were_counted(tmp_path: Path) -> None:
    async with engine_harness(tmp_path) as harness:
        query(harness.store.path, "ALTER TABLE trace_export DROP COLUMN rejected")
        assert doctor(harness.store.path) == ["exported to http://127.0.0.1:1, nothing waiting"]


DIES = """
import asyncio, os, signal, sys
from pathlib import Path
from engine.store import StorePaths, open_store
from phoenix_tui.telemetry.exporter import Collector
from phoenix_tui.telemetry.otlp import encode_spans
from phoenix_tui.telemetry.exporter import TraceExporter
from phoenix_tui.wiring.trace_export import CollectorClient

class Dying(CollectorClient):
    async def send(self, body):
        await super().send(body)
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    store = await open_store(StorePaths.under(Path(sys.argv[1])))
    sender = Dying(Collector(f"{sys.argv[2]}/v1/traces", {}, False))
    exporter = TraceExporter(store.trace_queue, sender, lambda one: encode_spans(one.spans, content=False, version="1"))
    await exporter.step()

asyncio.run(main())
"""


async def test_a_crash_behind_the_answer_repeats_the_same_ids(tmp_path: Path) -> None:
    async with exporting(tmp_path, DONE_REPLY, DONE_REPLY) as (harness, collector, exporter):
        await talk_to(harness, "one")
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", DIES, str(tmp_path), collector.url, cwd=ROOT)
        assert await child.wait() == -signal.SIGKILL
        await talk_to(harness, "two")
        await drain(exporter)
        first, second = collector.batches
        places = [(span.trace, span.id, span.parent, span.name, span.start, span.end) for span in first]
        again = [(span.trace, span.id, span.parent, span.name, span.start, span.end) for span in second]
        assert again[: len(places)] == places
        assert len({span.id for span in collector.spans}) == counted(harness.store.path)


async def test_an_aside_is_sent_once_with_its_answer(tmp_path: Path) -> None:
    async with exporting(tmp_path, DONE_REPLY, content=True) as (harness, collector, exporter):
        conversation = await harness.conversation()
        await conversation.say("go")
        await conversation.wait_idle()
        await conversation.side.ask("What was it?")
        await drain(exporter)
        assert (len(collector.spans), collector.twice) == (counted(harness.store.path), [])
        found: dict[str, Any] = next(
            span.attributes for span in collector.spans if span.attributes.get("phoenix.purpose") == "aside"
        )
        assert "aside" in found["gen_ai.output.messages"]
