"""Token counts as OpenAI, DeepSeek and gateways to Claude write them. Pure."""

from __future__ import annotations

import msgspec

from engine.machine.messages import Usage
from engine.providers.bounds import tokens


class WireCached(msgspec.Struct, gc=False):
    """Cached tokens of the prompt as OpenAI reports them, and tokens written to a cache by gateways to Claude."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    """OpenRouter's name for it, and LiteLLM's."""
    cache_creation_tokens: int | None = None
    """Field of an older LiteLLM."""


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
