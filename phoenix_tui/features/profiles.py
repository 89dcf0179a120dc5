"""The profile that new conversations begin with."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from engine.executor.requests import EngineError
from engine.machine.states import Idle
from engine.ports.profiles import narrower_mode, narrower_sandbox
from engine.records import PermissionMode
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.service_interfaces import ProfileChoice, ProfilesApi
from phoenix_tui.lifecycle.launch import Launch
from tools.clean import clean_line


class ProfileUse(Struct, frozen=True):
    """Options of conversations from now on."""

    launch: Launch
    model: str = ""
    """Empty: the model in use stays."""
    mode: PermissionMode | None = None
    """Permission mode; None: the present one stays."""
    special: str = ""
    """Settings of the profile, in words; empty when it sets no model, effort, mode or sandbox."""


async def use_profile(front: FrontEnd, name: str) -> None:
    """Begin new conversations with this profile, and the one in view if it is empty.

    Raises:
        EngineError: there is no such profile, or its file is wrong.
    """
    use = use_of(front.launch, front.services.profiles, name, front.mode)
    launch = replace(use.launch, permission_mode=use.mode or front.launch.permission_mode)
    shown = front.conversation
    begun = shown is not None and bool(shown.record.message_count or not isinstance(shown.state, Idle))
    front.prefer(launch=launch, model=use.model, mode=use.mode)
    if shown is not None and not begun:
        await front.begin_anew()
    begins = "New conversations start" if begun else "This conversation starts"
    stays = " This one is unchanged." if begun else ""
    front.tell(f"{begins} as {name}{f': {use.special}' if use.special else ''}.{stays}")


def use_of(launch: Launch, profiles: ProfilesApi, name: str, mode_now: PermissionMode) -> ProfileUse:
    """Begin as `name`, whose mode and sandbox only narrow; settings of the profile before it are reset.

    Raises:
        EngineError: there is no such profile, or its file is wrong.
    """
    choice, before = profiles.choose(name), _before(launch, profiles)
    model, mode = choice.model, choice.mode and narrower_mode(mode_now, choice.mode)
    sandbox, required = launch.sandbox, launch.sandbox_required
    if before is not None and before.model:
        model = model or profiles.own_model or launch.model
    if before is not None and before.mode is not None:
        mode = choice.mode or profiles.own_mode
    if before is not None and before.sandbox is not None:
        sandbox, required = profiles.own_sandbox
    if choice.sandbox is not None:
        sandbox, required = narrower_sandbox(sandbox, choice.sandbox), True
    effort = choice.effort or (profiles.own_effort if before is not None and before.effort else launch.effort)
    words = (
        f"model {clean_line(choice.model)}" if choice.model else "",
        f"effort {effort.value}" if choice.effort is not None else "",
        f"mode {mode.value}" if mode is not None and choice.mode is not None else "",
        f"sandbox {sandbox.value}" if choice.sandbox is not None else "",
    )
    return ProfileUse(
        replace(
            launch,
            profile=choice.profile,
            append_system_prompt=choice.append_system_prompt,
            sandbox=sandbox,
            sandbox_required=required,
            effort=effort,
        ),
        model,
        mode,
        ", ".join(filter(None, words)),
    )


def _before(launch: Launch, profiles: ProfilesApi) -> ProfileChoice | None:
    """Choice of the current profile; None without one, or when it is gone."""
    try:
        return profiles.choose(launch.profile) if launch.profile else None
    except EngineError:
        return None
