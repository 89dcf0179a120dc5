"""Search services that the user configured: Brave, SearXNG and Tavily, each one JSON request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, TypeAlias
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from tools.arguments import ToolFailure
from tools.known_secrets import SecretFields
from tools.web.contract import WebFindings, WebQuery, WebSource
from tools.web.fetching import ChosenReach, HttpAnswer, HttpAsk, Reach, ask, read_chosen_address

MOST_RESULTS: Final = 20
"""Results that are asked for; Brave gives no more."""
LONGEST_WORDS: Final = 400
"""Characters of a query with its hosts; Brave takes no more."""
MOST_REPORTED: Final = 200
_BUSY: Final = 429
_NO_KEY: Final = frozenset({401, 403})
_OK: Final = 200


class _Result(msgspec.Struct):
    """A result of any of the services."""

    url: str = ""
    title: str | None = ""
    description: str | None = ""
    """Brave."""
    content: str | None = ""
    """SearXNG and Tavily."""
    age: str | None = ""
    """Brave."""
    publishedDate: str | None = ""


class _Web(msgspec.Struct):
    results: list[_Result] | None = None


class _Answer(msgspec.Struct):
    results: list[_Result] | None = None
    web: _Web | None = None


_DECODER: Final = msgspec.json.Decoder(_Answer)


class ConfiguredSearch(SecretFields, Struct, frozen=True):
    """Implements `tools.web_pages.SearchService`."""

    HIDDEN: ClassVar[frozenset[str]] = frozenset({"key"})

    kind: str
    """brave, searxng or tavily."""
    url: str
    key: str = ""
    reach: Reach = ChosenReach()

    async def search(self, query: WebQuery) -> WebFindings:
        """See `SearchService.search`."""
        words = self._words(query)
        request = _REQUESTS[self.kind](self, query, words)
        answer = await ask(read_chosen_address(request.url), self.reach, request.ask)
        return WebFindings(_sources(self._check_answer(answer)), by=self.kind)

    def _words(self, query: WebQuery) -> str:
        """The query with its hosts in the words that search engines know; without those that do not fit."""
        if self.kind == "tavily":
            return query.words[:LONGEST_WORDS]
        hosts = [f"-site:{host}" for host in query.blocked_domains]
        if query.allowed_domains:
            hosts = [" OR ".join(f"site:{host}" for host in query.allowed_domains)]
        words = query.words[:LONGEST_WORDS]
        for host in hosts:
            words = longer if len(longer := f"{words} {host}") <= LONGEST_WORDS else words
        return words

    def _check_answer(self, answer: HttpAnswer) -> bytes:
        """The content of a good answer."""
        if answer.location:
            raise ToolFailure(f"{self.kind} redirects, which is not followed: the address of [web] is not its own.")
        if answer.status == _BUSY:
            raise ToolFailure(f"{self.kind} refuses more searches for now (HTTP status 429).")
        if answer.status in _NO_KEY:
            hint = "its settings must allow the format json" if self.kind == "searxng" else "check the key of [web]"
            raise ToolFailure(f"{self.kind} refuses the search (HTTP status {answer.status}): {hint}.")
        if answer.status != _OK:
            raise ToolFailure(f"{self.kind} failed with HTTP status {answer.status}.")
        if answer.cut:
            raise ToolFailure(f"{self.kind} sent more than is read of an answer.")
        return answer.content


class _Request(Struct, frozen=True):
    url: str
    ask: HttpAsk


_Builder: TypeAlias = Callable[[ConfiguredSearch, WebQuery, str], _Request]


def _brave(service: ConfiguredSearch, query: WebQuery, words: str) -> _Request:
    url = _with_query(service.url, {"q": words, "count": str(MOST_RESULTS)})
    return _Request(url, HttpAsk(headers=_JSON | {"X-Subscription-Token": service.key}))


def _searxng(service: ConfiguredSearch, query: WebQuery, words: str) -> _Request:
    return _Request(_with_query(service.url, {"q": words, "format": "json"}), HttpAsk(headers=dict(_JSON)))


def _tavily(service: ConfiguredSearch, query: WebQuery, words: str) -> _Request:
    body: dict[str, str | int | Sequence[str]] = {"query": words, "max_results": MOST_RESULTS}
    if query.allowed_domains:
        body["include_domains"] = query.allowed_domains
    if query.blocked_domains:
        body["exclude_domains"] = query.blocked_domains
    headers = _JSON | {"Content-Type": "application/json", "Authorization": f"Bearer {service.key}"}
    return _Request(service.url, HttpAsk("POST", headers, json.dumps(body).encode()))


_JSON: Final[dict[str, str]] = {"Accept": "application/json"}
_REQUESTS: Final[Mapping[str, _Builder]] = {"brave": _brave, "searxng": _searxng, "tavily": _tavily}


def _with_query(url: str, fields: Mapping[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(fields)}"


def _sources(content: bytes) -> tuple[WebSource, ...]:
    try:
        answer = _DECODER.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ToolFailure("The search service sent no readable list of results.") from None
    found = answer.results or (answer.web.results if answer.web is not None else None) or []
    return tuple(
        WebSource(one.url, one.title or "", one.description or one.content or "", one.age or one.publishedDate or "")
        for one in found[:MOST_REPORTED]
    )
