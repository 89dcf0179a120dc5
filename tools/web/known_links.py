"""Addresses in results of web tools that a model may ask without a question (docs/decisions/extensions-permissions.md).

A page names its links itself. What a model or a search service writes may repeat the words of the call, and with them
an address that the calling model made up; so of such results only the numbered addresses count.
"""

from __future__ import annotations

import re
from typing import Final

from tools.clean import clean_line
from tools.wording import one_line

ANSWERED: Final = "[Answer of "
"""Beginning of a result that a model wrote about a page."""
LONGEST: Final = 2_000
_NUMBERED: Final = re.compile(r"^\[\d{1,4}\] (\S+)$", re.MULTILINE)
_LOOKS_NUMBERED: Final = re.compile(r"^(?=\[\d{1,4}\] \S+$)", re.MULTILINE)
_ANSWER: Final = re.compile(rf"^{re.escape(ANSWERED)}", re.MULTILINE)
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"'`\\^{}|()\[\]]+")


def numbered(number: int, url: str) -> str:
    """The line of an address that counts as known."""
    return f"[{number}] {''.join(clean_line(url).split())[:LONGEST]}"


def unnumbered(text: str) -> str:
    """Text of a model or a service, none of whose lines reads as a numbered address."""
    return _LOOKS_NUMBERED.sub(" ", text)


def shared_addresses(answer: str, page: str, most: int) -> list[str]:
    """Addresses in an answer that the page has too, each once; at most `most`."""
    found = (one.rstrip(".,;:!?*_") for one in _ADDRESS.findall(answer))
    return [one for one in dict.fromkeys(found) if one in page][:most]


def known_text(tool: str, result: str) -> str:
    """The part of a result of a web tool whose addresses count as known."""
    if tool != "web_search" and not _ANSWER.search(result):
        return result
    return "\n".join(_NUMBERED.findall(result))


def one_line_title(text: str, longest: int) -> str:
    """A title or an extract on one line, cleaned."""
    return one_line(clean_line(text), longest)
