"""Commands that change how Phoenix works: model, key, permissions, theme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.executor.requests import EngineError
from engine.records import PermissionMode
from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.rules import rules
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd, on_screen
from phoenix_tui.features import model
from phoenix_tui.features.doctor import doctor
from phoenix_tui.features.effort import choose_effort
from phoenix_tui.features.model_list import ModelList
from phoenix_tui.features.permissions import choose_mode, choose_sandbox, use_mode
from phoenix_tui.features.settings import SettingOrder, SettingsCommands
from phoenix_tui.features.settings_api import Setting
from phoenix_tui.modals.model_sheet import ModelSheet
from phoenix_tui.modals.picker_sheet import PickerRow, PickerSheet
from phoenix_tui.modals.settings_sheet import RESET, SettingsSheet, ThemeSheet, when
from phoenix_tui.widgets.pasting import provider_of


async def use_model(ctx: CommandContext, reference: str) -> None:
    """Use this model here and for new conversations of this session."""
    await model.use_model(ScreenFrontEnd(ctx), reference)


async def choose_model(ctx: CommandContext, words: str) -> None:
    """Use or mark the model that is named, else show all of them, or those with these words."""
    front = ScreenFrontEnd(ctx)
    if await model.do_named(front, words):
        return
    models = ModelList(await front.services.models.known(), front, words)
    chosen = await ctx.sheets.show(ModelSheet(front, models)) or ""
    action, _, target = chosen.partition(" ")
    match action:
        case "use":
            await model.use_model(front, target)
        case "default":
            await model.use_by_default(front, target)
        case "effort":
            await model.use_with_effort(front, target)
        case "key":
            await key(ctx, target)
        case _:
            return


async def key(ctx: CommandContext, provider: str) -> None:
    """Keep an API key; it is never shown."""
    if provider and ctx.active.services.models.has_provider(provider):
        await _key_of(ctx, provider)
        return
    secret = await ctx.sheets.ask_line("Paste an API key (it is not shown)", secret=True)
    if secret:
        await keep_key(ctx, secret)


async def _key_of(ctx: CommandContext, provider: str) -> None:
    """Keep a key of this provider, then show its models."""
    secret = await ctx.sheets.ask_line(f"Paste an API key of {provider} (it is not shown)", secret=True)
    if not secret:
        return
    try:
        await ctx.active.services.onboarding.save_key(provider, secret)
    except EngineError as error:
        ctx.tell(str(error), bad=True)
        return
    ctx.tell(f"Key of {provider} saved.")
    await choose_model(ctx, provider)


async def keep_key(ctx: CommandContext, secret: str) -> None:
    """Keep it under the provider it belongs to and use that provider."""
    provider = provider_of(secret)
    if not provider:
        names = [PickerRow(name, name) for name in ("anthropic", "openai")]
        provider = await ctx.sheets.show(PickerSheet("Which provider is this key for?", names)) or ""
    if not provider:
        return
    try:
        reference = await ctx.active.services.onboarding.save_key(provider, secret)
    except EngineError as error:
        ctx.tell(str(error), bad=True)
        return
    await use_model(ctx, reference)
    ctx.tell(f"Key saved. Using {reference}.")


async def permissions(ctx: CommandContext, word: str) -> None:
    """Choose the calls that run without a question."""
    if await choose_mode(ScreenFrontEnd(ctx), word):
        await rules(ctx, "")


CYCLE: Final = (PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.AUTO, PermissionMode.PLAN)
"""The modes that Shift+Tab goes through."""


async def next_mode(ctx: CommandContext) -> None:
    """The mode after the present one."""
    front = ScreenFrontEnd(ctx)
    place = CYCLE.index(front.mode) if front.mode in CYCLE else -1
    await use_mode(front, CYCLE[(place + 1) % len(CYCLE)])


async def sandbox(ctx: CommandContext, word: str) -> None:
    """Choose the sandbox of this conversation; a wider one is confirmed."""
    enforcement = await choose_sandbox(ScreenFrontEnd(ctx), word)
    if enforcement is not None:
        ctx.active.parts.status.enforcement = enforcement


async def theme(ctx: CommandContext, name: str) -> None:
    """Choose the colours and keep the choice."""
    names = ctx.environment.colours.names()
    if name and name not in names:
        ctx.tell(f"There is no theme {name}. There are {', '.join(sorted(names))}.", bad=True)
    elif chosen := name or await choose_theme(ctx):
        _settings(ctx).keep("theme", chosen)


async def choose_theme(ctx: CommandContext) -> str | None:
    """Show each theme while it is chosen."""
    names = ctx.environment.colours.names()
    return await ctx.sheets.show(ThemeSheet(names, names[0], ctx.environment.colours))


async def mouse(ctx: CommandContext, word: str) -> None:
    """Take the mouse, or leave it to the terminal, which then selects and copies by itself."""
    wanted = {"on": True, "off": False}.get(word, not ctx.environment.mouse)
    ctx.environment.watch_mouse(wanted)
    ctx.tell("Phoenix uses the mouse." if wanted else "The terminal uses the mouse, to select and copy text.")


async def vim(ctx: CommandContext, word: str) -> None:
    """Vim's keys in the composer, or no longer; the choice is kept."""
    wanted = {"on": True, "off": False}.get(word, ctx.dock.composer.vim.keys is None)
    _settings(ctx).keep("vim", "true" if wanted else "false")


class SheetSettingsAsker:
    """Asks in sheets; a setting of two values is turned over without a question."""

    def __init__(self, ctx: CommandContext) -> None:
        self._ctx = ctx

    async def which_setting(self, settings: Sequence[Setting], before: str) -> SettingOrder | None:
        """The list of all."""
        chosen = await self._ctx.sheets.show(SettingsSheet(settings, before))
        return SettingOrder(chosen.removeprefix(RESET), chosen.startswith(RESET)) if chosen else None

    async def new_value(self, setting: Setting) -> str | None:
        """A line, or one of the allowed values."""
        sheets = self._ctx.sheets
        if setting.name == "theme":
            return await choose_theme(self._ctx)
        if setting.choices == ("true", "false"):
            return "false" if setting.value == "true" else "true"
        if setting.choices:
            choices = [PickerRow(one, one) for one in setting.choices]
            return await sheets.show(PickerSheet(setting.name, choices, current=setting.value))
        return await sheets.ask_line(f"{setting.name}: {setting.allowed}", setting.value)

    def apply(self, setting: Setting) -> None:
        """Show it in force."""
        self._ctx.environment.apply(setting.name, setting.value)

    def words(self, setting: Setting) -> str:
        """Value of a setting, and when it counts."""
        return f"{setting.name}: {setting.words or setting.value or 'not set'}, {when(setting)}."


def _settings(ctx: CommandContext) -> SettingsCommands:
    return SettingsCommands(ScreenFrontEnd(ctx), SheetSettingsAsker(ctx))


async def config(ctx: CommandContext, argument: str) -> None:
    """Every setting; changed ones are kept in the user's file."""
    await _settings(ctx).config(argument)


async def change_setting(ctx: CommandContext, name: str) -> None:
    """Ask for another value and store it."""
    try:
        await _settings(ctx).change(name)
    except EngineError as error:
        ctx.tell(str(error), bad=True)


RUNS: Final[dict[str, CommandFunction]] = {
    "model": choose_model,
    "effort": on_screen(choose_effort),
    "key": key,
    "permissions": permissions,
    "sandbox": sandbox,
    "theme": theme,
    "config": config,
    "doctor": on_screen(doctor),
    "mouse": mouse,
    "vim": vim,
}
