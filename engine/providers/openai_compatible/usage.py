"""Token counts as OpenAI, DeepSeek and gateways to Claude write them. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from engine.machine.messages import Usage
from engine.providers.bounds import tokens

MOST_COST: Final = 10_000.0
"""US dollars of one reply beyond which a statement is an error."""


class WireCached(msgspec.Struct, gc=False):
    """Cached tokens of the prompt as OpenAI reports them, and tokens written to a cache by gateways to Claude."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    """OpenRouter's name for it, and LiteLLM's."""
    cache_creation_tokens: int | None = None
    """Field of an older LiteLLM."""


class WireCostDetails(msgspec.Struct, gc=False):
    """Parts of a cost as OpenRouter reports them."""

    upstream_inference_cost: float | None = None


class ChatUsage(msgspec.Struct, gc=False):
    """Token counts; the prompt includes cached tokens."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: WireCached | None = None
    prompt_cache_hit_tokens: int | None = None
    """DeepSeek's name for cached tokens."""
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    """Claude's names, where a gateway keeps them."""
    cost: float | None = None
    """Charge of the service in US dollars (OpenRouter)."""
    is_byok: bool | None = None
    """True when the user's own key of another service was used: its charge is `upstream_inference_cost`."""
    cost_details: WireCostDetails | None = None


def counted(usage: ChatUsage) -> Usage:
    """The counts with the prompt divided: it includes tokens read from a cache and written to one."""
    details = usage.prompt_tokens_details or WireCached()
    read = tokens(details.cached_tokens or usage.prompt_cache_hit_tokens or usage.cache_read_input_tokens)
    written = tokens(details.cache_write_tokens or details.cache_creation_tokens or usage.cache_creation_input_tokens)
    return Usage(
        input_tokens=tokens((usage.prompt_tokens or 0) - read - written),
        output_tokens=tokens(usage.completion_tokens),
        cache_creation_tokens=written,
        cache_read_tokens=read,
    )


def charged(usage: ChatUsage) -> float | None:
    """US dollars that the service charges for the reply by its own statement; None where it makes none."""
    parts = [usage.cost]
    if usage.is_byok and usage.cost_details is not None:
        parts.append(usage.cost_details.upstream_inference_cost)
    told = [part for part in parts if part is not None]
    return sum(told) if told and all(0 <= part <= MOST_COST for part in told) else None
