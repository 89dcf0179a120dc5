"""Requests and answers of OTLP. Imported once something is to be sent: protobuf takes 60 ms to load."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it has no types of its own
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from engine.records.traces import ExportSpan, SpanKind, SpanStatus, TraceSpan
from tools.clean import clean_line
from tools.redaction import redact
from tools.wording import one_line

NAME: Final = "phoenix"
OPERATIONS: Final = {
    SpanKind.AGENT: "invoke_agent",
    SpanKind.LLM: "chat",
    SpanKind.ASIDE: "chat",
    SpanKind.TOOL: "execute_tool",
}
Attribute = str | int | float | bool


def encode_spans(spans: Iterable[ExportSpan], *, content: bool, version: str) -> bytes:
    """A request for these spans; prompts, inputs, outputs and texts of errors only with `content`."""
    resource = Resource(attributes=_attributes({"service.name": NAME, "service.version": version}))
    scope = ScopeSpans(
        scope=InstrumentationScope(name=NAME, version=version),
        spans=[_span(span, content=content) for span in spans],
    )
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(resource=resource, scope_spans=[scope])])
    body: bytes = request.SerializeToString()
    return body


def make_trace_id(key: str) -> bytes:
    """16 bytes: the id of the run at the top where that is a UUID, else a digest of it."""
    try:
        found = UUID(key).bytes
    except ValueError:
        found = b""
    return found if any(found) else hashlib.sha256(f"phoenix trace {key}".encode()).digest()[:16]


def make_span_id(key: str) -> bytes:
    """8 bytes, the same for the same row in every process."""
    return hashlib.sha256(f"phoenix span {key}".encode()).digest()[:8]


def _span(one: ExportSpan, *, content: bool) -> Span:
    span = one.span
    operation = OPERATIONS[span.kind]
    subject = {SpanKind.AGENT: one.agent_name, SpanKind.TOOL: span.name}.get(span.kind, span.model)
    begin = max(round(span.started_at * 1e9), 0)
    failed = span.status is SpanStatus.ERROR
    attributes: dict[str, Attribute] = {
        "gen_ai.operation.name": operation,
        "gen_ai.conversation.id": span.conversation_id,
    }
    facts = _facts(one) | _content(one) if content else _facts(one)
    return Span(
        trace_id=make_trace_id(one.trace_key),
        span_id=make_span_id(one.key),
        parent_span_id=make_span_id(one.parent_key) if one.parent_key else b"",
        name=f"{operation} {subject}".rstrip(),
        kind=Span.SPAN_KIND_CLIENT if operation == "chat" else Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=begin,
        end_time_unix_nano=begin + max(round(span.seconds * 1e9), 0),
        attributes=_attributes(attributes | facts),
        status=Status(
            code=Status.STATUS_CODE_ERROR if failed else Status.STATUS_CODE_UNSET,
            message=span.error if failed and (content or span.kind is not SpanKind.TOOL) else "",
        ),
    )


def _facts(one: ExportSpan) -> dict[str, Attribute]:
    span = one.span
    facts: dict[str, Attribute] = {"phoenix.span.kind": span.kind.value, "phoenix.outcome": span.outcome}
    if span.status is not SpanStatus.OK:
        is_call = span.kind in {SpanKind.LLM, SpanKind.ASIDE}
        facts["error.type"] = (span.error if is_call else "") or span.outcome
    match span.kind:
        case SpanKind.AGENT:
            facts |= {"gen_ai.agent.name": one.agent_name, "phoenix.run.id": span.run_id}
        case SpanKind.TOOL:
            facts |= {"gen_ai.tool.name": span.name, "gen_ai.tool.type": "function"}
            if span.tool_use_id:
                facts["gen_ai.tool.call.id"] = span.tool_use_id
        case SpanKind.LLM | SpanKind.ASIDE:
            facts |= _figures(span)
    if span.provider:
        facts["gen_ai.provider.name"] = span.provider
    return facts


def _figures(span: TraceSpan) -> dict[str, Attribute]:
    """Model, tokens and cost of a call; the convention counts cached tokens among those of the input."""
    facts: dict[str, Attribute] = {"gen_ai.request.model": span.model, "phoenix.attempt": span.attempt}
    if span.purpose:
        facts["phoenix.purpose"] = span.purpose
    if span.usage is not None:
        used = span.usage
        facts |= {
            "gen_ai.usage.input_tokens": used.input_tokens + used.cache_read_tokens + used.cache_creation_tokens,
            "gen_ai.usage.output_tokens": used.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": used.cache_read_tokens,
            "gen_ai.usage.cache_creation.input_tokens": used.cache_creation_tokens,
            "phoenix.usage.estimated": span.estimated,
        }
        if used.web_searches:
            facts["phoenix.web_searches"] = used.web_searches
    if span.cost_usd is not None:
        facts["phoenix.cost_usd"] = span.cost_usd
    return facts


def _content(one: ExportSpan) -> dict[str, Attribute]:
    span = one.span
    match span.kind:
        case SpanKind.TOOL:
            return {"gen_ai.tool.call.arguments": one.input, "gen_ai.tool.call.result": span.output}
        case SpanKind.AGENT:
            return {"gen_ai.input.messages": _messages("user", one.input)}
        case SpanKind.LLM | SpanKind.ASIDE:
            return {"gen_ai.output.messages": _messages("assistant", span.output)}


def _messages(role: str, text: str) -> str:
    return msgspec.json.encode([{"role": role, "parts": [{"type": "text", "content": text}]}]).decode()


def _attributes(values: Mapping[str, Attribute]) -> Sequence[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in values.items()]


def _value(value: Attribute) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=value)


LONGEST_REASON: Final = 200
"""Characters of a collector's words that are kept."""
READ_OF_REASON: Final = 4_000
"""Characters of them that are looked at."""


def partial_success(body: bytes, secrets: Iterable[str]) -> tuple[int, str]:
    """Number of rejected spans and the collector's words, without `secrets`; (0, "") for a body that is no answer.

    Words without rejected spans are a warning (OTLP specification 1.3, "Partial Success").
    """
    try:
        told = ExportTraceServiceResponse.FromString(body).partial_success
    except DecodeError:
        return 0, ""
    words = clean_line(told.error_message[:READ_OF_REASON])
    return told.rejected_spans, one_line(redact(words, secrets), LONGEST_REASON)
