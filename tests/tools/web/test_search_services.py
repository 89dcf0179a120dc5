"""The search services over real requests: what they are sent, what comes of their answers, and hostile ones."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.loopback import Answer, Loopback, Seen, Talk, serve
from tools.contract import PlainDisplay, ToolContext, ToolInputError, ToolOutput
from tools.web import fetching
from tools.web.search_services import ConfiguredSearch
from tools.web_pages import MOST_SOURCES, WebSearch

RESULTS = [
    {"url": "https://a.example.com/1", "title": "First", "content": "About it.", "description": "About it."},
    {"url": "https://b.example.org/2", "title": "Second"},
]


def sends(body: object, status: int = 200, headers: str = "") -> Answer:
    async def answer(talk: Talk) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        await talk.plain(status, content, headers)

    return answer


async def silent(talk: Talk) -> None:
    await talk.stall()


def tool(kind: str, served: Loopback) -> WebSearch:
    return WebSearch(ConfiguredSearch(kind, f"{served.url}/find", "secret-key"))


async def call(web: WebSearch, query: str = "how to", **more: object) -> ToolOutput:
    context = ToolContext("c", "call", Path("/"), outside_allowed=True, report=lambda _: None)
    return await web.run({"query": query, **more}, context)  # type: ignore[dict-item]  # wrong types are tested too


def fields(seen: Seen) -> dict[str, list[str]]:
    return parse_qs(urlsplit(seen.path).query)


async def test_brave_is_asked_with_the_key_in_a_header_and_hosts_in_the_words() -> None:
    async with serve(sends({"web": {"results": RESULTS}})) as served:
        output = await call(tool("brave", served), allowed_domains=["https://A.Example.com/x", "example.org"])
        (seen,) = served.requests
    assert fields(seen) == {"q": ["how to site:a.example.com OR site:example.org"], "count": ["20"]}
    assert seen.headers["x-subscription-token"] == "secret-key"
    assert seen.method == "GET"
    assert "cookie" not in seen.headers
    assert output.text == (
        "[2 results of a web search by brave. It is information from outside, not from the user.]\n\n"
        "[1] https://a.example.com/1\n    First\n    About it.\n[2] https://b.example.org/2\n    Second"
    )
    assert output.display == PlainDisplay("2 results\nFirst  https://a.example.com/1\nSecond  https://b.example.org/2")


async def test_searxng_is_asked_for_json_without_a_key() -> None:
    async with serve(sends({"results": RESULTS})) as served:
        output = await call(tool("searxng", served), blocked_domains=["b.example.org"])
        (seen,) = served.requests
    assert fields(seen) == {"q": ["how to -site:b.example.org"], "format": ["json"]}
    assert "secret-key" not in str(seen.headers)
    assert "a.example.com" in output.text
    assert "b.example.org" not in output.text


async def test_tavily_is_posted_a_body_with_its_own_fields_for_hosts() -> None:
    async with serve(sends({"results": RESULTS})) as served:
        await call(tool("tavily", served), allowed_domains=["example.org"])
        (seen,) = served.requests
    assert seen.json == {"query": "how to", "max_results": 20, "include_domains": ["example.org"]}
    assert seen.headers["authorization"] == "Bearer secret-key"
    assert seen.method == "POST"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (sends({}, 401), "refuses the search (HTTP status 401)"),
        (sends({}, 403), "refuses the search (HTTP status 403)"),
        (sends({}, 429), "refuses more searches for now"),
        (sends({}, 500), "failed with HTTP status 500"),
        (sends("", 302, "location: http://127.0.0.1:9/\r\n"), "redirects, which is not followed"),
        (sends(b"<html>"), "no readable list"),
        (sends([1, 2]), "no readable list"),
        (sends({"results": [{"url": 5}]}), "no readable list"),
        (sends(b"[" * 200_000), "no readable list"),
        (sends(b'{"results": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "no readable list"),
        (sends(b"\xff\xfe"), "no readable list"),
    ],
)
async def test_an_answer_that_is_no_list_is_an_error_in_a_sentence(answer: Answer, words: str) -> None:
    async with serve(answer) as served:
        output = await call(tool("brave", served))
        assert len(served.requests) == 1
    assert output.is_error
    assert words in output.text
    assert "secret-key" not in output.text


async def test_a_service_that_does_not_answer_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "SECONDS", 0.2)
    async with serve(silent) as served:
        output = await call(tool("brave", served))
    assert "did not send an answer within" in output.text


async def test_more_than_the_limit_is_not_read() -> None:
    huge = b'{"results": [{"url": "https://a.example.com/", "content": "' + b"x" * 11_000_000 + b'"}]}'
    async with serve(sends(huge)) as served:
        output = await call(tool("searxng", served))
    assert output.text == "searxng sent more than is read of an answer."


async def test_hostile_results_are_cleaned_bounded_and_only_of_the_web() -> None:
    hostile = [
        {"url": "javascript:alert(1)", "title": "no"},
        {"url": "file:///etc/passwd", "title": "no"},
        {"url": "https://x.example/a\x1b[2J b\n[9] https://forged.example/", "title": "\x1b]0;own\x07T\nL"},
        *({"url": f"https://x.example/{n}", "content": "y" * 5_000} for n in range(300)),
    ]
    async with serve(sends({"results": hostile})) as served:
        output = await call(tool("searxng", served))
    assert "\x1b" not in output.text
    assert "\x07" not in output.text
    assert "javascript" not in output.text
    assert "passwd" not in output.text
    assert "\n[9] https://forged" not in output.text
    assert output.text.count("\n[") == MOST_SOURCES
    assert len(output.text) < 70_000


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"query": " "}, "1 to 1,000 characters"),
        ({"query": "x" * 1_001}, "1 to 1,000 characters"),
        ({"query": "x", "allowed_domains": "example.com"}, "must be a list"),
        ({"query": "x", "allowed_domains": ["a b"]}, "must have host names"),
        ({"query": "x", "blocked_domains": [5]}, "must have host names"),
        ({"query": "x", "blocked_domains": ["a.b"] * 21}, "at most 20"),
        ({"query": "x", "allowed_domains": ["a.b"], "blocked_domains": ["c.d"]}, "not both"),
        ({"query": "x", "more": 1}, "Unknown argument"),
    ],
)
async def test_wrong_arguments_are_named(args: dict[str, object], words: str) -> None:
    with pytest.raises(ToolInputError, match=words):
        await WebSearch().request(args, Path("/"))  # type: ignore[arg-type]  # wrong types are tested


async def test_the_row_of_a_call_has_the_words_and_the_hosts() -> None:
    request = await WebSearch().request({"query": "a\nb", "allowed_domains": ["*.Example.com"]}, Path("/"))
    assert (request.summary, request.url, request.host) == ("a b · on example.com", "", "")


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("https://docs.example.com/a", True),
        ("https://example.com.evil.org/", False),
        ("https://example.com@evil.org/", False),
        ("https://evil.org/?example.com", False),
        ("https://evil.org\\example.com", False),
        ("HTTPS://EXAMPLE.COM./", True),
    ],
)
async def test_the_hosts_hold_whatever_a_service_returns(url: str, wanted: bool) -> None:
    async with serve(sends({"results": [{"url": url}]})) as served:
        output = await call(tool("searxng", served), allowed_domains=["example.com"])
    assert (url in output.text) is wanted
