"""Plugins that a host names with `--plugin-dir`: those that count, and why others do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from phoenix_tui.config.sources.kinds import Plugin
from phoenix_tui.config.sources.plugins import find_plugin
from tools.clean import clean_line
from tools.contract import JsonObject, JsonValue

if TYPE_CHECKING:
    from engine.ports.profiles import Profile

MOST_PLUGINS: Final = 50


class HostPlugins(Struct, frozen=True):
    """A part of the handshake: the plugins of one connection."""

    found: tuple[Plugin, ...] = ()
    errors: tuple[tuple[str, str], ...] = ()
    """Folders that are no plugins and files that cannot be used, each with a clause that says why."""
    agents: tuple[Profile, ...] = ()
    """Agents of the plugins, read once."""

    def begin(self, request: JsonObject) -> None:
        """Take nothing: plugins are on the command line."""

    async def ready(self) -> None:
        """Return at once."""

    def init_fields(self) -> JsonObject:
        """The plugins in the init frame, and errors where there are any."""
        plugins: list[JsonValue] = [{"name": one.name, "path": str(one.folder)} for one in self.found]
        errors: list[JsonValue] = [
            {"plugin": Path(folder).name, "type": "generic-error", "message": why, "path": folder}
            for folder, why in self.errors
        ]
        fields: JsonObject = {"plugins": plugins}
        if errors:
            fields["plugin_errors"] = errors
        return fields

    @property
    def notices(self) -> list[str]:
        """Lines for stderr."""
        return [f"--plugin-dir {clean_line(path)[:200]} is not used: {clean_line(why)}." for path, why in self.errors]


def host_plugins(folders: Sequence[str], cwd: Path, without_servers: Sequence[str] = ()) -> HostPlugins:
    """The plugins of these folders; a name that is there already counts once."""
    found, errors = dict[str, Plugin](), list[tuple[str, str]]()
    for folder, has_servers in (*((one, True) for one in folders), *((one, False) for one in without_servers)):
        try:
            plugin = _free(replace(find_plugin(folder, cwd), has_servers=has_servers), found)
        except ValueError as error:
            errors.append((folder, str(error)))
        else:
            found[plugin.name] = plugin
    if not found:
        return HostPlugins(errors=tuple(errors))
    from phoenix_tui.cli.control.plugin_agents import agents_of  # noqa: PLC0415 - 100 ms, not for a wrong command line

    read = [agents_of(plugin) for plugin in found.values()]
    errors += (error for one in read for error in one.errors)
    return HostPlugins(tuple(found.values()), tuple(errors), tuple(profile for one in read for profile in one.profiles))


def _free(plugin: Plugin, found: Mapping[str, Plugin]) -> Plugin:
    """The plugin, where there is room for it and its name. Raises ValueError."""
    if plugin.name in found:
        raise ValueError(f"there is a plugin {plugin.name} already")
    if len(found) >= MOST_PLUGINS:
        raise ValueError(f"a run has at most {MOST_PLUGINS} plugins")
    return plugin
