"""The answer of a collector, as OTLP defines it. Imported with the first answer: protobuf takes 60 ms to load."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it has no types of its own
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from tools.clean import clean_line
from tools.redaction import redacted
from tools.wording import one_line

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
    return told.rejected_spans, one_line(redacted(words, secrets), LONGEST_REASON)
