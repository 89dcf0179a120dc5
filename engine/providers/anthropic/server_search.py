"""Searches of the web by Anthropic's server: the request for them, and their results. Pure.

The blocks of these searches are read and dropped: no later request contains one.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct, field

from engine.ports import ModelRequest, ProviderError, ServerSearch
from tools.contract import JsonObject, JsonValue
from tools.web.contract import WebSource

TYPE: Final = "web_search_20250305"
NAME: Final = "web_search"
MOST_SOURCES: Final = 100
"""Results of one reply: ten a search, of at most eight searches."""
LONGEST_URL: Final = 2_000
LONGEST_TITLE: Final = 500
LONGEST_AGE: Final = 100
_RESULT: Final = "web_search_tool_result"


class _Result(msgspec.Struct):
    url: str = ""
    title: str | None = ""
    page_age: str | None = None


class _Failure(msgspec.Struct):
    error_code: str = ""


_CONTENT: Final = msgspec.json.Decoder(list[_Result] | _Failure)


class ServerSearchResults(Struct, eq=False):
    """Results of the searches of one reply, each address once."""

    sources: list[WebSource] = field(default_factory=list[WebSource])
    error: str = ""
    """Word for the newest search that failed."""

    def take(self, kind: str, content: msgspec.Raw) -> None:
        """Take a block of the kind `kind`; anything but results of a search, or unreadable, is passed over."""
        if kind != _RESULT:
            return
        try:
            found = _CONTENT.decode(content)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        if isinstance(found, _Failure):
            self.error = found.error_code[:LONGEST_AGE]
            return
        known = {source.url for source in self.sources}
        for one in found[: MOST_SOURCES - len(self.sources)]:
            if one.url and len(one.url) <= LONGEST_URL and one.url not in known:
                known.add(one.url)
                title, age = (one.title or "")[:LONGEST_TITLE], (one.page_age or "")[:LONGEST_AGE]
                self.sources.append(WebSource(one.url, title, age=age))


def search_fields(search: ServerSearch) -> JsonObject:
    """Fields of the request: the server's tool alone. A forced tool excludes thinking, so there is none."""
    tool: JsonObject = {"type": TYPE, "name": NAME, "max_uses": search.most}
    domains = {"allowed_domains": search.query.allowed_domains, "blocked_domains": search.query.blocked_domains}
    for name, hosts in domains.items():
        if hosts:
            listed: list[JsonValue] = list(hosts)
            tool[name] = listed
    fields: JsonObject = {"tools": [tool]}
    if search.forced:
        fields["tool_choice"] = {"type": "tool", "name": NAME}
    return fields


def without_force(request: ModelRequest, error: ProviderError) -> ModelRequest | None:
    """The request without force, for a model that reasons in any case and then takes no forced tool; else None."""
    search = request.search
    if search is None or not search.forced or error.kind != "invalid_request":
        return None
    said = error.message.lower()
    if "tool_choice" not in said and "thinking" not in said:
        return None
    return msgspec.structs.replace(request, search=msgspec.structs.replace(search, forced=False))


def refuses_search(request: ModelRequest, error: ProviderError) -> bool:
    """True where the server says that it does not search: switched off by its owner, or unknown to a gateway."""
    about_request = request.search is not None and error.kind == "invalid_request"
    return about_request and "web search" in error.message.lower().replace("_", " ")
