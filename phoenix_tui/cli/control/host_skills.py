"""Skills that a host chooses in the handshake: the model of its conversation sees and loads no others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from phoenix_tui.cli.control.requests import RequestError
from tools.contract import JsonObject

ALL: Final = "all"
MOST_NAMES: Final = 2_000


class HostSkills(Struct, frozen=True):
    """A part of the handshake; files stay readable, and the user's `/name` works as before."""

    offer: Callable[[Sequence[str] | None], None]
    """Takes the names that models are offered; None: every skill."""

    def begin(self, request: JsonObject) -> None:
        """Take the names of the handshake; without the field nothing changes. Raises RequestError."""
        names = request.get("skills")
        if names is None:
            return
        if names == ALL:
            self.offer(None)
            return
        if not isinstance(names, list) or len(names) > MOST_NAMES:
            raise RequestError(f'skills must be a list of at most {MOST_NAMES:,} names, or "{ALL}".')
        texts = [name for name in names if isinstance(name, str)]
        if len(texts) < len(names):
            raise RequestError("Each name in skills must be a text.")
        self.offer(texts)

    def init_fields(self) -> JsonObject:
        """Add no field: the list of skills is beside the commands."""
        return {}

    async def ready(self) -> None:
        """Return at once."""
