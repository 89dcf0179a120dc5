"""An OpenTelemetry collector on loopback: decodes what it takes and counts every span."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.support.loopback import Answer, Loopback, Talk, serve


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    """One span as it was decoded."""

    trace: str
    id: str
    parent: str
    name: str
    start: int
    end: int
    failed: bool
    message: str
    attributes: dict[str, Any]


@dataclass(slots=True)
class FakeCollector:
    """Spans it took, request by request; `answer` replaces taking while it is set."""

    server: Loopback
    batches: list[list[ReceivedSpan]] = field(default_factory=list[list[ReceivedSpan]])
    resources: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    answer: Answer | None = None

    @property
    def url(self) -> str:
        """Base address."""
        return self.server.url

    @property
    def spans(self) -> list[ReceivedSpan]:
        """Every span it took."""
        return [span for batch in self.batches for span in batch]

    @property
    def twice(self) -> list[str]:
        """Ids of spans that were taken more than once."""
        return [name for name, count in Counter(span.id for span in self.spans).items() if count > 1]


@contextlib.asynccontextmanager
async def collect() -> AsyncGenerator[FakeCollector]:
    """Run a collector."""
    found: list[FakeCollector] = []

    async def answer(talk: Talk) -> None:
        await (found[0].answer or _take)(talk)

    async def _take(talk: Talk) -> None:
        assert (talk.seen.method, talk.seen.path) == ("POST", "/v1/traces")
        assert talk.seen.headers["content-type"] == "application/x-protobuf"
        found[0].batches.append(decoded(talk.seen.body, found[0].resources))
        await talk.plain(200, ExportTraceServiceResponse().SerializeToString())

    async with serve(answer) as server:
        found.append(FakeCollector(server))
        yield found[0]


def decoded(body: bytes, resources: list[dict[str, Any]] | None = None) -> list[ReceivedSpan]:
    """The spans of a request."""
    request = ExportTraceServiceRequest.FromString(body)
    spans: list[ReceivedSpan] = []
    for resource in request.resource_spans:
        if resources is not None:
            resources.append(_attributes(resource.resource.attributes))
        for one in (span for scope in resource.scope_spans for span in scope.spans):
            spans.append(
                ReceivedSpan(
                    one.trace_id.hex(),
                    one.span_id.hex(),
                    one.parent_span_id.hex(),
                    one.name,
                    one.start_time_unix_nano,
                    one.end_time_unix_nano,
                    one.status.code == 2,
                    one.status.message,
                    _attributes(one.attributes),
                )
            )
    return spans


def _attributes(pairs: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in pairs}
