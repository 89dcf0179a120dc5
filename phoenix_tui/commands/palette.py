"""The palette: commands, actions and settings; what was used last comes first, and typing finds more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from engine.executor.requests import EngineError
from engine.records import ConversationQuery, ConversationSummary
from phoenix_tui.commands.run import CommandContext, run_command
from phoenix_tui.commands.settings import change_setting
from phoenix_tui.features.catalogue import BY_NAME, COMMANDS, LISTED, SECTION, SlashCommand
from phoenix_tui.features.front_end import PageRow
from phoenix_tui.features.service_interfaces import Setting
from phoenix_tui.features.use_log import COMMAND
from phoenix_tui.keys.keymap import KEYS, KEYS_BY_ID, Key, Scope, key_names
from phoenix_tui.modals.rows_sheet import RowsSheet
from phoenix_tui.text.labels import age

MOST_RECENT: Final = 5
MOST_CONVERSATIONS: Final = 50
ACTIONS: Final = ("list", "mode", "details", "blocks", "todo", "suspend")
"""Keys without a command that one may look for."""
HERE: Final = frozenset({Scope.APP, Scope.WORKSPACE})
"""Scopes whose actions can be done from anywhere."""
NOT_LISTED: Final = frozenset({"palette", "stop", "interrupt", "help_outside", "quit", *ACTIONS})


async def palette(ctx: CommandContext) -> None:
    """Choose one of everything and do it."""
    await asyncio.to_thread(ctx.used.read)
    first, every = await _entries(ctx)
    chosen = await ctx.sheets.show(RowsSheet("Commands and settings", first, "Enter runs", every=every))
    if not chosen:
        return
    remembering = asyncio.create_task(asyncio.to_thread(ctx.used.add, chosen))
    try:
        await _do(ctx, chosen)  # at once: what is typed behind Enter is meant for that
    finally:
        await remembering


async def _entries(ctx: CommandContext) -> tuple[list[PageRow], list[PageRow]]:
    """The rows to begin with, and those that a query finds."""
    listed = await ctx.active.services.engine.list(ConversationQuery(limit=MOST_CONVERSATIONS))
    try:
        settings = ctx.active.services.settings.all()
    except EngineError:
        settings = ()  # /config reports the fault of the file
    usual = [one for one in settings if one.is_usual and one.name not in SECTION]
    others = [one for one in settings if one not in usual]
    begin = [*_commands(ctx.keymap, LISTED), *_actions(ctx.keymap, ACTIONS), *_settings(usual)]
    hidden = [one for one in COMMANDS if one.shown_in and not one.tab]
    more = [key.id for key in KEYS if key.scope in HERE and key.id not in NOT_LISTED and not is_command_key(key)]
    every = [*begin, *_commands(ctx.keymap, hidden), *_actions(ctx.keymap, more), *_conversations(listed)]
    every += _settings(others)
    by_key = {entry.key: entry for entry in every}
    recent = [replace(by_key[key], section="Recent") for key in ctx.used.recent if key in by_key][:MOST_RECENT]
    keys = {one.key for one in recent}
    return [*recent, *(one for one in begin if one.key not in keys)], every


def is_command_key(key: Key) -> bool:
    """True for a key that runs a slash command, which is a row already."""
    return key.action.startswith("command(")


def _commands(keymap: Mapping[str, str], commands: Sequence[SlashCommand]) -> list[PageRow]:
    keys = {key.action: key_names(keymap.get(key.id, key.keys)) for key in reversed(KEYS)}
    return [
        PageRow(
            SECTION.get(one.name, "Commands"),
            f"{COMMAND}{one.name}",
            f"/{one.name}",
            one.meaning,
            keys.get(f"command('{one.name}')", ""),
            one.argument,
        )
        for one in commands
    ]


def _actions(keymap: Mapping[str, str], names: Sequence[str]) -> list[PageRow]:
    keys = [KEYS_BY_ID[name] for name in names]
    return [
        PageRow("Keys", f"key:{one.id}", one.id.replace("_", " "), one.meaning, key_names(keymap.get(one.id, one.keys)))
        for one in keys
    ]


def _conversations(listed: Sequence[ConversationSummary]) -> list[PageRow]:
    now = time.time()
    rows = [(one, one.title or "New conversation", age(now - one.updated_at)) for one in listed]
    return [PageRow("Conversations", f"open:{one.id}", title, one.cwd.name, when) for one, title, when in rows]


def _settings(settings: Sequence[Setting]) -> list[PageRow]:
    return [
        PageRow("Settings", f"setting:{one.name}", one.name, one.meaning.partition(";")[0], one.words or one.value)
        for one in settings
    ]


async def _do(ctx: CommandContext, chosen: str) -> None:
    kind, _, name = chosen.partition(":")
    match kind:
        case "command" if BY_NAME[name].required:
            ctx.dock.composer.put(f"/{name} ")
        case "command":
            await run_command(ctx, name, "")
        case "key":
            await ctx.environment.act(KEYS_BY_ID[name].action)
        case "open":
            await ctx.active.open(name)
        case _:
            await change_setting(ctx, name)
