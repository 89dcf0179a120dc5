"""Rows of the list of models: favourites, recent ones, then each provider with its state. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.ports import ModelInfo
from phoenix_tui.models.offers import ProviderOffer, ProviderState
from phoenix_tui.models.servers import ServerKind
from phoenix_tui.text.model_text import columns

KEY: Final = "key "
"""Beginning of the key of a row whose provider lacks a key; its name follows."""
STAR: Final = "*"
_LOCAL: Final = frozenset(kind.value for kind in ServerKind)


class ModelRow(Struct, frozen=True):
    """One row: `key` is the reference, `facts` are columns, and `found` the text that the filter searches."""

    section: str
    key: str
    words: str
    facts: str
    found: str
    note: str = ""


def model_rows(
    offers: Sequence[ProviderOffer], favourites: Sequence[str], recent: Sequence[str], now: str
) -> list[ModelRow]:
    """All rows; a favourite is in its own section and that of its provider, a missing one without facts."""
    known = {one.reference: one for offer in offers for one in offer.models}
    rows = [_row("In use", now, known.get(now), favourites, "in use")] if now else []
    rows += [_row("Favourites", one, known.get(one), favourites) for one in favourites if one != now]
    rows += [_row("Recent", one, known.get(one), favourites) for one in recent if one not in {now, *favourites}]
    for offer in offers:
        heading = " · ".join(filter(None, (offer.name, offer.words)))
        rows += [_row(heading, one.reference, one, favourites) for one in offer.models if one.reference != now]
    return rows + [_closed(offer) for offer in offers if not offer.models and _is_shown(offer)]


def narrowed(rows: Sequence[ModelRow], query: str) -> list[ModelRow]:
    """Rows that hold every word of the query, each model once."""
    words = query.lower().split()
    found = [row for row in rows if all(word in row.found for word in words)]
    return list({row.key: row for row in reversed(found)}.values())[::-1] if words else found


def _row(section: str, key: str, one: ModelInfo | None, favourites: Sequence[str], note: str = "") -> ModelRow:
    star = f"{STAR} " if key in favourites else ""
    place = "on this machine" if one is not None and one.local else ""
    said = note or ", ".join(filter(None, (place, one.note if one is not None else "")))
    facts = columns(one) if one is not None else ""
    return ModelRow(section, key, f"{star}{key}", facts, f"{key} {facts} {said} {section}".lower(), said)


def _is_shown(offer: ProviderOffer) -> bool:
    return offer.state is not ProviderState.READY and offer.name not in _LOCAL


def _closed(offer: ProviderOffer) -> ModelRow:
    said = f"{offer.state.value}: {offer.words}" if offer.words else offer.state.value
    section = "Without a key" if offer.state is ProviderState.NO_KEY else "Unreachable"
    return ModelRow(section, f"{KEY}{offer.name}", offer.name, said, f"{offer.name} {said}".lower())
