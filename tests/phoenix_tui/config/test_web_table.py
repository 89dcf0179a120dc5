"""`[web]` of config.toml: allowed values, sentences about wrong ones, and what becomes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from phoenix_tui.cli.findings import Health
from phoenix_tui.config.credentials import Credentials
from phoenix_tui.config.load import Layer, merge, parse_layer
from phoenix_tui.config.settings import ConfigError
from phoenix_tui.config.settings_tables import WebSettings
from phoenix_tui.wiring.backend import search_findings, search_service
from tools.web.search_services import ConfiguredSearch

FILE = Path("/home/u/config.toml")


def web(text: str) -> WebSettings | None:
    return parse_layer(text, FILE, project=False).web


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        (
            '[web]\nsearch = "brave"',
            WebSettings("brave", "https://api.search.brave.com/res/v1/web/search", "BRAVE_API_KEY"),
        ),
        (
            '[web]\nsearch = "tavily"\nkey_env = "MY_API_KEY"',
            WebSettings("tavily", "https://api.tavily.com/search", "MY_API_KEY"),
        ),
        (
            '[web]\nsearch = "searxng"\nurl = "http://localhost:8888"',
            WebSettings("searxng", "http://localhost:8888/search"),
        ),
        (
            '[web]\nsearch = "searxng"\nurl = "https://s.example.com/my/search"',
            WebSettings("searxng", "https://s.example.com/my/search"),
        ),
        (
            '[web]\nsearch = "brave"\nurl = "http://127.0.0.1:1/x"',
            WebSettings("brave", "http://127.0.0.1:1/x", "BRAVE_API_KEY"),
        ),
    ],
)
def test_a_table_is_read(text: str, expected: WebSettings | None) -> None:
    assert web(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("web = 1", "config.toml:1: 'web' must be a table"),
        ("[web]", "config.toml:1: .web. needs 'search', one of brave, searxng, tavily"),
        ('[web]\nsearch = "google"', "config.toml:2: .web. needs 'search'"),
        ('[web]\nsearch = "searxng"', "config.toml:1: 'url' in .web. must be the http"),
        ('[web]\nsearch = "searxng"\nurl = "ftp://x"', "config.toml:3: 'url' in .web. must be"),
        ('[web]\nsearch = "searxng"\nurl = "http://["', "config.toml:3: 'url' in .web. must be"),
        ('[web]\nsearch = "searxng"\nurl = "http://x:99999"', "config.toml:3: 'url' in .web. must be"),
        ('[web]\nsearch = "searxng"\nurl = "http://u:p@x"', "config.toml:3: 'url' in .web. cannot hold"),
        ('[web]\nsearch = "brave"\nurl = "http://far.example.com"', "config.toml:3: the key of brave is not sent"),
        ('[web]\nsearch = "searxng"\nurl = "http://x"\nkey_env = "A"', "config.toml:4: searxng takes no key"),
        ('[web]\nsearch = "brave"\nkeys = "A"', "config.toml:3: unknown key 'keys' in .web."),
        ("[web]\nsearch = 5", "config.toml:2: 'search' in .web. must be text"),
        ('[web]\nsearch = "brave"\nkey_env = "A\\u001b"', "config.toml:3: 'key_env' in .web. must be text on one line"),
    ],
)
def test_a_wrong_table_names_file_line_and_fix(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        web(text)


def test_a_project_cannot_name_a_service() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'web'\. A project can set"):
        parse_layer('[web]\nsearch = "searxng"\nurl = "http://evil.example"', FILE, project=True)


def test_the_table_is_part_of_the_settings() -> None:
    user = parse_layer('[web]\nsearch = "brave"', FILE, project=False)
    settings = merge(user, Layer(), Layer(), Layer())
    assert settings.web == user.web


def test_a_service_needs_its_key_and_never_shows_it() -> None:
    wanted = WebSettings("brave", "https://api.example.com", "BRAVE_API_KEY")
    without, with_key = Credentials({}, {}), Credentials({"BRAVE_API_KEY": "sk-brave"}, {})
    assert search_service(wanted, without) is None
    assert search_findings(wanted, without)[0].text == "brave has no key; set BRAVE_API_KEY"
    assert search_findings(wanted, without)[0].health is Health.NOTE
    service = search_service(wanted, with_key)
    assert isinstance(service, ConfiguredSearch)
    assert service.key == "sk-brave"
    assert "sk-brave" not in repr(service)
    assert "sk-brave" in with_key.secrets()
    stored = search_service(wanted, Credentials({}, {"brave": "sk-stored"}))
    assert isinstance(stored, ConfiguredSearch)
    assert stored.key == "sk-stored"


def test_searxng_needs_none() -> None:
    wanted = WebSettings("searxng", "http://localhost:8888/search")
    assert isinstance(search_service(wanted, Credentials({}, {})), ConfiguredSearch)
