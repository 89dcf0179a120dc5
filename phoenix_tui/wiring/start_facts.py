"""Settings as a start needs them: facts about the choice of a model, and the limits of runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine.run_caps import RunCaps
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.credentials import Credentials
from phoenix_tui.config.settings import ConfigError, Settings
from phoenix_tui.models.choice import ModelFacts


def facts_of(setup: Setup, environment: Mapping[str, str]) -> ModelFacts:
    """Facts about the choice of a model that need no request; flag, environment and config are merged by now."""
    credentials = setup.credentials
    return ModelFacts(
        flag=setup.settings.text("model"),
        has_anthropic_key=bool(credentials.source("anthropic") or environment.get("ANTHROPIC_AUTH_TOKEN")),
        has_openai=bool(credentials.source("openai") or environment.get("OPENAI_BASE_URL")),
        preset=only_service(setup.settings, credentials),
    )


def only_service(settings: Settings, credentials: Credentials) -> str:
    """PROVIDER/MODEL of the well-known service with a default model whose key is set; empty for none or several."""
    own = {one.name for one in settings.providers if one.service is None}
    found = [one for one in credentials.opened() if one.default_model and one.name not in own]
    return f"{found[0].name}/{found[0].default_model}" if len(found) == 1 else ""


def caps_of(settings: Settings) -> RunCaps:
    """The limits of every run."""
    return RunCaps(int(settings.number("max_turns")), settings.number("max_budget_usd"), settings.number("timeout"))


def caps_with(setup: Setup, profile: str, cwd: Path) -> RunCaps | None:
    """The limits of a run in a conversation begun with a profile (empty: none); None where it is gone or broken."""
    try:
        return caps_of(setup.settings_now(profile, cwd))
    except ConfigError:
        return None
