"""Pages that were fetched a short time ago."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, TypeAlias

from msgspec import Struct, field

from tools.clock import Clock
from tools.web.fetching import FetchedPage

SECONDS: Final = 15 * 60.0
MOST_BYTES: Final = 50 * 1024 * 1024


_Kept: TypeAlias = tuple[float, FetchedPage]
"""Monotonic time of the fetch, and the page."""


class PageCache(Struct, eq=False):
    """Pages by the address that was asked; the oldest go first."""

    clock: Clock
    _pages: OrderedDict[str, tuple[float, FetchedPage]] = field(
        default_factory=OrderedDict[str, tuple[float, FetchedPage]]
    )
    _bytes: int = 0

    def get(self, url: str) -> FetchedPage | None:
        """A page that is still fresh."""
        kept = self._pages.get(url)
        if kept is None:
            return None
        if self.clock.monotonic() - kept[0] > SECONDS:
            self._drop(url)
            return None
        return kept[1]

    def put(self, url: str, page: FetchedPage) -> None:
        """Keep a page; older ones make room."""
        if url in self._pages:
            self._drop(url)
        self._pages[url] = (self.clock.monotonic(), page)
        self._bytes += len(page.content)
        while self._bytes > MOST_BYTES:
            self._drop(next(iter(self._pages)))

    def _drop(self, url: str) -> None:
        _, page = self._pages.pop(url)
        self._bytes -= len(page.content)
