"""Runs, their model calls and sums, the turns of a conversation, and sums over many conversations."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from engine.machine.effects import Strategy
from engine.machine.messages import Usage


class ModelUsage(Struct, frozen=True):
    """Usage of one model; `cost_usd` is None where a price is unknown."""

    model: str
    usage: Usage
    cost_usd: float | None
    requests: int


class RunAgents(Struct, frozen=True):
    """Results of a run's sub-agents in their own runs; not part of the run's own figures."""

    count: int
    succeeded: int
    tokens: int
    """Read and written, those of a cache too."""
    cost_usd: float | None
    artifacts: tuple[str, ...] = ()


class RunRecord(Struct, frozen=True):
    """One run."""

    id: str
    type: str
    """Kind of run: general, or the purpose of its agent (SPEC SDK-07)."""
    prompt: str
    """The beginning of the message that began it."""
    strategy: Strategy
    decision_json: str
    """Decision of the supervisor; empty where none was asked."""
    status: str
    error: str
    artifacts: tuple[str, ...]
    """Files that edits of the run wrote."""
    usage: Usage
    by_model: tuple[ModelUsage, ...]
    cost_usd: float | None
    iterations: int
    """Model calls."""
    started_at: float
    seconds: float
    """0 while it runs."""
    agents: RunAgents | None = None


def total_cost(*costs: float | None) -> float | None:
    """Sum of all costs; unknown if one is."""
    known = [one for one in costs if one is not None]
    return sum(known) if len(known) == len(costs) else None


class Totals(Struct, frozen=True):
    """Usage of a conversation so far; `cost_usd` is None once a price was unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_tokens: int = 0
    cost_usd: float | None = 0.0

    @classmethod
    def of(cls, used: Usage, cost_usd: float | None) -> Totals:
        """Totals of one model call."""
        return cls(used.input_tokens, used.output_tokens, used.cache_creation_tokens, used.cache_read_tokens, cost_usd)

    @property
    def tokens(self) -> int:
        """Every token read and written, those of a cache too."""
        return self.input_tokens + self.output_tokens + self.cache_creation_tokens + self.cache_read_tokens

    def plus(self, other: Totals) -> Totals:
        """Sum of both."""
        return Totals(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_creation_tokens=self.cache_creation_tokens + other.cache_creation_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cost_usd=total_cost(self.cost_usd, other.cost_usd),
        )


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


class TurnSummary(Struct, frozen=True):
    """One prompt and its effects."""

    seq: int
    words: str
    """First line, cut."""
    created_at: float
    tools: tuple[tuple[str, int], ...] = ()
    """Tool and number of its calls, the most called first."""
    failed: int = 0
    """Calls that ended in an error."""
    files: tuple[str, ...] = ()
    """Paths that edits changed, in order."""
    seconds: float = 0.0
    cost_usd: float | None = None
    """Cost of the turn; None where a price is unknown or nothing ran."""
    summary: str = ""
    """A model's, in a sentence or two; empty where none was made."""


class TurnDigest(Struct, frozen=True):
    """The newest turn, cut to the input of its summary."""

    number: int
    asked: str
    answered: str
    """Last text of the turn; empty without one."""
    tools: tuple[tuple[str, int], ...] = ()
    files: tuple[str, ...] = ()


class TurnNote(Struct, frozen=True):
    """A summary for one turn."""

    number: int
    text: str


class StatisticsGroup(StrEnum):
    """Common property of the calls of one row."""

    DAY = "day"
    """Day in the local time zone, as 2026-11-25."""
    MODEL = "model"
    """PROVIDER/MODEL."""
    FOLDER = "folder"
    """Working directory of the conversation."""
    CONVERSATION = "conversation"
    """Id of the user's conversation; its sub-agents' calls count in it."""
    AGENT = "agent"
    """Profile of a sub-agent; calls of other conversations are left out."""
    PURPOSE = "purpose"


class StatisticsQuery(Struct, frozen=True):
    """Request for sums, all of one state of the database."""

    groups: tuple[StatisticsGroup, ...] = ()
    tools: bool = False
    """True to sum tool calls by name too."""
    since: float = 0.0
    """Unix time; calls that began earlier are left out, 0: none are."""


class CallGroup(Struct, frozen=True):
    """The model calls of one day, model or the like, together; those of forks' copied runs are in their source."""

    key: str = ""
    label: str = ""
    """Title of the conversation; empty in other groups."""
    totals: Totals = Totals()
    """Sum of all calls; its cost is None where the price of one is unknown."""
    known_cost_usd: float = 0.0
    """Cost of the calls whose price is known."""
    agents_cost_usd: float | None = 0.0
    """Part of the cost that sub-agents caused; None where one of their prices is unknown."""
    calls: int = 0
    """Number of calls, including those that failed or were stopped."""
    failed: int = 0
    cancelled: int = 0
    retries: int = 0
    """Number of `calls` that repeated a failed one."""
    estimated: int = 0
    """Number of `calls` whose server counted no tokens, or not to the end."""
    unpriced: int = 0
    """Number of `calls` whose price is unknown."""
    conversations: int = 0
    """Number of conversations that made them, each sub-agent counted as one."""
    duration_ms: int = 0

    def plus(self, other: CallGroup) -> CallGroup:
        """Sum of both, under the key of this one; no conversation may be in both."""
        return CallGroup(
            self.key,
            self.label,
            self.totals.plus(other.totals),
            self.known_cost_usd + other.known_cost_usd,
            total_cost(self.agents_cost_usd, other.agents_cost_usd),
            self.calls + other.calls,
            self.failed + other.failed,
            self.cancelled + other.cancelled,
            self.retries + other.retries,
            self.estimated + other.estimated,
            self.unpriced + other.unpriced,
            self.conversations + other.conversations,
            self.duration_ms + other.duration_ms,
        )


class ToolGroup(Struct, frozen=True):
    """The ended calls of one tool; a fork's copied calls count in their source."""

    name: str
    calls: int
    failed: int
    stopped: int
    """Number of `calls` that were cancelled, skipped or interrupted."""
    duration_ms: int
    """Time they ran, without waits for an answer of the user."""
    result_bytes: int
    """Bytes of their results as text, which the model reads as tokens of later requests."""


class Statistics(Struct, frozen=True):
    """Answer to a query; days in their order, everything else by the most tokens or calls first."""

    total: CallGroup = CallGroup()
    groups: Mapping[StatisticsGroup, tuple[CallGroup, ...]] = field(
        default_factory=dict[StatisticsGroup, tuple[CallGroup, ...]]
    )
    tools: tuple[ToolGroup, ...] = ()


class Spent(Struct, frozen=True):
    """Cost of model calls, as far as their prices are known."""

    known_usd: float = 0.0
    unpriced: int = 0
    """Number of calls whose price is unknown."""

    def plus(self, other: Spent) -> Spent:
        """Sum of both."""
        return Spent(self.known_usd + other.known_usd, self.unpriced + other.unpriced)


class CallMark(Struct, frozen=True):
    """The newest call that a sum has; rows of calls are only ever added, or removed with their conversation."""

    row: int = 0
    id: str = ""


class Spending(Struct, frozen=True):
    """Sums of calls, or of those after a mark."""

    mark: CallMark
    whole: bool
    """True when it is no addition: the first answer, and where the call of the mark was removed."""
    day: Spent = Spent()
    folders: Mapping[str, Spent] = field(default_factory=dict[str, Spent])
    """Sums by working directory, all time."""
