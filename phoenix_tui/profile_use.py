"""What changes when another profile is to be used for new conversations; both front ends do the same."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from engine.executor.requests import EngineError
from engine.records import PermissionMode
from phoenix_tui.profile_surface import ProfileChoice, ProfilesSurface
from phoenix_tui.surface import Launch
from tools.clean import clean_line


class ProfileUse(Struct, frozen=True):
    """How conversations begin from now on."""

    launch: Launch
    model: str = ""
    """Empty: the model in use stays."""
    mode: PermissionMode | None = None
    """None: the mode in use stays."""
    special: str = ""
    """What the profile sets, in words; empty where it sets neither model nor mode."""
    remark: str = ""
    """What it asks for and cannot have now."""


def use_of(launch: Launch, profiles: ProfilesSurface, name: str) -> ProfileUse:
    """Begin as `name`; what the profile before it set goes back to what it was.

    Raises:
        EngineError: there is no such profile, or its file is wrong.
    """
    choice, before = profiles.chosen(name), _before(launch, profiles)
    model, mode = choice.model, choice.mode
    if before is not None and before.model:
        model = model or profiles.own_model or launch.model
    if before is not None and before.mode is not None:
        mode = mode or profiles.own_mode
    words = (
        f"model {clean_line(choice.model)}" if choice.model else "",
        f"mode {choice.mode.value}" if choice.mode is not None else "",
    )
    return ProfileUse(
        replace(launch, profile=choice.profile, append_system_prompt=choice.append_system_prompt),
        model,
        mode,
        ", ".join(filter(None, words)),
        f"Its sandbox counts with `--profile {name}`." if choice.sandbox else "",
    )


def _before(launch: Launch, profiles: ProfilesSurface) -> ProfileChoice | None:
    """What the profile in use chose; None where there is none, or where it is gone."""
    try:
        return profiles.chosen(launch.profile) if launch.profile else None
    except EngineError:
        return None
