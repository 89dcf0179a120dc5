"""A supervisor in lines: on, off, and its decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.executor.requests import Refused
from phoenix_tui.features.route import change_route
from phoenix_tui.linear.command import LinearCommand

if TYPE_CHECKING:
    from phoenix_tui.linear.front import LinearFront


async def _route(front: LinearFront, asked: str) -> None:
    said = await change_route(await front.talk.current(), asked)
    if isinstance(said, Refused):
        front.say(said.reason)
    elif isinstance(said, str):
        front.say(said)


COMMANDS: Final = {"route": LinearCommand("let a supervisor decide who answers: on, off, start, alone", _route)}
