"""Offers of the servers of a conversation, kept while neither a definition nor a list changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field

from engine.extensions.mcp.catalogue_cache import Catalogue
from engine.extensions.mcp.connection import ServerConnection
from engine.extensions.mcp.offering import Offered, offered_tools
from engine.ports.mcp import ServerDefinition

ServerOffer: TypeAlias = tuple[ServerConnection, Offered]


class KeptOffers(Struct, eq=False):
    """The offers of one conversation; a request asks for them several times."""

    _versions: list[tuple[str, ServerDefinition, Catalogue]] = field(default_factory=list[Any])
    """Definitions and lists that the offers were made of."""
    _offers: Sequence[ServerOffer] = ()

    def of(self, servers: Sequence[ServerConnection]) -> Sequence[ServerOffer]:
        """Offers of the servers that have a list, in the same order."""
        listed = [(one, catalogue) for one in servers if (catalogue := one.catalogue) is not None]
        versions = [(one.key, one.definition, catalogue) for one, catalogue in listed]
        if versions != self._versions:
            taken: set[str] = set()
            self._versions = versions
            self._offers = [(one, offered_tools(one.definition, catalogue, taken)) for one, catalogue in listed]
        return self._offers
