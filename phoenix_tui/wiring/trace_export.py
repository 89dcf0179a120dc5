"""Opens the export of traces, where the user has switched it on."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from engine.providers.direct_transport import DirectTransport
from engine.providers.failures import retry_after_seconds
from engine.providers.http_transport import HttpResponse, HttpTransport, TransportError, is_straight
from engine.records.traces import TraceBatch
from engine.store.opening import BUSY_AT_OPENING, open_for_reading
from phoenix_tui.cli.names import VERSION
from phoenix_tui.config.settings import Settings
from phoenix_tui.features.service_interfaces import Finding, Health
from phoenix_tui.telemetry.exporter import (
    NO_PACKAGE,
    Collector,
    CollectorVerdict,
    SpanDelivery,
    TraceExporter,
    collector_of,
)
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.store.trace_export import TraceQueue


SECONDS: Final = 10.0
"""Seconds of one request, from the connection to the head of the answer."""
BODY_SECONDS: Final = 1.0
MOST_BODY: Final = 64 * 1024
"""Bytes of an answer that are read: for what it says, and so that its connection can be used again."""
TYPE: Final = "application/x-protobuf"
NEVER: Final = frozenset({400, 413, 415, 422})
"""Statuses by which a collector refuses these spans, not the request as such."""


async def open_trace_export(
    settings: Settings, environment: Mapping[str, str], queue: TraceQueue
) -> tuple[TraceExporter | None, str]:
    """Start the export; returns it, None while it is off, and a sentence where it is on and cannot work."""
    collector = collector_of(settings, environment)
    if collector is None or isinstance(collector, str):
        return None, collector or ""
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.proto") is None:
        return None, NO_PACKAGE
    exporter = TraceExporter(queue, CollectorClient(collector), _Encoder(collector.content))
    await exporter.start()
    return exporter, ""


def export_findings(settings: Settings, environment: Mapping[str, str], database: Path) -> list[Finding]:
    """Finding about the export and what waits for it; none while it is off."""
    collector = collector_of(settings, environment)
    if collector is None:
        return []
    if isinstance(collector, str):
        return [Finding("traces", Health.NOTE, collector)]
    try:
        with closing(open_for_reading(database, BUSY_AT_OPENING)) as connection:
            count = int(connection.execute("SELECT count(*) FROM trace_queue").fetchone()[0])
    except sqlite3.Error:  # it does not exist yet, or is reported with the database itself
        count = 0
    where = urlsplit(collector.url)  # the rest of an address may hold a key
    address = f"{where.scheme}://{where.hostname}{f':{where.port}' if where.port else ''}"
    waiting = f"{pluralize(count, 'run')} waiting" if count else "nothing waiting"
    found = Finding("traces", Health.OK, f"exported to {address}, {waiting}")
    return [found, *_find_rejected(database)]


def _find_rejected(database: Path) -> list[Finding]:
    """Finding about the spans that the collector did not take; none without any."""
    try:
        with closing(open_for_reading(database, BUSY_AT_OPENING)) as connection:
            row = connection.execute("SELECT rejected, rejected_why FROM trace_export WHERE rejected > 0").fetchone()
    except sqlite3.Error:  # also of a file from before they were counted
        return []
    if row is None:
        return []
    why = str(row["rejected_why"]) or "it named no reason"
    text = f"the collector rejected {pluralize(row['rejected'], 'span')}, which are not sent again; last: {why}"
    return [Finding("traces", Health.NOTE, text)]


class _Encoder:
    """Encodes in the caller's thread; loads protobuf with the first batch."""

    def __init__(self, content: bool) -> None:
        self._content = content

    def __call__(self, batch: TraceBatch) -> bytes:
        module = import_module("phoenix_tui.telemetry.otlp")
        body: bytes = module.encode_spans(batch.spans, content=self._content, version=VERSION)
        return body


class CollectorClient:
    """Speaks OTLP/HTTP to one collector, by the transports of the providers; no redirect is followed."""

    def __init__(self, collector: Collector, seconds: float = SECONDS) -> None:
        self._collector = collector
        self._seconds = seconds
        self._transport: HttpTransport | None = None

    async def send(self, body: bytes) -> SpanDelivery:
        """Deliver one request."""
        headers = {**self._collector.headers, "content-type": TYPE}
        try:
            async with asyncio.timeout(self._seconds):
                if self._transport is None:
                    self._transport = await _transport(self._collector.url)
                transport = self._transport
                async with transport.ask("POST", self._collector.url, headers, body) as answer:
                    body = await _body(answer)
                    return await self._delivery(answer, body)
        except TimeoutError:
            return SpanDelivery(CollectorVerdict.LATER, f"no answer within {self._seconds:g} s")
        except (TransportError, OSError) as error:
            return SpanDelivery(CollectorVerdict.LATER, type(error).__name__)

    async def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            await self._transport.close()

    async def _delivery(self, answer: HttpResponse, body: bytes) -> SpanDelivery:
        status = answer.status
        if not 200 <= status < 300:
            wait = retry_after_seconds(answer.headers.get("retry-after", ""))
            return SpanDelivery(
                CollectorVerdict.REFUSED if status in NEVER else CollectorVerdict.LATER, f"status {status}", wait
            )
        if not body or not answer.headers.get("content-type", "").startswith(TYPE):
            return SpanDelivery(CollectorVerdict.DELIVERED)
        module = await asyncio.to_thread(import_module, "phoenix_tui.telemetry.otlp")
        rejected, why = module.partial_success(body, self._collector.headers.values())
        return SpanDelivery(CollectorVerdict.DELIVERED, why, rejected=rejected)


async def _transport(url: str) -> HttpTransport:
    if is_straight(url):
        return DirectTransport(url, SECONDS)
    module = await asyncio.to_thread(import_module, "engine.providers.httpx_transport")
    transport: HttpTransport = module.HttpxTransport(url, SECONDS)
    return transport


async def _body(answer: HttpResponse) -> bytes:
    """The rest of an answer, if it is short; empty for one that comes slowly, breaks off or has no end."""
    read = bytearray()
    with suppress(TimeoutError, TransportError):
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in answer.pieces():
                read += piece
                if len(read) > MOST_BODY:
                    return b""
            return bytes(read)
    return b""
