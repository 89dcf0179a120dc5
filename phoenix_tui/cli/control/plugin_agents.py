"""Agents of plugins: `agents/*.md` of the folders of `--plugin-dir`, as profiles `PLUGIN:NAME`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.ports.profiles import Profile
from phoenix_tui.config.sources.agents import MOST_BYTES, SUFFIX, AgentError, agent_in
from phoenix_tui.config.sources.kinds import Plugin
from phoenix_tui.config.sources.plugins import rooted
from tools.files.own_files import read_regular

FOLDER: Final = "agents"
MOST_AGENTS: Final = 200
"""Agents of one plugin."""


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
        except AgentError as error:
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
    """The profile of one file. Raises AgentError."""
    content = read_regular(path, MOST_BYTES + 1)
    if content is None:
        raise AgentError("it cannot be read")
    if len(content) <= MOST_BYTES:
        content = rooted(content, plugin)
    return agent_in(content, path, f"{plugin.name}:").profile
