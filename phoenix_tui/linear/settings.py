"""Phoenix itself in lines: settings, help, state and the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.machine.states import is_busy
from phoenix_tui.features.catalogue import LINE_COMMANDS
from phoenix_tui.features.front_end import Option
from phoenix_tui.features.service_interfaces import Setting
from phoenix_tui.features.settings import SettingOrder, SettingsCommands
from phoenix_tui.linear.line_context import LinearContext
from tools.clean import clean_line
from tools.wording import pluralize

WAYS: Final = ("Change it", "Reset it: take it out of config.toml")


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


async def run_config(ctx: LinearContext, argument: str) -> None:
    await SettingsCommands(ctx, LineSettingsAsker(ctx)).config(argument)


async def run_state(ctx: LinearContext, _: str) -> None:
    live = [one for one in ctx.services.engine.live() if is_busy(one.state)]
    busy = "Working." if ctx.active.busy else "Ready."
    ctx.say(f"{busy} {pluralize(len(live), 'conversation')} working in all.")


async def run_quit(ctx: LinearContext, _: str) -> None:
    ctx.leave(0)


async def run_help(ctx: LinearContext, _: str) -> None:
    """Read out all commands, and what a line may begin with."""
    ctx.say("Commands:", *(f"/{one.name}: {one.in_lines or one.meaning}." for one in LINE_COMMANDS.values()))
    ctx.say(
        "!COMMAND runs a command for you, and the model reads its output. With !!COMMAND only you see the output.",
        "Up and Down recall earlier lines. Ctrl+J starts a new line in a message.",
        "To answer a question, type y, s, a, n or r, then Enter. A message sent while the agent works is queued.",
        "A line with only the path of an image attaches the image.",
    )
