"""Commands that change how Phoenix works: model, key, permissions, theme."""

from __future__ import annotations

from typing import Final

from engine.executor.requests import EngineError
from engine.records import PermissionMode
from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.commands.rules import rules
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd, on_screen
from phoenix_tui.features import model
from phoenix_tui.features.doctor import doctor
from phoenix_tui.features.permissions import choose_mode, choose_sandbox, use_mode
from phoenix_tui.features.settings_api import Setting
from phoenix_tui.modals.picker_sheet import PickerRow, PickerSheet
from phoenix_tui.modals.settings_sheet import RESET, SettingsSheet, ThemeSheet, when
from phoenix_tui.widgets.pasting import provider_of


async def use_model(ctx: CommandContext, reference: str) -> None:
    """Use this model here and for new conversations of this session."""
    await model.use_model(ScreenFrontEnd(ctx), reference)


async def key(ctx: CommandContext, _: str) -> None:
    """Keep an API key; it is never shown."""
    secret = await ctx.sheets.ask_line("Paste an API key (it is not shown)", secret=True)
    if secret:
        await keep_key(ctx, secret)


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
    enforced = await choose_sandbox(ScreenFrontEnd(ctx), word)
    if enforced is not None:
        ctx.active.parts.status.enforced = enforced


async def theme(ctx: CommandContext, name: str) -> None:
    """Choose the colours and keep the choice."""
    names = ctx.environment.colours.names()
    if name and name not in names:
        ctx.tell(f"There is no theme {name}. The themes are {', '.join(sorted(names))}.", bad=True)
        return
    sheet = ThemeSheet(names, names[0], ctx.environment.colours)
    if chosen := name or await ctx.sheets.show(sheet):
        _keep(ctx, "theme", chosen)


async def mouse(ctx: CommandContext, word: str) -> None:
    """Take the mouse, or leave it to the terminal, which then selects and copies by itself."""
    wanted = {"on": True, "off": False}.get(word, not ctx.environment.mouse)
    ctx.environment.watch_mouse(wanted)
    ctx.tell("Phoenix uses the mouse." if wanted else "The terminal uses the mouse, to select and copy text.")


async def vim(ctx: CommandContext, word: str) -> None:
    """Vim's keys in the composer, or no longer; the choice is kept."""
    wanted = {"on": True, "off": False}.get(word, ctx.dock.composer.vim.keys is None)
    _keep(ctx, "vim", "true" if wanted else "false")


async def config(ctx: CommandContext, name: str) -> None:
    """Every setting; changed ones are kept in the user's file."""
    if name:
        if (now := await change_setting(ctx, name)) is not None:
            ctx.tell(f"{name}: {now.words or now.value or 'not set'}, {when(now)}.")
        return
    current = ""
    while chosen := await ctx.sheets.show(SettingsSheet(ctx.active.services.settings.all(), current)):
        current = chosen.removeprefix(RESET)
        if chosen.startswith(RESET):
            ctx.active.services.settings.reset(current)
            _apply(ctx, current)
        else:
            await change_setting(ctx, current)


async def change_setting(ctx: CommandContext, name: str) -> Setting | None:
    """Ask for another value and store it; returns the setting as it is then, None when there is nothing to report.

    Raises:
        EngineError: the file is broken.
    """
    found = _setting(ctx, name)
    if found is None:
        ctx.tell(f"There is no setting {name}. /config lists all.", bad=True)
    elif name == "theme":
        await theme(ctx, "")
    elif (value := await _asked_value(ctx, found)) is not None:
        return _keep(ctx, name, value)
    return None


def _setting(ctx: CommandContext, name: str) -> Setting | None:
    return next((one for one in ctx.active.services.settings.all() if one.name == name), None)


async def _asked_value(ctx: CommandContext, setting: Setting) -> str | None:
    if setting.choices == ("true", "false"):
        return "false" if setting.value == "true" else "true"
    if setting.choices:
        choices = [PickerRow(one, one) for one in setting.choices]
        return await ctx.sheets.show(PickerSheet(setting.name, choices, current=setting.value))
    return await ctx.sheets.ask_line(f"{setting.name}: {setting.allowed}", setting.value)


def _keep(ctx: CommandContext, name: str, value: str) -> Setting | None:
    """Store it in the user's file; a setting that overrides that file is named, and gives None."""
    try:
        ctx.active.services.settings.save(name, value)
        _apply(ctx, name)
    except EngineError as error:
        ctx.tell(str(error), bad=True)
        return None
    now = _setting(ctx, name)
    if now is not None and now.value != value:
        ctx.tell(f"Saved, but {now.source} overrides it: {name} stays {now.value or 'not set'}.", bad=True)
        return None
    return now


def _apply(ctx: CommandContext, name: str) -> None:
    for one in ctx.active.services.settings.all():
        if one.name == name and one.live:
            ctx.environment.apply(name, one.value)


RUNS: Final[dict[str, Run]] = {
    "model": on_screen(model.choose_model),
    "key": key,
    "permissions": permissions,
    "sandbox": sandbox,
    "theme": theme,
    "config": config,
    "doctor": on_screen(doctor),
    "mouse": mouse,
    "vim": vim,
}
