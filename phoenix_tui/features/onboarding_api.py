"""Offers to a user without a model, as a Protocol and the values that cross it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from engine.ports import ModelInfo


class LocalOffer(Struct, frozen=True):
    """A model that can be installed and then runs on this machine; sizes in bytes."""

    name: str
    download_bytes: int
    memory_bytes: int
    source: str
    """Source of the model, in words."""
    refusal: str = ""
    """Reason in one sentence why this machine cannot run it; else empty."""


class InstallProgress(Struct, frozen=True):
    """Progress of an installation; `total` is 0 while unknown."""

    done: int
    total: int
    step: str


class Onboarding(Protocol):
    """Offers to a user without a model. Failures raise EngineError."""

    async def local_offer(self) -> LocalOffer | None:
        """The model this machine could run, or None where there is none to offer."""
        ...

    async def install(self, progress: Callable[[InstallProgress], None]) -> str:
        """Install it and return the model reference; cancelling the call removes partial files."""
        ...

    async def save_key(self, provider: str, key: str) -> str:
        """Keep a key and give the model reference it opens."""
        ...

    async def accept_server(self, reference: str) -> None:
        """Remember that a model of a server on this machine was chosen; any other reference changes nothing."""
        ...

    async def local_servers(self) -> Sequence[ModelInfo]:
        """Models of servers that answer on this machine now."""
        ...
