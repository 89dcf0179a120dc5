"""One call of a model as it is recorded: the source of every sum of tokens and cost (docs/decisions/accounting.md)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from engine.machine.messages import Usage
from engine.records.totals import Totals

PREVIEW: Final = 500
"""Characters of an answer or an output that its record keeps (SPEC CLAW-81)."""
INPUT_PREVIEW: Final = 50_000
"""Characters of an input that its span keeps when verbose (SPEC CLAW-81)."""


class CallPurpose(StrEnum):
    """Purposes of model calls."""

    REPLY = "reply"
    COMPACTION = "compaction"
    MEMORY = "memory"
    """Notes written before a compaction."""
    ROUTING = "routing"
    TITLE = "title"
    TURN_SUMMARY = "turn_summary"
    SUGGESTION = "suggestion"
    ASIDE = "aside"
    TRACKING = "tracking"
    """Tasks of the task board, found in messages."""
    WEB_SEARCH = "web_search"
    """Search of the web by the provider's server."""
    WEB_PAGE = "web_page"
    """Answer about a fetched page."""
    SAMPLING = "sampling"
    """Answer to a sampling request of an MCP server."""
    EARLIER = "earlier"
    """Usage of a conversation before its calls were recorded, in one row."""


class CallStatus(StrEnum):
    """Outcomes of a call."""

    OK = "ok"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ModelCall(Struct, frozen=True):
    """A call that has ended; `cost_usd` is None where the price is unknown."""

    id: str
    purpose: CallPurpose
    status: CallStatus
    provider: str
    model: str
    """Name from the server, else the one in the request."""
    usage: Usage = Usage()
    """Usage from the server, up to the end of the call."""
    estimated: bool = False
    """True when the server counted nothing, or not to the end."""
    cost_usd: float | None = 0.0
    run_id: str = ""
    """Run of the call; empty for calls beside runs."""
    message_id: str = ""
    """The message it became; empty where it became none."""
    iteration: int = 0
    attempt: int = 0
    """Number of the attempt, from 1 on for retries."""
    started_at: float = 0.0
    duration_ms: int = 0
    error: str = ""
    """The kind of failure; empty where there was none."""
    preview: str = ""
    """Beginning of the answer."""
    input_preview: str = ""
    """The request as JSON, cut; empty unless verbose."""
    stop: str = ""
    """Stop reason of the reply, as in the Messages API; empty without one, and in calls read from the database."""


class CallSum(Struct, frozen=True):
    """The calls of a conversation for one purpose, together."""

    purpose: CallPurpose
    totals: Totals
    calls: int
    """Number of calls, including those that failed or were stopped."""
    failed: int = 0
    cancelled: int = 0
    retries: int = 0
    """Number of `calls` that repeated a failed one."""
    estimated: int = 0
    """Number of `calls` whose server counted no tokens, or not to the end."""
    web_searches: int = 0
    """Searches of the web that servers made in `calls`."""
