"""Secrets that the user's config.toml names: variables of keys, and values written into tables of providers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from phoenix_tui.config.presets import KEY_VARIABLES
from phoenix_tui.config.provider_tables import variables_in
from phoenix_tui.config.settings import ProviderSettings
from phoenix_tui.config.web_table import WebSettings
from tools.known_secrets import SECRETS
from tools.process.environment import ALLOWED, SECRET


def note_secrets(providers: Iterable[ProviderSettings], web: WebSettings | None) -> None:
    """Keep what these settings name from programs, logs and reports, as other keys."""
    SECRETS.add_names(KEY_VARIABLES)
    SECRETS.add_names([web.key_env] if web is not None else [])
    for provider in providers:
        SECRETS.add_names([provider.api_key_env, *_variables(provider)])
        for name, value in [*provider.headers.items(), *provider.query.items()]:
            if (SECRET.search(name) or name.lower() == "authorization") and not variables_in(value):
                SECRETS.add_value(value.rpartition(" ")[2])


def _variables(provider: ProviderSettings) -> Iterator[str]:
    """Variables in its headers and query, which may be secret unless every command needs them, such as USER."""
    for text in (*provider.headers.values(), *provider.query.values()):
        yield from (name for name in variables_in(text) if name not in ALLOWED)
