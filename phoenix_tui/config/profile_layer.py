"""Settings that a conversation begun with `--profile NAME` takes from that profile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from phoenix_tui.config.load import Layer
from phoenix_tui.config.settings import ConfigError, Settings, SettingValue, narrows

if TYPE_CHECKING:
    from engine.ports.profiles import Profile
    from phoenix_tui.config.profile_files import ProfileFiles
    from phoenix_tui.config.trust import TrustFile

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
