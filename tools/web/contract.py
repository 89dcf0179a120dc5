"""Values and Protocols of the web tools: queries, sources, and the models that search and read for them."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class WebQuery(Struct, frozen=True):
    """A search of the web."""

    words: str
    allowed_domains: tuple[str, ...] = ()
    """Only results of these hosts and of those below them; empty: of all."""
    blocked_domains: tuple[str, ...] = ()


class WebSource(Struct, frozen=True):
    """One result of a search."""

    url: str
    title: str = ""
    text: str = ""
    """Extract of the page; empty where the service gives none."""
    age: str = ""
    """Age or date of the page in the words of the service."""


class WebFindings(Struct, frozen=True):
    """Results of a search."""

    sources: tuple[WebSource, ...] = ()
    answer: str = ""
    """Text that a model wrote about the results; empty for a service without one."""
    by: str = ""
    """The model or service."""


class PageAnswer(Struct, frozen=True):
    """Answer of a model about a page."""

    text: str
    model: str


class WebModel(Protocol):
    """Models beside the conversation of a call: they search the web, and read a page for it."""

    async def search(self, query: WebQuery) -> WebFindings:
        """Search by the provider of a model.

        Raises:
            ToolFailure: it cannot search, in a sentence.
        """
        ...

    async def answer(self, url: str, page: str, prompt: str) -> PageAnswer | None:
        """Answer `prompt` from the text of a page, without tools; None where no model is configured for it.

        Raises:
            ToolFailure: the model cannot be asked, in a sentence.
        """
        ...
