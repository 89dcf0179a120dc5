"""Interface of stored traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from engine.records.traces import SpanContent, Trace, TraceSpan, TraceSummary


class Traces(Protocol):
    """The traces of runs (SPEC CLAW-80). Every method may raise StorageError."""

    async def of_run(self, run_id: str) -> Trace | None:
        """The tree of a run, its sub-agents included; None where there is no such run."""
        ...

    async def of_conversation(self, conversation_id: str, limit: int = 200) -> Sequence[TraceSummary]:
        """The newest runs of a conversation, newest first."""
        ...

    async def run_named(self, reference: str) -> str:
        """The one run whose id is `reference` or begins with it (eight characters); empty for none or several."""
        ...

    async def content(self, span: TraceSpan) -> SpanContent:
        """Stored input and output of a span of a trace."""
        ...
