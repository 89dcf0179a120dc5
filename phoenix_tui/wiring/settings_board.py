"""Settings in the forms their users need, and storing their changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from engine.executor.requests import EngineError, RunCaps
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.credentials import Credentials
from phoenix_tui.config.load import from_text
from phoenix_tui.config.settings import KEYS, ConfigError, Settings, SettingValue, in_words
from phoenix_tui.config.write import remove_value, set_value
from phoenix_tui.models.choice import ModelFacts

if TYPE_CHECKING:
    from phoenix_tui.features.settings_api import Setting


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


class DefaultModel(Struct, frozen=True):
    """The model of new conversations, in the user's settings."""

    config_file: Path

    def set(self, reference: str) -> None:
        """Make this model the default. Raises ConfigError, OSError."""
        set_value(self.config_file, "model", reference)


class SettingsBoard(Struct, frozen=True):
    """The settings in force, read from their files each time, and kept in the user's."""

    setup: Setup

    def all(self) -> Sequence[Setting]:
        """Every setting. Raises EngineError."""
        from phoenix_tui.features.settings_api import Setting  # noqa: PLC0415 - the first frame needs none of it

        try:
            settings = self.setup.settings_now()
        except (ConfigError, OSError) as error:
            raise EngineError(str(error)) from error
        return [
            Setting(
                name,
                as_text(settings.values[name]),
                settings.sources[name],
                key.allowed,
                key.meaning,
                ("true", "false") if key.kind is bool else key.choices,
                key.live,
                in_words(name, settings.values[name]),
            )
            for name, key in KEYS.items()
        ]

    def save(self, name: str, value: str) -> None:
        """Keep one key in the user's file. Raises EngineError."""
        key = KEYS.get(name)
        try:
            set_value(self.setup.paths.config_file, name, value if key is None else from_text(key, value))
        except (ConfigError, OSError) as error:
            raise EngineError(str(error)) from error

    def reset(self, name: str) -> None:
        """Take one key out of the user's file. Raises EngineError."""
        try:
            remove_value(self.setup.paths.config_file, name)
        except (ConfigError, OSError) as error:
            raise EngineError(str(error)) from error


def as_text(value: SettingValue) -> str:
    """A value as it would be typed; nothing for no limit."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)
