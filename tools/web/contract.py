"""Values and Protocols of the web tools: queries, sources, known links, models that search and read."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from tools.clean import clean_line
from tools.wording import one_line


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


class WebModel(Struct, frozen=True):
    """Models beside the conversation of a call: they search the web, and read a page for it."""

    search: Callable[[WebQuery], Awaitable[WebFindings]]
    """Searches by the provider of a model. Raises ToolFailure, in a sentence."""
    answer: Callable[[str, str, str], Awaitable[PageAnswer | None]]
    """Answers a prompt from the address and text of a page, without tools; None where no model is configured for it.
    Raises ToolFailure, in a sentence.
    """


ANSWERED: Final = "[Answer of "
"""Beginning of a result that a model wrote about a page."""
LONGEST: Final = 2_000
_NUMBERED: Final = re.compile(r"^\[\d{1,4}\] (\S+)$", re.MULTILINE)
_LOOKS_NUMBERED: Final = re.compile(r"^(?=\[\d{1,4}\] \S+$)", re.MULTILINE)
_ANSWER: Final = re.compile(rf"^{re.escape(ANSWERED)}", re.MULTILINE)
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"'`\\^{}|()\[\]]+")


def number_line(number: int, url: str) -> str:
    """The line of an address that counts as known."""
    return f"[{number}] {''.join(clean_line(url).split())[:LONGEST]}"


def strip_numbers(text: str) -> str:
    """Text of a model or a service, none of whose lines reads as a numbered address."""
    return _LOOKS_NUMBERED.sub(" ", text)


def find_shared_addresses(answer: str, page: str, most: int) -> list[str]:
    """Addresses in an answer that the page has too, each once; at most `most`."""
    found = (one.rstrip(".,;:!?*_") for one in _ADDRESS.findall(answer))
    return [one for one in dict.fromkeys(found) if one in page][:most]


def extract_known_text(tool: str, result: str) -> str:
    """The part of a result of a web tool whose addresses count as known."""
    if tool != "web_search" and not _ANSWER.search(result):
        return result
    return "\n".join(_NUMBERED.findall(result))


def one_line_title(text: str, longest: int) -> str:
    """A title or an extract on one line, cleaned."""
    return one_line(clean_line(text), longest)
