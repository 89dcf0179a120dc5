"""Settings in the forms their users need, and storing their changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from engine.executor.requests import EngineError
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.load import from_text, remove_value, set_value
from phoenix_tui.config.settings import KEYS, ConfigError, SettingValue, in_words

if TYPE_CHECKING:
    from phoenix_tui.features.service_interfaces import Setting


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
        from phoenix_tui.features.service_interfaces import Setting  # noqa: PLC0415 - the first frame needs none of it

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
