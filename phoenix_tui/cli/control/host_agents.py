"""Agents that a host defines in the handshake, as profiles beside those of the user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from engine.ports.profiles import Profile, Profiles
from phoenix_tui.cli.control.requests import RequestError
from phoenix_tui.config.sources.agents import AgentError, agent_profile
from tools.contract import JsonObject, JsonValue

MOST_AGENTS: Final = 500


class HostAgents:
    """Profiles of the user, of plugins and of one host; a name of the host's wins."""

    def __init__(self, plugins: Iterable[Profile] = ()) -> None:
        self.base: Profiles | None = None
        self._plugins = {profile.name: profile for profile in plugins}
        self._agents: dict[str, Profile] = {}
        self.cwd = Path("/")

    def over(self, base: Profiles) -> Profiles:
        """Stand before the profiles of the user."""
        self.base = base
        return self

    def begin(self, request: JsonObject) -> None:
        """Take the agents of the handshake. Raises RequestError."""
        agents = request.get("agents")
        if agents is None:
            return
        if not isinstance(agents, dict) or len(agents) > MOST_AGENTS:
            raise RequestError(f"agents must be an object of at most {MOST_AGENTS} agents.")
        try:
            self._agents = {name: agent_profile(name, about) for name, about in agents.items()}
        except AgentError as error:
            raise RequestError(f"{error}.") from error

    def init_fields(self) -> JsonObject:
        """The names in the init frame."""
        names: list[JsonValue] = [profile.name for profile in self.names(self.cwd)]
        return {"agents": names}

    def objects(self) -> list[JsonValue]:
        """The agents as the answer to the handshake lists them."""
        return [{"name": one.name, "description": one.description} for one in self.names(self.cwd)]

    async def ready(self) -> None:
        """Return at once."""

    def names(self, cwd: Path) -> Sequence[Profile]:
        """Profiles that can be used in this folder."""
        base = self.base.names(cwd) if self.base is not None else ()
        own = self._plugins | self._agents
        return (*(one for one in base if one.name not in own), *own.values())

    def added(self, cwd: Path) -> Sequence[Profile]:
        """Profiles of files, of plugins and of the host."""
        files = {one.name: one for one in self.base.added(cwd)} if self.base is not None else {}
        return tuple((files | self._plugins | self._agents).values())

    def resolve(self, name: str, cwd: Path) -> Profile:
        """The profile called `name`. Raises ProfileError."""
        if name in self._agents or name in self._plugins:
            return self._agents.get(name) or self._plugins[name]
        assert self.base is not None, "the engine has asked for the profiles"
        return self.base.resolve(name, cwd)
