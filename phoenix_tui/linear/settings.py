"""Commands that change how Phoenix works: model, permissions, sandbox, profile, settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.ports.profiles import GENERAL
from phoenix_tui.features.effort import choose_effort
from phoenix_tui.features.front_end import Option
from phoenix_tui.features.model import choose_model
from phoenix_tui.features.permissions import choose_mode, choose_sandbox
from phoenix_tui.features.profiles import use_profile
from phoenix_tui.features.settings import SettingOrder, SettingsCommands
from phoenix_tui.features.settings_api import Setting
from phoenix_tui.linear.context import LinearContext, LineCommand
from phoenix_tui.linear.rules import choose_rule
from tools.clean import clean_line

WAYS: Final = ("Change it", "Reset it: take it out of config.toml")


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


class LineSettingsAsker:
    """Asks with numbered rows and lines."""

    def __init__(self, ctx: LinearContext) -> None:
        self._ctx = ctx

    async def which_setting(self, settings: Sequence[Setting], before: str) -> SettingOrder | None:
        """The list of all, once, and then the way."""
        chosen = None if before else await self._ctx.choose("Settings:", [self.words(one) for one in settings])
        if chosen is None:
            return None
        way = await self._ctx.choose(f"{settings[chosen].name}:", WAYS)
        return SettingOrder(settings[chosen].name, way == 1) if way is not None else None

    async def new_value(self, setting: Setting) -> str | None:
        """One of the allowed values, or a line."""
        self._ctx.say(self.words(setting))
        if setting.choices:
            choices = [Option(one, one) for one in setting.choices]
            return await self._ctx.pick(setting.name, choices, current=setting.value) or None
        return await self._ctx.ask_line(setting.name, setting.value) or None

    def apply(self, setting: Setting) -> None:
        """Do nothing: lines have no looks to change."""

    def words(self, setting: Setting) -> str:
        """Value of a setting, its source, and the allowed ones."""
        return clean_line(
            f"{setting.name}: {setting.value or 'not set'}, from {setting.source}. It is {setting.allowed}."
        )


async def _config(ctx: LinearContext, argument: str) -> None:
    await SettingsCommands(ctx, LineSettingsAsker(ctx)).config(argument)


RUNS: Final[dict[str, LineCommand]] = {
    "config": _config,
    "effort": choose_effort,
    "model": choose_model,
    "permissions": _permissions,
    "profile": _profile,
    "sandbox": _sandbox,
}
