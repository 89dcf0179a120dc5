"""A supervisor in lines: on, off, and its decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.executor.requests import Refused
from phoenix_tui.linear.command import LinearCommand
from phoenix_tui.text import route_text

if TYPE_CHECKING:
    from phoenix_tui.linear.front import LinearFront


async def _route(front: LinearFront, wish: str) -> None:
    said = await route_text.change_route(await front.talk.current(), wish)
    if isinstance(said, Refused):
        front.say(said.reason)
    elif isinstance(said, str):
        front.say(said)


COMMANDS: Final = {"route": LinearCommand("let a supervisor decide who answers: on, off, start, alone", _route)}
