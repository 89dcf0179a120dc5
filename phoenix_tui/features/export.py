"""A conversation as a file: Markdown for people or JSON for `phoenix conversations import`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from engine.api.conversation import ConversationApi
from phoenix_tui.cli.blocks import encode
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.export import agent_markdown, markdown, write_new
from phoenix_tui.features.sub_agents import views_of
from phoenix_tui.lifecycle.launch import Services

ALL: Final = 1 << 40
"""Limit above the number of messages of any conversation."""
SHORT_ID: Final = 8


async def export_to(name: str, conversation: ConversationApi, services: Services) -> Path:
    """Write it to the file `name` in its folder, by itself `phoenix-ID.md`; a name that ends in `.json` gets JSON.

    Raises:
        CommandError: the file is there already or cannot be written.
        StorageError: the conversation cannot be read.
    """
    path = await asyncio.to_thread(_path, conversation, name)
    if path.suffix.lower() == ".json":
        text = encode(await services.library.export(conversation.id), indent=1) + "\n"
    else:
        found = await conversation.history(ALL, ALL)
        text = await asyncio.to_thread(markdown, conversation.record, found.messages, found.tool_calls)
        for view in views_of(services.engine, conversation.id):
            text += agent_markdown(view, await services.engine.bulk.newest(view.id, ALL))
    await asyncio.to_thread(write_new, path, text)
    return path


def _path(conversation: ConversationApi, name: str) -> Path:
    wanted = Path(name or f"phoenix-{conversation.id[:SHORT_ID]}.md")
    try:
        wanted = wanted.expanduser()
    except RuntimeError as error:  # no such user
        raise CommandError(f"{wanted} cannot be written: {error}") from error
    return conversation.record.cwd / wanted
