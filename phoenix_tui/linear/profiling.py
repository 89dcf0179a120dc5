"""Profiles in lines: what there is, what is wrong, and using one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine.ports.profiles import GENERAL
from phoenix_tui.features.profile_choice import use_of
from phoenix_tui.linear.command import LinearCommand
from tools.clean import clean_line

if TYPE_CHECKING:
    from phoenix_tui.linear.front import LinearFront


async def _profile(front: LinearFront, name: str) -> None:
    profiles = front.services.profiles
    if not name:
        front.say(*(clean_line(trouble.text) for trouble in profiles.troubles()))
        found = profiles.all()
        in_use = front.talk.launch.profile or GENERAL
        rows = [
            f"{one.name}{', in use' if one.name == in_use else ''}: {clean_line(one.description) or 'no description'}"
            for one in found
        ]
        chosen = await front.choose("Profiles:", rows)
        name = found[chosen].name if chosen is not None else ""
    if not name:
        return
    use = use_of(front.talk.launch, profiles, name, front.talk.mode)
    talk = front.talk
    talk.launch = replace(use.launch, permission_mode=use.mode or talk.launch.permission_mode)
    talk.model, talk.mode = use.model or talk.model, use.mode or talk.mode
    stays = "" if front.talk.conversation is None else " This one stays as it is; /new begins one."
    front.say(f"New conversations begin as {name}{f', {use.special}' if use.special else ''}.{stays}")


COMMANDS: Final = {"profile": LinearCommand("choose the profile of new conversations", _profile)}
