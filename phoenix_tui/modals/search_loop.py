"""Asks the store while someone types: one question at a time, the newest one; answers to older ones are dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.api.engine import LibraryApi
from engine.ports import StorageError
from engine.records import SearchHit
from engine.search import SearchQuery

PAUSE: Final = 0.06
"""Seconds without a letter before the store is searched."""
BREATH: Final = 0.01
"""Seconds between two looks at older messages, so that another question is never far from its turn."""
PAGE: Final = 300
"""Hits ranked together: the newest ones, so that a common word costs no more than a rare one."""


class SearchResults(Struct, frozen=True):
    """Results of the current query."""

    hits: tuple[SearchHit, ...] = ()
    looking: bool = False
    """True while more may come without a request."""
    reached: float = 0.0
    """Time down to which was searched, seconds since the epoch; 0 when everything was."""
    unindexed: float = 0.0
    trouble: str = ""
    stale: bool = False
    """True when this answers the query before the current one."""


class SearchLoop:
    """Runs as one worker; calls `show` after every change."""

    def __init__(self, library: LibraryApi, show: Callable[[SearchResults], None]) -> None:
        self._library = library
        self._show = show
        self._query = SearchQuery()
        self._asked = asyncio.Event()
        self._number = 0
        """Counts questions; an answer to an older one is not shown."""
        self._wanted = PAGE
        self.found = SearchResults()
        self.below: int | None = None
        """Start of the next part of the current query."""

    def ask(self, query: SearchQuery) -> None:
        """Another question; an empty one clears the answer."""
        self._query = query
        self._number += 1
        self._wanted = PAGE
        self.found = replace(self.found, stale=True)
        self._asked.set()

    def more(self) -> None:
        """The last hits came into sight: look for another page."""
        if self.found.reached and not self.found.looking:
            self._wanted = len(self.found.hits) + PAGE
            self._asked.set()

    def resume(self, query: SearchQuery, found: SearchResults, below: int | None) -> None:
        """Start with the earlier results."""
        self._query, self.found, self.below = query, found, below

    async def run(self) -> None:
        """Answer queries until cancelled."""
        answered = 0
        while True:
            await self._asked.wait()
            self._asked.clear()
            if answered != self._number:
                await asyncio.sleep(PAUSE)
                self._asked.clear()
                answered = self._number
                self.below = None
                await self._answer(answered, ())
            else:
                await self._answer(answered, self.found.hits)

    async def _answer(self, number: int, before: tuple[SearchHit, ...]) -> None:
        """Look until the page is full, everything was looked through, or another question came."""
        hits, query = before, self._query
        if query.is_empty:
            self._tell(SearchResults())
            return
        while number == self._number:
            try:
                answer = await self._library.search(query, limit=PAGE, below=self.below)
            except StorageError as error:
                self._tell(SearchResults(hits, trouble=str(error)))
                return
            if number != self._number:
                return
            hits += answer.hits
            self.below = answer.next
            more = answer.next is not None
            looking = more and len(hits) < self._wanted
            self._tell(SearchResults(hits, looking, answer.reached if more else 0.0, answer.unindexed))
            if not looking:
                return
            await asyncio.sleep(BREATH)

    def _tell(self, found: SearchResults) -> None:
        self.found = found
        self._show(found)
