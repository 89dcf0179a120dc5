"""The export in the background: the collector's address, and the delivery of ended spans, each batch once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final, Protocol
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from engine.ports import StorageError
from engine.records.traces import RejectedSpans, TraceBatch
from phoenix_tui.config.settings import Settings
from tools.known_secrets import SecretFields

if TYPE_CHECKING:
    from engine.store.trace_export import TraceQueue


log = logging.getLogger(__name__)

BATCH: Final = 512
"""Spans of one request; at most about 1 MB with content."""
LOOK: Final = 2.0
"""Seconds between two looks at the queue."""
FIRST_WAIT: Final = 1.0
MOST_WAIT: Final = 300.0
"""Seconds between two tries while the collector does not take anything: doubled each time, up to this."""
LAST_SECONDS: Final = 1.5
"""Seconds that the end of Phoenix gives to what is still queued."""


class CollectorVerdict(Enum):
    """Answers of a collector."""

    DELIVERED = 1
    LATER = 2
    """The spans cannot be taken now."""
    REFUSED = 3
    """The request will never be taken: another try is of no use."""


class SpanDelivery(Struct, frozen=True):
    """Result of one request."""

    verdict: CollectorVerdict
    why: str = ""
    wait: float = 0.0
    """Seconds that the collector asks to wait; 0: it named none."""
    rejected: int = 0
    """Spans of a delivered request that the collector did not take, as it counts them; `why` has its words."""


class Sender(Protocol):
    """Sends one request to the collector."""

    async def send(self, body: bytes) -> SpanDelivery:
        """Deliver it, within a bounded time. Never raises for what a collector does."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


class TraceExporter:
    """Runs until closed; a collector that is down costs a request now and then, and loses nothing."""

    def __init__(self, queue: TraceQueue, sender: Sender, encode: Callable[[TraceBatch], bytes]) -> None:
        self._queue = queue
        self._sender = sender
        self._encode = encode
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._wait = 0.0
        """Seconds of the last pause after a failure; 0 while it works."""
        self._warned = ""
        """The newest warning of the collector, which is logged once."""

    async def start(self) -> None:
        """Queue what ends from now on, and begin to deliver it in the background."""
        try:
            await self._queue.open()
        except StorageError as error:
            log.warning("traces are not exported, their queue cannot be opened: %s", error)
            return
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Deliver what is queued, at most for `LAST_SECONDS`, and end; the rest waits for the next start."""
        self._closing.set()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=LAST_SECONDS)
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self._sender.close()

    async def _run(self) -> None:
        """Deliver what ends, until closing finds nothing more, or a collector that takes nothing."""
        while not (self._closing.is_set() and self._wait):
            pause = await self.step()
            if pause and self._closing.is_set():
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._closing.wait()

    async def step(self) -> float:
        """Deliver one batch, if there is one; returns the seconds until the next step."""
        try:
            if not await self._queue.waiting():
                return LOOK
            batch = await self._queue.claim(BATCH)
            return LOOK if batch is None else await self._deliver(batch)
        except StorageError as error:
            log.warning("the queue of traces cannot be read: %s", error)
            return self._lengthen_wait(0.0)

    async def _deliver(self, batch: TraceBatch) -> float:
        """Send a claimed batch; the claim ends in any case."""
        settled = False
        try:
            delivery = await self._send(batch)
            if delivery.verdict is not CollectorVerdict.LATER:
                await self._queue.settle(batch, _count_rejected(delivery, len(batch.spans)))
                settled = True
        finally:
            if not settled:
                with suppress(StorageError):
                    await self._queue.give_back()
        return self._settle_delivery(delivery, len(batch.spans))

    async def _send(self, batch: TraceBatch) -> SpanDelivery:
        if not batch.spans:  # their conversation was removed
            return SpanDelivery(CollectorVerdict.DELIVERED)
        try:
            body = await asyncio.to_thread(self._encode, batch)
        except ValueError:  # a number that protobuf cannot hold
            return SpanDelivery(CollectorVerdict.REFUSED, "they cannot be encoded")
        return await self._sender.send(body)

    def _settle_delivery(self, delivery: SpanDelivery, count: int) -> float:
        match delivery.verdict:
            case CollectorVerdict.DELIVERED:
                if self._wait:
                    log.info("the collector takes traces again")
                self._say_answer(_count_rejected(delivery, count), count, delivery.why)
            case CollectorVerdict.REFUSED:
                log.warning("the collector refused %d spans for good: %s", count, delivery.why)
            case CollectorVerdict.LATER:
                if not self._wait:
                    log.warning("traces wait, the collector does not take them: %s", delivery.why)
                return self._lengthen_wait(delivery.wait)
        self._wait = 0.0
        return 0.0

    def _say_answer(self, rejected: RejectedSpans, count: int, why: str) -> None:
        """Log what the answer to a delivered request says."""
        if rejected.count:
            log.warning("the collector rejected %d of %d spans: %s", rejected.count, count, why or "it named no reason")
        elif why and why != self._warned:
            log.warning("the collector took all spans and warns: %s", why)
        self._warned = why

    def _lengthen_wait(self, asked: float) -> float:
        self._wait = min(max(self._wait * 2, FIRST_WAIT), MOST_WAIT)
        return min(max(self._wait, asked), MOST_WAIT)


def _count_rejected(delivery: SpanDelivery, count: int) -> RejectedSpans:
    """Spans of `count` that are lost; a collector may claim any number."""
    if delivery.verdict is CollectorVerdict.REFUSED:
        return RejectedSpans(count, delivery.why)
    return RejectedSpans(min(max(delivery.rejected, 0), count), delivery.why)


PATH: Final = "/v1/traces"
TRACES: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
BASE: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
HEADERS: Final = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
NO_ADDRESS: Final = f"Traces are not exported: set otel_endpoint in config.toml, or {BASE}."
NO_PACKAGE: Final = "Traces are not exported: install phoenix-tui[otel]."


class Collector(SecretFields, Struct, frozen=True):
    """One OTLP/HTTP receiver."""

    HIDDEN: ClassVar[frozenset[str]] = frozenset({"headers", "url"})

    url: str
    headers: Mapping[str, str]
    content: bool
    """True when prompts, inputs and outputs are sent too."""


def collector_of(settings: Settings, environment: Mapping[str, str]) -> Collector | str | None:
    """The collector; None while the export is off, a sentence where it cannot work.

    `otel_endpoint` switches it on by itself; a variable alone does not, since it may be meant for other programs.
    """
    chosen = settings.text("otel_endpoint").strip()
    if not chosen and not settings.flag("otel"):
        return None
    given = environment.get(TRACES, "").strip()
    base = environment.get(BASE, "").strip()
    address = _add_path(chosen) if chosen else given or (_add_path(base) if base else "")
    if not address:
        return NO_ADDRESS
    if not _is_address(address):
        source = "otel_endpoint" if chosen else TRACES if given else BASE
        return f"Traces are not exported: {source} must be an address such as http://localhost:4318."
    # A key for the address of the variables is for no other address.
    headers = {} if chosen and (given or base) else _read_headers(environment)
    return Collector(address, headers, settings.flag("otel_content"))


def _add_path(base: str) -> str:
    address, mark, query = base.partition("?")
    address = address.rstrip("/")
    return f"{address if address.endswith(PATH) else address + PATH}{mark}{query}"


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not any(c.isspace() for c in text)


def _read_headers(environment: Mapping[str, str]) -> dict[str, str]:
    """Headers as OpenTelemetry writes them: name=value pairs, percent-encoded, between commas."""
    found: dict[str, str] = {}
    for variable in HEADERS:
        for pair in environment.get(variable, "").split(","):
            name, separator, value = pair.partition("=")
            if separator and name.strip():
                found[name.strip().lower()] = unquote(value.strip())
    return found
