"""Skills and command files in the frames of a host: it sends them as `/name` in a message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct

from engine.ports.invocables import Catalogue, Invocable
from tools.contract import JsonObject, JsonValue


class HostCommands(Struct, frozen=True):
    """A part of the handshake; the files are looked at before the first turn."""

    catalogue: Callable[[], Catalogue]
    """The newest catalogue, from memory."""
    offered: Callable[[], Catalogue]
    """The same with the skills that models are offered."""
    look: Callable[[], Awaitable[None]]
    """Looks at the files again, within its own bound."""

    def begin(self, request: JsonObject) -> None:
        """Take nothing: a host defines no commands."""

    async def ready(self) -> None:
        """Look at the files."""
        await self.look()

    def init_fields(self) -> JsonObject:
        """Names of what a user may call, and of the skills that models are offered."""
        calls: list[JsonValue] = [one.name for one in _called(self.catalogue())]
        skills: list[JsonValue] = [skill.name for skill in self.offered().skills]
        return {"slash_commands": calls, "skills": skills}

    def objects(self) -> list[JsonValue]:
        """The commands as the answer to the handshake lists them."""
        return [
            {"name": one.name, "description": one.description, "argumentHint": one.argument_hint}
            for one in _called(self.catalogue())
        ]


def _called(catalogue: Catalogue) -> list[Invocable]:
    """All that a user may call by its plain name."""
    found = (*catalogue.commands, *catalogue.skills)
    return [one for one in found if one.for_users and catalogue.called(one.name) is one]
