"""/profile: which kind of agent new conversations begin as."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from engine.executor.requests import EngineError
from engine.machine.states import Idle
from engine.ports.profiles import GENERAL
from phoenix_tui.commands.bench import Bench, Run
from phoenix_tui.profile_surface import ProfileChoice
from phoenix_tui.screens.profiles_sheet import ProfilesSheet
from tools.clean import clean_line


async def profile(bench: Bench, name: str) -> None:
    """Choose one, or use the one that is named."""
    if not name:
        in_use = bench.desk.launch.profile or GENERAL
        name = await bench.sheets.pick(ProfilesSheet(bench.desk.services.profiles, in_use, bench.tell)) or ""
    if name:
        await use_profile(bench, name)


async def use_profile(bench: Bench, name: str) -> None:
    """Begin new conversations as this one; what the one before it set goes back to what it was."""
    desk, profiles = bench.desk, bench.desk.services.profiles
    choice, before = profiles.chosen(name), _before(bench)
    model = choice.model or (_own_model(bench) if before is not None and before.model else "")
    mode = choice.mode or (profiles.own_mode if before is not None and before.mode is not None else None)
    desk.launch = replace(desk.launch, profile=choice.profile, append_system_prompt=choice.append_system_prompt)
    desk.prefer(model=model, mode=mode)
    conversation = desk.conversation
    begun = conversation is not None and (conversation.record.message_count or not isinstance(conversation.state, Idle))
    if not begun:
        await _begin_anew(bench)
    bench.tell(_words(name, choice, begun=bool(begun)))


def _own_model(bench: Bench) -> str:
    return bench.desk.services.profiles.own_model or bench.desk.launch.model


def _before(bench: Bench) -> ProfileChoice | None:
    """What the profile in use chose; None where there is none, or where it is gone."""
    in_use = bench.desk.launch.profile
    try:
        return bench.desk.services.profiles.chosen(in_use) if in_use else None
    except EngineError:
        return None


async def _begin_anew(bench: Bench) -> None:
    """A conversation that exists but for its draft was made with the profile before: leave it, keep what is written."""
    if bench.desk.conversation is None:
        return
    dock = bench.dock
    text, folds, images = dock.composer.content, dock.composer.folds, dock.chips.images
    dock.load("")
    dock.chips.images = ()
    await bench.desk.begin()
    dock.load(text, folds)
    dock.chips.images = images


def _words(name: str, choice: ProfileChoice, *, begun: bool) -> str:
    begins = "New conversations begin" if begun else "This conversation begins"
    special = [
        f"model {clean_line(choice.model)}" if choice.model else "",
        f"mode {choice.mode.value}" if choice.mode is not None else "",
    ]
    details = ", ".join(filter(None, special))
    ends = " This one stays as it is." if begun else ""
    sandbox = f" Its sandbox counts with `--profile {name}`." if choice.sandbox else ""
    return f"{begins} as {name}{f': {details}' if details else ''}.{ends}{sandbox}"


RUNS: Final[dict[str, Run]] = {"profile": profile}
