"""The list of models with its filter and choice, for both front ends; opens with what is known without a request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from engine.ports import ModelInfo
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.model_rows import ModelRow, all_rows, narrowed, preferred_rows, provider_rows
from phoenix_tui.models.offers import ProviderOffer


class ModelList:
    """Rows, the filter and the chosen row; whoever shows it draws it."""

    def __init__(self, offers: Sequence[ProviderOffer], front: FrontEnd, query: str = "") -> None:
        self.query = query
        self.now = front.model
        """Reference of the model in use."""
        self.rows: Sequence[ModelRow] = ()
        self.found: Sequence[ModelRow] = ()
        self.chosen = 0
        self._models = front.services.models
        self._groups: dict[str, list[ModelRow]] = {}
        self._infos: dict[str, dict[str, ModelInfo]] = {}
        self.preferred = self._models.preferred.read()
        for offer in offers:
            self._take(offer)
        self._renew()
        self.chosen = self._place_of(self.now) or 0

    @property
    def row(self) -> ModelRow | None:
        """The chosen row."""
        return self.found[self.chosen] if self.chosen < len(self.found) else None

    def move(self, by: int) -> None:
        """Choose another row."""
        self.chosen = max(0, min(self.chosen + by, len(self.found) - 1))

    def narrow(self, query: str) -> None:
        """Show rows with these words, the first one chosen; without words all, with the same row chosen."""
        before = self.row
        self.query = query
        self.found = narrowed(self.rows, query)
        self.chosen = 0
        if not query.strip() and before is not None:
            self.chosen = self._place_of(before.key or before.name, before.section) or 0

    def renew(self) -> None:
        """Read the favourites again; the chosen row stays chosen."""
        self.preferred = self._models.preferred.read()
        self._renew()

    async def refresh(self, *, again: bool = False) -> AsyncIterator[None]:
        """Ask every provider; yields with each one that answered. `again` asks those too that answered today."""
        async with aclosing(self._models.asked(refresh=again)) as answers:
            async for offer in answers:
                self._take(offer)
                self._renew()
                yield

    def _take(self, offer: ProviderOffer) -> None:
        self._groups[offer.name] = provider_rows(offer)
        self._infos[offer.name] = {one.reference: one for one in offer.models}

    def _renew(self) -> None:
        before = self.row
        wanted = (*self.preferred.favourites, *self.preferred.recent, self.now)
        known = {one: info for one in wanted if (info := self._info(one)) is not None}
        self.rows = all_rows(self._groups.values(), preferred_rows(self.preferred, self.now, known))
        self.found = narrowed(self.rows, self.query)
        place = self._place_of(before.key or before.name, before.section) if before is not None else None
        self.chosen = max(0, min(self.chosen, len(self.found) - 1)) if place is None else place

    def _info(self, reference: str) -> ModelInfo | None:
        return self._infos.get(reference.partition("/")[0], {}).get(reference)

    def _place_of(self, key: str, section: str = "") -> int | None:
        """Place of a row: below the same heading, else anywhere; None where there is none."""
        places = [place for place, row in enumerate(self.found) if (row.key or row.name) == key]
        same = [place for place in places if self.found[place].section == section]
        return next(iter(same or places), None)
