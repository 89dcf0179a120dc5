"""Agents that a host defines in the handshake, as profiles beside those of the user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from engine.ports.profiles import KNOWN_TOOLS, Profile, Profiles
from engine.records import PermissionMode
from engine.records.effort import Effort
from phoenix_tui.cli.control.flags import EFFORTS, FOREIGN_MODES
from phoenix_tui.cli.control.model_finder import known_model
from phoenix_tui.cli.control.requests import RequestError
from tools.contract import JsonObject, JsonValue
from tools.foreign_names import native_names

MOST_AGENTS: Final = 500
LONGEST_NAME: Final = 100
INHERIT: Final = "inherit"
"""Model of an agent that has its parent's."""
BY_HOST: Final = "the host"


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
        self._agents = {name: agent_profile(name, about) for name, about in agents.items()}

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
        own = {profile.name for profile in self.added()}
        return (*(one for one in base if one.name not in own), *self.added())

    def added(self) -> Sequence[Profile]:
        """Profiles of plugins and of the host."""
        return tuple((self._plugins | self._agents).values())

    def resolve(self, name: str, cwd: Path) -> Profile:
        """The profile called `name`. Raises ProfileError."""
        if name in self._agents or name in self._plugins:
            return self._agents.get(name) or self._plugins[name]
        assert self.base is not None, "the engine has asked for the profiles"
        return self.base.resolve(name, cwd)


def agent_profile(name: str, about: JsonValue) -> Profile:
    """The profile of an agent as hosts describe it. Raises RequestError."""
    if not isinstance(about, dict) or not name.strip() or len(name) > LONGEST_NAME:
        raise RequestError(f"The agent {name[:60]!r} must have a name and be an object.")
    tools, effort, mode = about.get("tools"), about.get("effort"), about.get("permissionMode")
    turns, model = about.get("maxTurns"), about.get("model")
    wanted = EFFORTS.get(effort, effort) if isinstance(effort, str) else ""
    return Profile(
        name=name,
        description=_text(about.get("description")),
        prompt=_text(about.get("prompt")),
        model=known_model(model) if isinstance(model, str) and model not in {"", INHERIT} else "",
        tools=_tools(tools, about.get("disallowedTools")),
        permission_mode=PermissionMode(FOREIGN_MODES[mode])
        if isinstance(mode, str) and mode in FOREIGN_MODES
        else None,
        max_turns=turns if isinstance(turns, int) and turns > 0 else 0,
        effort=wanted if wanted in set(Effort) else "",
        source=BY_HOST,
    )


def _tools(allowed: JsonValue, denied: JsonValue) -> tuple[str, ...]:
    """Native tools of an agent; none in the list: all of them."""
    left_out = set(_natives(denied))
    wanted = _natives(allowed) if isinstance(allowed, list) else (KNOWN_TOOLS if left_out else ())
    return tuple(dict.fromkeys(name for name in wanted if name not in left_out))


def _natives(names: JsonValue) -> tuple[str, ...]:
    given = [one for one in names if isinstance(one, str)] if isinstance(names, list) else []
    return tuple(native for one in given for native in native_names(one.partition("(")[0]))


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
