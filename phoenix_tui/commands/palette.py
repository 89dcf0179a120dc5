"""The palette: every command and key, conversations and settings; the last used comes first."""

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
from phoenix_tui.features.catalogue import BY_NAME, COMMANDS
from phoenix_tui.features.front_end import PageRow
from phoenix_tui.features.service_interfaces import Setting
from phoenix_tui.keys.keymap import KEYS, KEYS_BY_ID, Scope, key_names
from phoenix_tui.modals.rows_sheet import RowsSheet
from phoenix_tui.text.labels import age

MOST_RECENT: Final = 5
MOST_CONVERSATIONS: Final = 50
HERE: Final = frozenset({Scope.APP, Scope.WORKSPACE})
"""Scopes whose actions can be done from anywhere."""
NOT_LISTED: Final = frozenset({"palette", "stop", "interrupt", "help_outside"})


async def palette(ctx: CommandContext) -> None:
    """Choose one of everything and do it."""
    await asyncio.to_thread(ctx.used.read)
    sheet = RowsSheet("Commands and settings", await _entries(ctx, ctx.used.recent), "Enter runs")
    chosen = await ctx.sheets.show(sheet)
    if not chosen:
        return
    remembering = asyncio.create_task(asyncio.to_thread(ctx.used.add, chosen))
    try:
        await _do(ctx, chosen)  # at once: what is typed behind Enter is meant for that
    finally:
        await remembering


async def _entries(ctx: CommandContext, recent: Sequence[str]) -> list[PageRow]:
    listed = await ctx.active.services.engine.list(ConversationQuery(limit=MOST_CONVERSATIONS))
    try:
        settings = ctx.active.services.settings.all()
    except EngineError:
        settings = ()  # /config reports the fault of the file
    entries = [*_commands(ctx.keymap), *_conversations(listed), *_settings(settings)]
    by_key = {entry.key: entry for entry in entries}
    first = [by_key[key] for key in recent if key in by_key]
    return [*(replace(one, section="Recent") for one in first), *(one for one in entries if one not in first)]


def _commands(keymap: Mapping[str, str]) -> list[PageRow]:
    keys = {key.action: key_names(keymap.get(key.id, key.keys)) for key in reversed(KEYS)}
    commands = [
        PageRow(
            "Commands",
            f"command:{one.name}",
            f"/{one.name}",
            one.meaning,
            keys.get(f"command('{one.name}')", ""),
            one.argument,
        )
        for one in COMMANDS
    ]
    actions = [
        PageRow("Keys", f"key:{key.id}", key.id.replace("_", " "), key.meaning, key_names(keymap.get(key.id, key.keys)))
        for key in KEYS
        if key.scope in HERE and not key.action.startswith("command(") and key.id not in NOT_LISTED
    ]
    return [*commands, *actions]


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
