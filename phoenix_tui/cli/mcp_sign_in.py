"""`phoenix mcp login` and `logout`: tokens of servers over HTTP."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from typing import Final

from engine.ports.mcp import McpServers, ServerState, ServerView
from engine.records import ConversationRecord
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.output import write_line, write_progress
from phoenix_tui.features.mcp_sign_in import sign_in_lines
from tools.clean import clean_line

SIGNING: Final = frozenset({"login", "logout"})
ENDS: Final = frozenset({ServerState.FAILED, ServerState.NEEDS_AUTH})
LOOK: Final = 0.5
"""Seconds between two looks at the server."""
PATIENCE: Final = 330.0
"""Seconds for a sign-in; the helper gives up after 300."""
LONGEST: Final = 16_384


async def change_access(servers: McpServers, record: ConversationRecord, arguments: CommandArguments) -> Exit:
    """Sign in to a server, or delete its tokens.

    Raises:
        CommandError: that is not possible.
    """
    name = arguments.name
    if arguments.action == "logout":
        if why := await servers.sign_ins.forget(record, name):
            raise CommandError(why)
        write_line(f"Signed out of {clean_line(name)}; its tokens are deleted.")
        return Exit.OK
    found = await servers.sign_ins.begin(record, name)
    if isinstance(found, str):
        raise CommandError(found, Exit.FAILED)
    for line in sign_in_lines(name, found):
        write_line(line)
    pasting = asyncio.create_task(_paste(servers, record, name))
    try:
        async with asyncio.timeout(PATIENCE):
            view = await _outcome(servers, record, name)
    except TimeoutError:
        raise CommandError("Nobody signed in within 5 minutes.", Exit.FAILED) from None
    finally:
        pasting.cancel()
    if view.state is not ServerState.CONNECTED:
        raise CommandError(f"{clean_line(name)}: {clean_line(view.text).rstrip('.') or view.state.value}.", Exit.FAILED)
    write_line(f"Signed in to {clean_line(name)}.")
    return Exit.OK


async def _outcome(servers: McpServers, record: ConversationRecord, name: str) -> ServerView:
    """The server once it is connected, or has another reason why it is not."""
    before = ""
    while True:
        view = next(one for one in await servers.views(record) if one.name == name)
        before = before or view.text or view.state.value
        if view.state is ServerState.CONNECTED or (view.state in ENDS and (view.text or view.state.value) != before):
            return view
        await asyncio.sleep(LOOK)


async def _paste(servers: McpServers, record: ConversationRecord, name: str) -> None:
    """Take addresses from standard input, line by line."""
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=LONGEST)
    if not sys.stdin.isatty() and not stat.S_ISFIFO(os.fstat(0).st_mode) and not stat.S_ISSOCK(os.fstat(0).st_mode):
        return  # of a file or /dev/null the loop cannot wait for lines, and says so too late to be caught
    try:
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            if (text := line.decode("utf-8", "replace").strip()) and (
                why := await servers.sign_ins.paste(record, name, text)
            ):
                write_progress(f"phoenix: {why}")
    except (OSError, ValueError):
        return  # a file, or a line without an end: the browser comes back by itself
