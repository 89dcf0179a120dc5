"""API keys: from the environment, else from credentials.toml, else from the system's keyring where it says so."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, cast

from msgspec import Struct

from phoenix_tui.config.load import line_of, toml_text
from phoenix_tui.config.presets import KEY_VARIABLES, PRESETS, Preset
from phoenix_tui.config.settings import ConfigError
from tools.files.own_files import MOST_SETTINGS, close_to_others, read_text, write_file
from tools.known_secrets import SECRETS, SecretFields
from tools.process.environment import KEY_NAMES

KEYRING = "keyring"
"""The value that sends the look-up to the system's keyring."""
SERVICE = "phoenix-tui"


MCP = "mcp"
TOKENS = "tokens"
PLACES = ("file", KEYRING)
"""Places of the tokens of MCP servers: `[mcp] tokens`."""


class Credentials(SecretFields, Struct, frozen=True):
    """The keys of all providers; never printed."""

    HIDDEN: ClassVar[frozenset[str]] = frozenset({"environment", "stored"})

    environment: Mapping[str, str]
    stored: Mapping[str, str]
    mcp_tokens: str = PLACES[0]
    """Place of the tokens of MCP servers."""

    def key(self, provider: str, variable: str = "") -> str:
        """The key of `provider`, empty when there is none; `variable` replaces PROVIDER_API_KEY."""
        given = self.environment.get(variable or variable_of(provider), "")
        stored = given or self.stored.get(provider, "")
        return _from_keyring(provider) if stored == KEYRING else stored

    def source(self, provider: str, variable: str = "") -> str:
        """Source of the key of `provider`, empty when there is none."""
        name = variable or variable_of(provider)
        if self.environment.get(name):
            return name
        if provider in self.stored:
            return KEYRING if self.stored[provider] == KEYRING else "credentials.toml"
        return ""

    def variable(self, preset: Preset) -> str:
        """The variable that holds the key of `preset`, set or not."""
        return next((name for name in preset.variables if self.environment.get(name)), preset.variables[0])

    def list_available(self) -> list[Preset]:
        """The presets whose keys are available."""
        return [preset for preset in PRESETS.values() if self.source(preset.name, self.variable(preset))]

    def secrets(self) -> tuple[str, ...]:
        """Every available key, for redaction."""
        given = self.environment.items()
        known = {value for name, value in given if KEY_NAMES.search(name) or name in KEY_VARIABLES}
        found = known | set(self.stored.values()) | SECRETS.values(self.environment)
        return tuple(sorted(found - {"", KEYRING}))


def variable_of(provider: str) -> str:
    """The environment variable of a provider's key: ANTHROPIC_API_KEY."""
    return f"{provider.upper().replace('-', '_')}_API_KEY"


def load_credentials(path: Path, environment: Mapping[str, str]) -> Credentials:
    """Read the file, closing it to other users first.

    Raises:
        ConfigError: it is not what `[provider] api_key = "..."` looks like; no value is quoted.
    """
    try:
        close_to_others(path)
        text = read_text(path, MOST_SETTINGS)
    except FileNotFoundError:
        return Credentials(environment, {})
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    import tomllib  # noqa: PLC0415 - where there is such a file

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None
    place = _place(document.get(MCP), text, path)
    keys = {name: table for name, table in document.items() if name != MCP or not place or "api_key" in table}
    stored = {name: _key_in(table, name, text, path) for name, table in keys.items()}
    return Credentials(environment, stored, place or PLACES[0])


def save_key(path: Path, provider: str, key: str) -> None:
    """Store the key of one provider, beside the others.

    Raises:
        ConfigError: the file is broken.
        OSError: it cannot be written.
    """
    SECRETS.add_value(key)  # logs were opened before it was known
    before = load_credentials(path, {})
    stored = dict(before.stored) | {provider: key}
    tables = {name: f"[{toml_text(name)}]\napi_key = {toml_text(value)}\n" for name, value in stored.items()}
    if before.mcp_tokens != PLACES[0]:
        tables[MCP] = tables.get(MCP, f"[{MCP}]\n") + f"{TOKENS} = {toml_text(before.mcp_tokens)}\n"
    write_file(path, "\n".join(tables.values()))


def _place(table: object, text: str, path: Path) -> str:
    """Place that a table `[mcp]` names; empty where it names none."""
    if not isinstance(table, dict) or TOKENS not in table:
        return ""
    value = cast("dict[str, object]", table)[TOKENS]
    if value not in PLACES:
        allowed = " or ".join(f'"{one}"' for one in PLACES)
        raise ConfigError(f"{path}:{line_of(text, TOKENS, MCP)}: tokens must be {allowed}.")
    return str(value)


def _key_in(table: object, name: str, text: str, path: Path) -> str:
    value = cast("dict[str, object]", table).get("api_key") if isinstance(table, dict) else None
    if not isinstance(value, str) or not value:
        raise ConfigError(f'{path}:{line_of(text, name)}: [{name}] must hold api_key = "...".')
    return value


def _from_keyring(provider: str) -> str:
    try:
        keyring: Any = import_module("keyring")  # 157 ms, and an extra that need not be installed
    except ImportError as error:
        raise ConfigError(
            "credentials.toml uses the keyring, which is not installed; install `phoenix-tui[keyring]`."
        ) from error
    try:
        key = str(keyring.get_password(SERVICE, provider) or "")
    except Exception as error:  # each keyring has errors of its own: locked, no session bus
        raise ConfigError(f"The key of {provider} cannot be read from the keyring: {error}.") from error
    SECRETS.add_value(key)
    return key
