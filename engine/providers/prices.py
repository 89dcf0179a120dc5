"""Cost of a reply. Unknown is None, never an estimate."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import Iterator
from threading import Event

from msgspec import Struct
from msgspec.structs import replace

from engine.machine.messages import Usage
from engine.ports import ModelInfo
from engine.providers.hosting import HOSTS, host_of, runs_free
from engine.providers.names import bare_name

PER_MILLION = 1_000_000
SEARCH = 0.01
"""US dollars of one search by Anthropic's server (platform.claude.com, "Pricing")."""
_SHORT = 1_000
"""Tokens of a prompt to which no higher price of long ones applies."""
_others = Event()
"""Set once genai-prices is imported whole: while a thread imports it, `sys.modules` has it already."""


class Price(Struct, frozen=True):
    """US dollars per million tokens; cache writes are those that live five minutes."""

    input: float
    output: float
    cache_write: float
    cache_read: float

    def of(self, usage: Usage) -> float:
        """Cost of a reply in dollars."""
        return (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_creation_tokens * self.cache_write
            + usage.cache_read_tokens * self.cache_read
        ) / PER_MILLION


# Published prices, checked in November 2026 against genai-prices 0.2.3 and platform.claude.com, "Pricing".
# OpenAI does not charge for writing to its cache: a write costs as much as input.
_PRICES: dict[str, Price] = {
    "claude-sonnet-5-5": Price(2, 10, 2.5, 0.1),
    "claude-sonnet-5": Price(2, 10, 2.5, 0.2),
    "claude-opus-5-5": Price(4, 20, 5, 0.2),
    "claude-opus-5": Price(5, 25, 6.25, 0.5),
    "claude-haiku-5-5": Price(0.1, 0.5, 0.125, 0.01),
    "claude-sonnet-4-6": Price(3, 15, 3.75, 0.3),
    "claude-sonnet-4-5": Price(3, 15, 3.75, 0.3),
    "claude-opus-4-5": Price(5, 25, 6.25, 0.5),
    "claude-haiku-4-5": Price(1, 5, 1.25, 0.1),
    "gpt-5.2": Price(1.75, 14, 1.75, 0.175),
    "gpt-5.1": Price(1.25, 10, 1.25, 0.125),
    "gpt-5": Price(1.25, 10, 1.25, 0.125),
    "gpt-5-mini": Price(0.25, 2, 0.25, 0.025),
    "gpt-5-nano": Price(0.05, 0.4, 0.05, 0.005),
}
_LONG_PROMPT: dict[str, tuple[int, Price]] = {
    "claude-haiku-5-5": (100_000, Price(0.5, 2.5, 0.625, 0.05)),
    "claude-sonnet-4-5": (200_000, Price(6, 22.5, 7.5, 0.6)),
}
"""Threshold in prompt tokens, cache included, and the price above it of every token of the request."""
_DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2})$")


def price(provider: str, model: str, usage: Usage, *, local: bool = False) -> float | None:
    """US dollars of a reply by the model's name; None where the price is unknown.

    `local` says that the server listens on this machine: weights that it runs itself are free, and forwarded calls have
    the usual price. Names outside the own table are looked up in genai-prices once `load` has run; it is safe in any
    thread.
    """
    if local and runs_free(provider, model):
        return 0.0
    name = _DATED.sub("", bare_name(model))
    searches, own = usage.web_searches * SEARCH, _PRICES.get(name)
    if own is not None:
        threshold, dearer = _LONG_PROMPT.get(name, (0, own))
        prompt = usage.input_tokens + usage.cache_creation_tokens + usage.cache_read_tokens
        return (dearer if prompt > threshold else own).of(usage) + searches
    found = _looked_up(provider, model, usage) if _others.is_set() else None
    return None if found is None else found + searches


def with_list_price(info: ModelInfo) -> ModelInfo:
    """The model with its price per million tokens of a short prompt, unless the server told one; for threads.

    The first name that the own table does not have costs 0.25 s.
    """
    if info.price_in is not None:
        return info
    if not (info.local and runs_free(info.provider, info.name)):
        load_now(info.name)
    costs = [price(info.provider, info.name, usage, local=info.local) for usage in (Usage(_SHORT, 0), Usage(0, _SHORT))]
    return replace(
        info,
        **{
            name: round(cost * PER_MILLION / _SHORT, 6) if cost is not None else None
            for name, cost in zip(("price_in", "price_out"), costs, strict=True)
        },
    )


async def load(model: str) -> None:
    """Make the price of `model` known, in a thread where that needs genai-prices (0.25 s of import)."""
    if not _is_listed(model):
        await asyncio.to_thread(load_now, model)


def load_now(model: str) -> None:
    """Do the work of `load` in the thread of the caller."""
    if not _is_listed(model):
        importlib.import_module("genai_prices")
        _others.set()


def _is_listed(model: str) -> bool:
    """True when the own table has it."""
    return _DATED.sub("", bare_name(model)) in _PRICES


def _looked_up(provider: str, model: str, usage: Usage) -> float | None:
    import genai_prices  # noqa: PLC0415 - loaded already, see `load`

    prompt = usage.input_tokens + usage.cache_creation_tokens + usage.cache_read_tokens
    counted = genai_prices.Usage(
        input_tokens=prompt,
        output_tokens=usage.output_tokens,
        cache_write_tokens=usage.cache_creation_tokens,
        cache_read_tokens=usage.cache_read_tokens,
    )
    for name, seller in _places(provider, model):
        try:
            return float(genai_prices.calc_price(counted, model_ref=name, provider_id=seller).total_price)
        except (LookupError, ValueError):
            continue
    return None


def _places(provider: str, model: str) -> Iterator[tuple[str, str | None]]:
    """Places to look, as pairs of model and seller: the provider, the host in the name, the maker of the model.

    A host's price is its own: an unlisted model has no other host's price.
    """
    yield model, provider
    host = host_of(model)
    if host:
        yield model.partition("/")[2], host
    elif host is None and provider not in HOSTS:
        yield bare_name(model), None
