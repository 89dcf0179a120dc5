"""Usage and cost of a conversation's model calls, in words: one line for each purpose of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.records.model_calls import CallPurpose, CallSum
from phoenix_tui.text.labels import money, tokens
from tools.wording import counted

PURPOSES: Final = {
    CallPurpose.REPLY: "replies",
    CallPurpose.COMPACTION: "summaries of older messages",
    CallPurpose.MEMORY: "notes before summaries",
    CallPurpose.ROUTING: "routing",
    CallPurpose.TITLE: "titles",
    CallPurpose.TURN_SUMMARY: "turn summaries",
    CallPurpose.SUGGESTION: "suggested messages",
    CallPurpose.ASIDE: "side questions (/btw)",
    CallPurpose.TRACKING: "task board",
    CallPurpose.WEB_SEARCH: "web searches",
    CallPurpose.WEB_PAGE: "answers about web pages",
    CallPurpose.SAMPLING: "MCP sampling",
    CallPurpose.EARLIER: "before calls were recorded separately",
}


def call_lines(sums: Sequence[CallSum]) -> list[str]:
    """A line for each purpose, and one about incomplete counts; nothing without calls."""
    lines = [_line(one) for one in sums]
    estimated = sum(one.estimated for one in sums)
    if estimated:
        told = (
            "was stopped or failed before the server reported" if estimated == 1 else "ended before the server reported"
        )
        lines.append(f"{counted(estimated, 'call')} {told} all tokens; the known part is counted.")
    return lines


def _line(one: CallSum) -> str:
    used = one.totals
    cached = used.cache_creation_tokens + used.cache_read_tokens
    facts = [
        f"{tokens(used.input_tokens)} in",
        f"{tokens(used.output_tokens)} out",
        *([f"{tokens(cached)} cached"] if cached else []),
        *([counted(one.web_searches, "search", "searches")] if one.web_searches else []),
        "price unknown" if used.cost_usd is None else money(used.cost_usd) or "$0.00",
    ]
    if one.purpose is CallPurpose.EARLIER:
        return f"{PURPOSES[one.purpose]}: {', '.join(facts)}"
    return f"{PURPOSES[one.purpose]}: {counted(one.calls, 'call')}{_apart(one)}, {', '.join(facts)}"


def _apart(one: CallSum) -> str:
    """The calls that ended otherwise than with an answer, or were retried."""
    kinds = {"failed": one.failed, "stopped": one.cancelled, "retried": one.retries}
    said = ", ".join(f"{number} {kind}" for kind, number in kinds.items() if number)
    return f" ({said})" if said else ""
