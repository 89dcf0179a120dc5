"""Answers of a collector about spans that it did not take; a crash behind an answer repeats the same ids."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from phoenix_tui.config.settings import Settings
from phoenix_tui.telemetry.otlp import LONGEST_REASON, partial_success
from phoenix_tui.wiring.trace_export import export_findings
from tests.phoenix_tui.telemetry.test_trace_export import counted, drain, exporting, talk_to
from tests.support.cli import ROOT
from tests.support.collector import FakeCollector, decoded
from tests.support.engine import engine_harness
from tests.support.loopback import Answer, Talk
from tests.support.scripted_provider import Reply, Text
from tests.support.storage import query

DONE = Reply((Text("done"),))
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
    async with exporting(tmp_path, DONE, DONE) as (harness, collector, exporter):
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

    async with exporting(tmp_path, DONE) as (harness, collector, exporter):
        collector.answer = refuse
        await talk_to(harness, "one")
        await drain(exporter)
        assert query(harness.store.path, "SELECT rejected, rejected_why FROM trace_export") == [(2, "status 400")]


async def test_a_warning_without_rejected_spans_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with exporting(tmp_path, DONE, DONE) as (harness, collector, exporter):
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
    async with exporting(tmp_path, DONE) as (harness, collector, exporter):
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
    async with exporting(tmp_path, DONE, DONE) as (harness, collector, exporter):
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
    async with exporting(tmp_path, DONE, content=True) as (harness, collector, exporter):
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
