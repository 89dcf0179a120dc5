"""Commands about the agent, its model, key, permissions and sandbox, and about Phoenix itself: settings, looks, help,
the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.executor.requests import EngineError
from engine.records import PermissionMode
from phoenix_tui.commands.run import CommandContext
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features import model
from phoenix_tui.features.model import OfferedModels
from phoenix_tui.features.permissions import choose_mode, choose_sandbox, rule_places, use_mode
from phoenix_tui.features.service_interfaces import Setting
from phoenix_tui.features.settings import EVERY, SettingOrder, SettingsCommands
from phoenix_tui.keys.keymap import keys_of
from phoenix_tui.modals.help_sheet import HelpSheet
from phoenix_tui.modals.model_sheet import ModelSheet
from phoenix_tui.modals.rows_sheet import RESET, PickerRow, PickerSheet, SettingsSheet, ThemeSheet, when
from phoenix_tui.modals.rules_sheet import RulesSheet
from phoenix_tui.widgets.pasting import provider_of


async def run_theme(ctx: CommandContext, name: str) -> None:
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


async def run_mouse(ctx: CommandContext, word: str) -> None:
    """Take the mouse, or leave it to the terminal, which then selects and copies by itself."""
    wanted = {"on": True, "off": False}.get(word, not ctx.environment.mouse)
    ctx.environment.watch_mouse(wanted)
    ctx.tell("Phoenix uses the mouse." if wanted else "The terminal uses the mouse, to select and copy text.")


async def run_vim(ctx: CommandContext, word: str) -> None:
    """Vim's keys in the composer, or no longer; the choice is kept."""
    wanted = {"on": True, "off": False}.get(word, ctx.dock.composer.vim.keys is None)
    _settings(ctx).keep("vim", "true" if wanted else "false")


class SheetSettingsAsker:
    """Asks in sheets; a setting of two values is turned over without a question."""

    def __init__(self, ctx: CommandContext) -> None:
        self._ctx = ctx

    async def which_setting(self, settings: Sequence[Setting], before: str, *, every: bool) -> SettingOrder | None:
        """A sheet of the usual ones, or of all."""
        chosen = await self._ctx.sheets.show(SettingsSheet(settings, before, every=every))
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


async def run_config(ctx: CommandContext, argument: str) -> None:
    """The usual settings, or all; changed ones are kept in the user's file."""
    await _settings(ctx).config(argument)


async def change_setting(ctx: CommandContext, name: str) -> None:
    """Ask for another value and store it."""
    try:
        await _settings(ctx).change(name)
    except EngineError as error:
        ctx.tell(str(error), bad=True)


def keep_setting(ctx: CommandContext, name: str, value: str) -> None:
    """Store a value that a key chose, and put it into force."""
    _settings(ctx).keep(name, value)


async def run_help(ctx: CommandContext, argument: str) -> None:
    """The everyday keys, or those that count where the focus is."""
    screen = ctx.dock.screen
    own = [one.binding.id for one in screen.active_bindings.values() if one.node is screen.focused]
    await ctx.sheets.show(HelpSheet(ctx.keymap, keys_of(own), shows_every=argument == EVERY))


async def run_quit(ctx: CommandContext, _: str) -> None:
    """Leave."""
    await ctx.screen.run_action("app.leave")


async def run_rules(ctx: CommandContext, _: str) -> None:
    """All of them; the sheet stays open over changes."""
    places = rule_places(ScreenFrontEnd(ctx))
    await ctx.sheets.show(RulesSheet(ctx.active.services.engine.rules, places))


async def use_model(ctx: CommandContext, reference: str) -> None:
    """Use this model here and for new conversations of this session."""
    await model.use_model(ScreenFrontEnd(ctx), reference)


async def run_model(ctx: CommandContext, words: str) -> None:
    """Use or mark the model that is named, else show all of them, or those with these words."""
    front = ScreenFrontEnd(ctx)
    if await model.do_named(front, words):
        return
    models = OfferedModels(await front.services.models.list_known(), front, words)
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
            await run_key(ctx, target)
        case _:
            return


async def run_key(ctx: CommandContext, provider: str) -> None:
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
    await run_model(ctx, provider)


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


async def run_permissions(ctx: CommandContext, word: str) -> None:
    """Choose the calls that run without a question."""
    if await choose_mode(ScreenFrontEnd(ctx), word):
        await run_rules(ctx, "")


CYCLE: Final = (PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.PLAN)
"""The modes that Shift+Tab goes through; behind them `auto`, once the user has chosen it."""


async def next_mode(ctx: CommandContext) -> None:
    """The mode after the present one."""
    front = ScreenFrontEnd(ctx)
    active = ctx.active
    active.knows_auto = active.knows_auto or front.mode is PermissionMode.AUTO
    ring = (*CYCLE, PermissionMode.AUTO) if active.knows_auto else CYCLE
    place = ring.index(front.mode) if front.mode in ring else -1
    await use_mode(front, ring[(place + 1) % len(ring)])


async def run_sandbox(ctx: CommandContext, word: str) -> None:
    """Choose the sandbox of this conversation; a wider one is confirmed."""
    enforcement = await choose_sandbox(ScreenFrontEnd(ctx), word)
    if enforcement is not None:
        ctx.active.parts.status.enforcement = enforcement
