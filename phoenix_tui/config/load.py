"""Reads and merges the settings of every layer (flag > environment > project > user > default) and of a profile, and
changes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from msgspec import Struct, convert, field
from msgspec.structs import replace

from phoenix_tui.config.presets import PRESETS
from phoenix_tui.config.provider_tables import TABLES, check_patterns, check_table, note_secrets
from phoenix_tui.config.settings import (
    AUTO,
    BUILT_IN_KINDS,
    DEFAULT_MODE,
    KEYS,
    NO_HOSTS,
    ONLY_OF_KIND,
    PROVIDER_KEYS,
    ConfigError,
    ProviderSettings,
    SettingKey,
    Settings,
    SettingValue,
    StatusLineSettings,
    TableError,
    WebSettings,
    megabytes,
    narrows,
    status_line_of,
    web_settings_of,
)
from tools.files.own_files import MOST_SETTINGS, read_text, write_file

if TYPE_CHECKING:
    from engine.ports.profiles import Profile
    from phoenix_tui.config.profile_files import ProfileFiles
    from phoenix_tui.config.trust import TrustFile


Table = TypeVar("Table")

LINES = "screen_reader"
FILTER = "models"
"""Key of a provider's table with the filter of its list of models."""
DUMB = "TERM=dumb"
"""Source of a setting that such a terminal decides: it can draw no screen."""


class Layer(Struct, frozen=True):
    """One source of settings."""

    values: dict[str, SettingValue] = field(default_factory=dict[str, SettingValue])
    sources: dict[str, str] = field(default_factory=dict[str, str])
    providers: tuple[ProviderSettings, ...] = ()
    status_line: StatusLineSettings | None = None
    web: WebSettings | None = None
    notices: list[str] = field(default_factory=list[str])
    """Sentences about values that were replaced."""

    def take(self, key: SettingKey, value: object, where: str) -> None:
        """Add a value, or the default of a key that falls back to it.

        Raises:
            ConfigError: the value is not allowed.
        """
        if key.falls_back and isinstance(value, str) and value not in key.choices:
            self.notices.append(f"{where}: '{key.name}' must be {key.allowed}; '{key.default}' is used.")
            value = key.default
        self.values[key.name] = check(key, value, where)
        self.sources[key.name] = where


def user_layer(path: Path) -> Layer:
    """The user's config.toml; empty when there is none. The variables that it names for keys are secrets from then on.

    Raises:
        ConfigError: it cannot be read, or holds a wrong key or value.
    """
    try:
        text = read_text(path, MOST_SETTINGS)
    except FileNotFoundError:
        note_secrets((), None)
        return Layer()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    layer = parse_layer(text, path, project=False)
    note_secrets(layer.providers, layer.web)
    return layer


def parse_layer(text: str, path: Path, *, project: bool) -> Layer:
    """Parse the settings in `text`, the content of the file `path`.

    Raises:
        ConfigError: not TOML, an unknown key, or a value that is not allowed.
    """
    import tomllib  # noqa: PLC0415 - where there is such a file

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error
    layer = Layer()
    known = {name: key for name, key in KEYS.items() if key.projects or not project}
    providers: list[ProviderSettings] = []
    status_line: StatusLineSettings | None = None
    web: WebSettings | None = None
    for name, value in document.items():
        where = f"{path}:{line_of(text, name)}"
        if name == "providers" and not project:
            providers = _providers(value, text, path)
        elif name == "status_line" and not project:
            status_line = _table(name, status_line_of, value, text, path)
        elif name == "web" and not project:
            web = _table(name, web_settings_of, value, text, path)
        elif name == "mcp" or (name in {"hooks", "lsp", "format"} and not project):
            continue  # `server_files.py` reads [mcp.NAME], `wiring/hooks.py` [hooks], `language_servers.py` the others
        elif name not in known:
            raise ConfigError(f"{where}: unknown key '{name}'. {_describe_known_keys(known, project=project)}")
        else:
            layer.take(known[name], value, where)
    return Layer(layer.values, layer.sources, tuple(providers), status_line, web, layer.notices)


def environment_layer(environment: Mapping[str, str]) -> Layer:
    """PHOENIX_MODEL and the like.

    Raises:
        ConfigError: a value that is not allowed.
    """
    layer = Layer()
    for key in KEYS.values():
        text = environment.get(key.variable, "")
        if text:
            layer.take(key, from_text(key, text), key.variable)
    if LINES not in layer.values and (reason := _reason_for_lines(environment)):
        layer.values[LINES], layer.sources[LINES] = True, reason
    return layer


def _reason_for_lines(environment: Mapping[str, str]) -> str:
    """Reason outside Phoenix's settings for plain lines; empty without one."""
    if environment.get("ACCESSIBLE", "") not in {"", "0", "false"}:
        return "ACCESSIBLE"
    return DUMB if environment.get("TERM") == "dumb" else ""


def flag_layer(flags: Mapping[str, SettingValue | None]) -> Layer:
    """Settings given as flags; None means not given."""
    given = {name: value for name, value in flags.items() if value is not None}
    return Layer(given, {name: f"--{name.replace('_', '-')}" for name in given})


def merge(user: Layer, project: Layer, environment: Layer, flags: Layer) -> Settings:
    """Merge the settings in force; a widening of a project is left out and reported."""
    values = {name: key.default for name, key in KEYS.items()} | user.values
    sources = dict.fromkeys(KEYS, "default") | user.sources
    notices = [*user.notices, *environment.notices]
    for name, value in project.values.items():
        if narrows(name, value, values[name]):
            values[name], sources[name] = value, project.sources[name]
        elif value != values[name] and (name, value, values[name]) != ("permission_mode", DEFAULT_MODE, ""):
            notices.append(
                f"{project.sources[name]}: a project or profile can only restrict {name}; '{value}' is ignored."
            )
    for layer in (environment, flags):
        values |= layer.values
        sources |= layer.sources
    return Settings(values, sources, user.providers, user.status_line, user.web, tuple(notices))


def check(key: SettingKey, value: object, where: str) -> SettingValue:
    """`value` if `key` allows it.

    Raises:
        ConfigError: naming where, key and the allowed values.
    """
    if key.kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if key.is_size and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if key.is_hosts and isinstance(value, list):
        value = ", ".join(map(str, cast("list[object]", value))) or NO_HOSTS
    right_type = isinstance(value, key.kind) and (key.kind is bool or not isinstance(value, bool))
    if not right_type or (key.choices and value not in key.choices):
        raise ConfigError(f"{where}: '{key.name}' must be {key.allowed}, not {value!r}.")
    if isinstance(value, int | float) and not key.in_bounds(value):
        raise ConfigError(f"{where}: '{key.name}' must be {key.allowed}, not {value!r}.")
    if key.is_size and value != AUTO and megabytes(str(value)) is None:
        raise ConfigError(f"{where}: '{key.name}' must be {key.allowed}, not {value!r}.")
    if key.is_hosts and value not in {"", NO_HOSTS}:
        from engine.permissions.hosts import why_no_hosts  # noqa: PLC0415 - only where there is such a list

        if why := why_no_hosts(str(value)):
            raise ConfigError(f"{where}: '{key.name}' must be {key.allowed}. {why}")
    return cast("SettingValue", value)


def line_of(text: str, key: str, table: str = "") -> int:
    """The line of `key` in its table, 1 when it cannot be seen (an inline or dotted spelling)."""
    current = ""
    name = re.escape(key)
    for number, line in enumerate(text.splitlines(), 1):
        heading = re.match(r"\s*+\[++([^\]]+)\]", line)
        if heading:
            current = heading[1].strip()
            if not table and current.split(".")[0] == key:
                return number
        elif current == table and re.match(rf"""\s*["']?{name}["']?\s*[.=]""", line):
            return number
    return 1


def from_text(key: SettingKey, text: str) -> object:
    """Parse a value written as text; an invalid one stays text, for `check` to refuse."""
    if key.kind is bool:
        return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}.get(text.lower(), text)
    if key.kind is str:
        return text
    try:
        return key.kind(text)
    except ValueError:
        return text


def _describe_known_keys(known: Mapping[str, SettingKey], *, project: bool) -> str:
    if project:
        return f"A project can set {', '.join(known)}."
    tables = "[providers.NAME], [mcp.NAME], [lsp.NAME], [format], [web], [status_line] and [hooks]"
    return f"Valid keys are {', '.join(known)}, and tables {tables}."


def _table(name: str, read: Callable[[object], Table], value: object, text: str, path: Path) -> Table:
    """The settings of a table. Raises ConfigError with the line of the wrong key."""
    try:
        return read(value)
    except TableError as error:
        line = line_of(text, error.key, name) if error.key else 1
        raise ConfigError(f"{path}:{line if line > 1 else line_of(text, name)}: {error}") from error


def _providers(value: object, text: str, path: Path) -> list[ProviderSettings]:
    if not isinstance(value, dict):
        raise ConfigError(f"{path}:{line_of(text, 'providers')}: 'providers' must be tables [providers.NAME].")
    tables = cast("dict[str, object]", value)
    return [_provider(name, table, text, path) for name, table in tables.items()]


def _provider(name: str, table: object, text: str, path: Path) -> ProviderSettings:
    heading = f"providers.{name}"
    if not isinstance(table, dict):
        raise ConfigError(f"{path}:{line_of(text, name, 'providers')}: '{heading}' must be a table.")
    fields: dict[str, object] = {"name": name, "kind": BUILT_IN_KINDS.get(name, "openai")}
    for key, value in cast("dict[str, object]", table).items():
        where = f"{path}:{line_of(text, key, heading)}"
        if key in TABLES:
            fields[key] = check_table(key, value, where)
        elif key == FILTER:
            fields[key] = check_patterns(value, where)
        elif key in PROVIDER_KEYS:
            fields[key] = check(PROVIDER_KEYS[key], value, where)
        else:
            known = ", ".join((*PROVIDER_KEYS, FILTER, *TABLES))
            raise ConfigError(f"{where}: unknown key '{key}' in [{heading}]. Valid keys are {known}.")
    _check_kind(name, fields, lambda key: f"{path}:{line_of(text, key, heading)}")
    address = fields.get("base_url", "")
    is_known = name in BUILT_IN_KINDS or (fields["kind"] == "openai" and fields.get("preset", name) in PRESETS)
    if (address or not is_known) and not str(address).startswith(("http://", "https://")):
        line = line_of(text, "base_url", heading)
        raise ConfigError(f"{path}:{line}: [{heading}] needs 'base_url', an http:// or https:// address.")
    return convert(fields, ProviderSettings)


def _check_kind(name: str, fields: Mapping[str, object], where: Callable[[str], str]) -> None:
    kind = fields["kind"]
    built_in = BUILT_IN_KINDS.get(name, kind)
    if kind != built_in:
        raise ConfigError(f"{where('kind')}: 'kind' of [providers.{name}] is {built_in} and cannot be changed.")
    for key in fields:
        if ONLY_OF_KIND.get(key, kind) != kind:
            raise ConfigError(f"{where(key)}: '{key}' works with kind = '{ONLY_OF_KIND[key]}' only, not '{kind}'.")


def set_value(path: Path, name: str, value: object) -> None:
    """Write `name = value` into the file `path`, which is made if need be.

    Raises:
        ConfigError: the key or value is not allowed, or the file is broken already.
        OSError: it cannot be written.
    """
    if name not in KEYS:
        raise ConfigError(f"Unknown key '{name}'. Valid keys are {', '.join(KEYS)}.")
    checked = check(KEYS[name], value, str(path))
    _rewrite(path, name, checked)


def remove_value(path: Path, name: str) -> None:
    """Take `name` out of the file `path`; nothing happens where it is not in it.

    Raises:
        ConfigError: the file is broken.
        OSError: it cannot be written.
    """
    if path.exists():
        _rewrite(path, name, None)


def _rewrite(path: Path, name: str, value: SettingValue | None) -> None:
    user_layer(path)  # a file with an error stays as the user left it
    import tomlkit  # noqa: PLC0415 - 40 ms, needed only to change a file

    document = tomlkit.parse(read_text(path, MOST_SETTINGS) if path.exists() else "")
    if value is None:
        document.pop(name, None)
    else:
        document[name] = value
    write_file(path, tomlkit.dumps(document))


def toml_text(text: str) -> str:
    """`text` as a TOML string; JSON's rules are TOML's but for one character."""
    import json  # noqa: PLC0415 - not for the first frame

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


Agents: TypeAlias = "Callable[[Path], Sequence[Profile]]"
"""Agents that may be used in a folder."""
NARROWED = ("permission_mode", "sandbox")
"""Settings that any profile can only narrow."""


def open_profiles(folder: Path, trust: TrustFile) -> ProfileFiles:
    """The user's profiles in `folder`, and those of projects that are trusted."""
    from phoenix_tui.config.profile_files import ProfileFiles  # noqa: PLC0415 - engine modules, not for every start

    return ProfileFiles(folder, trust)


def choose_profile(profiles: ProfileFiles, name: str, cwd: Path, agents: Agents | None = None) -> Profile | None:
    """The profile of a conversation of the user, else the agent of that name; None without a request for one.

    Raises:
        ConfigError: there is no such profile, or its file is wrong; file, line and allowed values are named.
    """
    from engine.ports.profiles import BUILT_IN, GENERAL, ProfileError  # noqa: PLC0415 - as above

    if not name:
        return None
    try:
        found = profiles.resolve(name, cwd)
    except ProfileError as error:
        others = {one.name: one for one in agents(cwd)} if agents is not None and error.path is None else {}
        if name not in others:
            raise ConfigError(_unknown(profiles, name, cwd, list(others)) or str(error)) from error
        return others[name]
    return None if (found.name, found.source) == (GENERAL, BUILT_IN) else found


def _unknown(profiles: ProfileFiles, name: str, cwd: Path, others: Sequence[str]) -> str:
    """The error with the names of agents; empty without any."""
    from engine.ports.profiles import ProfileError  # noqa: PLC0415 - as above

    try:
        profiles.resolve(name, cwd, others)
    except ProfileError as error:
        return str(error) if others else ""
    return ""


def profile_layer(profile: Profile) -> Layer:
    """Settings of a profile, each with file and line. Limits count where a file names them: built-in ones are for
    sub-agents.
    """
    from engine.ports.profiles import BUILT_IN  # noqa: PLC0415 - as above

    values: dict[str, SettingValue] = {
        "model": profile.model,
        "effort": profile.effort,
        "permission_mode": profile.permission_mode.value if profile.permission_mode is not None else "",
        "sandbox": profile.sandbox,
    }
    if profile.source != BUILT_IN:
        values |= {"max_turns": profile.max_turns, "timeout": profile.timeout}
    given = {name: value for name, value in values.items() if value}
    return Layer(given, {name: _source(profile, name) for name in given})


def with_profile(user: Layer, narrowing: Layer, profile: Profile | None) -> tuple[Layer, Layer]:
    """The user's settings and their narrowing, with a profile on top: its mode and sandbox only narrow."""
    if profile is None:
        return user, narrowing
    layer = profile_layer(profile)
    above = [
        name for name in layer.values if name not in NARROWED and not (profile.project and _widens(name, layer, user))
    ]
    below = [name for name in layer.values if name in NARROWED and _narrower(name, layer, narrowing)]
    return _select_values(user, layer, above), _select_values(narrowing, layer, below)


def add_instructions(settings: Settings, profile: Profile | None) -> Settings:
    """Settings with the profile's prompt before other additions to the system prompt."""
    if profile is None or not profile.prompt:
        return settings
    added = settings.text("append_system_prompt")
    source = f"{_source(profile, '')} and {settings.sources['append_system_prompt']}" if added else _source(profile, "")
    return replace(
        settings,
        values=settings.values | {"append_system_prompt": "\n\n".join(filter(None, (profile.prompt, added)))},
        sources=settings.sources | {"append_system_prompt": source},
    )


def _source(profile: Profile, key: str) -> str:
    from engine.ports.profiles import BUILT_IN  # noqa: PLC0415 - as above
    from phoenix_tui.config.profile_files import FILE_LIMIT, key_lines  # noqa: PLC0415 - as above
    from tools.files.own_files import read_file  # noqa: PLC0415 - as above

    if profile.source == BUILT_IN:
        return f"built-in profile {profile.name}"
    try:
        line = key_lines(read_file(Path(profile.source), FILE_LIMIT).decode("utf-8", "replace")).get(key, 0)
    except OSError:
        line = 0
    return f"{profile.source}:{line}" if line else profile.source


def _select_values(base: Layer, layer: Layer, names: list[str]) -> Layer:
    values = {name: layer.values[name] for name in names}
    sources = base.sources | {name: layer.sources[name] for name in names}
    return Layer(base.values | values, sources, base.providers, base.status_line, base.web)


def _widens(name: str, layer: Layer, user: Layer) -> bool:
    """True when a project's limit is above the user's own; a model is no limit."""
    own, wanted = user.values.get(name), layer.values[name]
    return isinstance(own, int | float) and isinstance(wanted, int | float) and 0 < own < wanted


def _narrower(name: str, layer: Layer, narrowing: Layer) -> bool:
    return name not in narrowing.values or narrows(name, layer.values[name], narrowing.values[name])
