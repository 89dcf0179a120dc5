"""Agents of plugins: `agents/*.md` of the folders of `--plugin-dir`, as profiles `PLUGIN:NAME`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.ports.profiles import Profile
from phoenix_tui.cli.control.host_agents import agent_profile
from phoenix_tui.cli.control.requests import RequestError
from phoenix_tui.config.front_matter import FrontMatterError, Value, read_front_matter
from phoenix_tui.config.sources.kinds import Plugin
from phoenix_tui.config.sources.plugins import rooted
from tools.clean import clean_line
from tools.contract import JsonObject, JsonValue
from tools.files.own_files import read_regular

FOLDER: Final = "agents"
SUFFIX: Final = ".md"
MOST_AGENTS: Final = 200
"""Agents of one plugin."""
MOST_BYTES: Final = 256 * 1024
LONGEST_NAME: Final = 64
_LISTS: Final = frozenset({"tools", "disallowedTools"})
_NUMBERS: Final = frozenset({"maxTurns"})


class PluginAgents(Struct, frozen=True):
    """The agents of one plugin, and its files that cannot be used, each with a clause that says why."""

    profiles: tuple[Profile, ...] = ()
    errors: tuple[tuple[str, str], ...] = ()


def agents_of(plugin: Plugin) -> PluginAgents:
    """Read the agents of a plugin. They narrow the user's permissions, and never widen them."""
    profiles, errors = dict[str, Profile](), list[tuple[str, str]]()
    for path in _files(plugin.folder / FOLDER):
        if len(profiles) + len(errors) >= MOST_AGENTS:
            errors.append((str(path), f"a plugin has at most {MOST_AGENTS} agents"))
            break
        try:
            profile = _profile(path, plugin)
        except ValueError as error:
            errors.append((str(path), str(error)))
            continue
        if profiles.setdefault(profile.name, profile) is not profile:
            errors.append((str(path), f"there is an agent {profile.name} already"))
    return PluginAgents(tuple(profiles.values()), tuple(errors))


def _files(folder: Path) -> Iterator[Path]:
    try:
        paths = sorted(folder.iterdir())
    except OSError:
        paths = []
    return (path for path in paths if path.name.endswith(SUFFIX) and not path.name.startswith("."))


def _profile(path: Path, plugin: Plugin) -> Profile:
    """The profile of one file. Raises ValueError."""
    content = read_regular(path, MOST_BYTES + 1)
    if content is None:
        raise ValueError("it cannot be read")
    if len(content) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES // 1024} KB")
    try:
        found = read_front_matter(rooted(content, plugin).decode())
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8 text") from error
    except FrontMatterError as error:
        raise ValueError(f"line {error.line}: {error.sentence.rstrip('.')}") from error
    name = found.values.get("name") or path.name.removesuffix(SUFFIX)
    if not isinstance(name, str) or len(name) > LONGEST_NAME or clean_line(name) != name or name.split() != [name]:
        raise ValueError(f"its name must be one word of at most {LONGEST_NAME} characters")
    try:
        profile = agent_profile(f"{plugin.name}:{name}", _about(found.values, found.body))
    except RequestError as error:
        raise ValueError(str(error).rstrip(".")) from error
    return replace(profile, source=str(path), project=True)


def _about(values: Mapping[str, Value], body: str) -> JsonObject:
    """The fields as a host writes them."""
    about: JsonObject = {}
    for key, value in values.items():
        if key in _LISTS:
            about[key] = _listed(value)
        elif key in _NUMBERS:
            about[key] = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else 0
        elif isinstance(value, str):
            about[key] = value
    about["prompt"] = body.strip()
    return about


def _listed(value: Value) -> list[JsonValue]:
    names = value.split(",") if isinstance(value, str) else value
    return [name.strip() for name in names if name.strip()]
