"""Commands that change how Phoenix works: model, permissions, sandbox, profile, settings."""

from __future__ import annotations

from typing import Final

from engine.ports.profiles import GENERAL
from phoenix_tui.features.front_end import Option
from phoenix_tui.features.model import choose_model
from phoenix_tui.features.permissions import choose_mode, choose_sandbox
from phoenix_tui.features.profiles import use_profile
from phoenix_tui.linear.context import LinearContext, Run
from phoenix_tui.linear.rules import choose_rule
from tools.clean import clean_line


async def _permissions(ctx: LinearContext, word: str) -> None:
    if await choose_mode(ctx, word):
        await choose_rule(ctx)


async def _sandbox(ctx: LinearContext, word: str) -> None:
    await choose_sandbox(ctx, word)


async def _profile(ctx: LinearContext, name: str) -> None:
    profiles = ctx.services.profiles
    if not name:
        ctx.say(*(clean_line(trouble.text) for trouble in profiles.troubles()))
        in_use = ctx.launch.profile or GENERAL
        options = [Option(one.name, one.name, (one.description or "no description",)) for one in profiles.all()]
        name = await ctx.pick("Profiles", options, current=in_use)
    if name:
        await use_profile(ctx, name)


async def _config(ctx: LinearContext, text: str) -> None:
    name, _, value = text.partition(" ")
    settings = ctx.services.settings
    if value:
        settings.save(name, value.strip())
    found = [one for one in settings.all() if name in {"", one.name}]
    if not found:
        ctx.say(f"There is no setting {name}. /config lists all.")
    ctx.say(*(f"{one.name}: {one.value or 'not set'}, from {one.source}. It is {one.allowed}." for one in found))


RUNS: Final[dict[str, Run]] = {
    "config": _config,
    "model": choose_model,
    "permissions": _permissions,
    "profile": _profile,
    "sandbox": _sandbox,
}
