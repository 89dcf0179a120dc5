"""Rows of the list of models: favourites, recent ones, then each provider with its state. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from engine.ports import ModelInfo
from phoenix_tui.models.offers import ProviderOffer, ProviderState
from phoenix_tui.models.preferred import Preferred
from phoenix_tui.text.model_text import filter_words

FAVOURITES: Final = "Favourites"
RECENT: Final = "Recent"
CLOSED: Final = {ProviderState.NO_KEY: "Without a key", ProviderState.UNREACHABLE: "Unreachable"}
"""Headings of providers without models."""
EMPTY: Final = "Without models"
ASKING: Final = "Asking for models …"


class ModelRow(Struct, frozen=True):
    """A model under a heading; or a provider without models, which has an empty `key` and its words in `name`."""

    section: str
    key: str
    """Reference of the model."""
    name: str
    """Name in the list: without its provider below the heading of that."""
    found: str
    """Text in lower case that the filter searches."""
    info: ModelInfo | None = None
    """Known facts about the model."""
    offer: ProviderOffer | None = None
    """The provider of a row without a model."""


def provider_rows(offer: ProviderOffer) -> list[ModelRow]:
    """Rows of one provider; none for one that the user did not name and that has no models."""
    if not offer.models:
        return [_closed(offer)] if offer.is_expected else []
    heading = " · ".join(filter(None, (offer.name, offer.words)))
    return [_row(heading, one.reference, one.name, one) for one in offer.models]


def preferred_rows(preferred: Preferred, now: str, known: Mapping[str, ModelInfo]) -> list[ModelRow]:
    """Favourites, then the model in use and those used before; one that no list has stays without facts."""
    favourites = dict.fromkeys(preferred.favourites)
    recent = (one for one in dict.fromkeys((now, *preferred.recent)) if one and one not in favourites)
    groups: tuple[tuple[str, Iterable[str]], ...] = ((FAVOURITES, favourites), (RECENT, recent))
    return [_row(section, one, one, known.get(one)) for section, references in groups for one in references]


def all_rows(groups: Iterable[Sequence[ModelRow]], preferred: Sequence[ModelRow]) -> list[ModelRow]:
    """The whole list from the rows of each provider: providers without models come last, by their state."""
    whole, closed = list(preferred), list[ModelRow]()
    for rows in groups:
        (closed if rows and rows[0].offer is not None else whole).extend(rows)
    order = {heading: place for place, heading in enumerate((ASKING, EMPTY, *reversed(CLOSED.values())))}
    return whole + sorted(closed, key=lambda row: order[row.section])


def narrowed(rows: Sequence[ModelRow], query: str) -> list[ModelRow]:
    """Rows that hold every word of the query, each model at its first place; all rows without a word."""
    words = query.lower().split()
    if not words:
        return list(rows)
    first, *others = words
    found = [row for row in rows if first in row.found]
    for word in others:
        found = [row for row in found if word in row.found]
    return once(found)


def once(rows: Sequence[ModelRow]) -> list[ModelRow]:
    """Each model at its first place alone."""
    found: dict[str, ModelRow] = {}
    for row in rows:
        found.setdefault(row.key or row.name, row)
    return list(found.values())


def _row(section: str, key: str, name: str, info: ModelInfo | None) -> ModelRow:
    words = filter_words(info) if info is not None else ""
    return ModelRow(section, key, name, f"{key} {words}".lower(), info)


def _closed(offer: ProviderOffer) -> ModelRow:
    section = CLOSED.get(offer.state) or (ASKING if offer.state is ProviderState.ASKING else EMPTY)
    said = f"{offer.name}: {offer.words}" if offer.words else offer.name
    return ModelRow(section, "", said, f"{said} {offer.state.value}".lower(), offer=offer)
