"""/profile: which kind of agent new conversations begin as."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from engine.machine.states import Idle
from engine.ports.profiles import GENERAL
from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.features.profile_choice import use_of
from phoenix_tui.modals.profiles_sheet import ProfilesSheet


async def profile(ctx: CommandContext, name: str) -> None:
    """Choose one, or use the one that is named."""
    if not name:
        in_use = ctx.active.launch.profile or GENERAL
        name = await ctx.sheets.show(ProfilesSheet(ctx.active.services.profiles, in_use, ctx.tell)) or ""
    if name:
        await use_profile(ctx, name)


async def use_profile(ctx: CommandContext, name: str) -> None:
    """Begin new conversations as this one, and the one in view if nothing was said in it yet."""
    active = ctx.active
    use = use_of(active.launch, active.services.profiles, name, active.mode)
    active.launch = replace(use.launch, permission_mode=use.mode or active.launch.permission_mode)
    active.prefer(model=use.model, mode=use.mode)
    record = active.conversation.record if active.conversation is not None else None
    begun = record is not None and bool(record.message_count or not isinstance(record.state, Idle))
    if not begun:
        await _begin_anew(ctx)
    begins = "New conversations begin" if begun else "This conversation begins"
    sentences = (
        f"{begins} as {name}{f': {use.special}' if use.special else ''}.",
        "This one stays as it is." if begun else "",
    )
    ctx.tell(" ".join(filter(None, sentences)))


async def _begin_anew(ctx: CommandContext) -> None:
    """A conversation that exists but for its draft was made with the profile before: leave it, keep what is written."""
    if ctx.active.conversation is None:
        return
    dock = ctx.dock
    text, folds, images = dock.composer.content, dock.composer.folds, dock.chips.images
    dock.load("")
    dock.chips.images = ()
    await ctx.active.begin()
    dock.load(text, folds)
    dock.chips.images = images


RUNS: Final[dict[str, Run]] = {"profile": profile}
