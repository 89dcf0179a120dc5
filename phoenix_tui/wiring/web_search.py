"""The search service of the user's `[web]`, and what doctor says about it."""

from __future__ import annotations

from phoenix_tui.cli.findings import Finding, Health
from phoenix_tui.config.credentials import Credentials
from phoenix_tui.config.web_table import WebSettings
from tools.web_search import SearchService

TOPIC = "web search"


def search_service(wanted: WebSettings | None, credentials: Credentials) -> SearchService | None:
    """The service, with its key; None where none is configured, or its key is missing."""
    if wanted is None or why_no_search(wanted, credentials):
        return None
    from tools.web.search_services import ConfiguredSearch  # noqa: PLC0415 - only where one is configured

    key = credentials.key(wanted.search, wanted.key_env) if wanted.key_env else ""
    return ConfiguredSearch(wanted.search, wanted.url, key)


def why_no_search(wanted: WebSettings, credentials: Credentials) -> str:
    """Reason why the configured service cannot be asked, in one sentence; empty where it can."""
    if not wanted.key_env or credentials.source(wanted.search, wanted.key_env):
        return ""
    return f"{wanted.search} has no key; set {wanted.key_env}"


def search_findings(wanted: WebSettings | None, credentials: Credentials) -> list[Finding]:
    """Describe what searches the web."""
    if wanted is None:
        return [Finding(TOPIC, Health.OK, "by Claude's own server where the model is Claude; [web] adds a service")]
    if why := why_no_search(wanted, credentials):
        return [Finding(TOPIC, Health.NOTE, why)]
    return [Finding(TOPIC, Health.OK, f"{wanted.search} at {wanted.url}")]
