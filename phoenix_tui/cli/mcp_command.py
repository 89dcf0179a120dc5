"""`phoenix mcp`: list, read, define, remove and try MCP servers."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from engine.ports.mcp import ServerOrigin, ServerState, ServerView
from engine.records import ConversationRecord
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.output import write_json, write_line, write_progress, write_table
from phoenix_tui.config.settings import ConfigError
from phoenix_tui.config.sources.server_definitions import DefinitionPlace, parse_definition
from phoenix_tui.config.sources.server_files import PROJECT_FILE, BadServers, add_server, remove_server
from phoenix_tui.features.mcp import sign_in_lines
from phoenix_tui.text.server_text import NO_SERVERS, command_words, details, facts, origin_words, sandbox_words
from tools.clean import clean_line, reveal_name
from tools.contract import JsonObject

if TYPE_CHECKING:
    from engine.extensions.mcp.hub import McpHub

PROJECT: Final = "project"
SETTLING: Final = 30.0
"""Seconds that `test` waits for a connection."""


async def show_servers(servers: McpHub, record: ConversationRecord, arguments: CommandArguments) -> Exit:
    """`list`, `get` and `test`.

    Raises:
        CommandError: there is no such server.
    """
    if arguments.action == "test":
        await servers.settle(record, SETTLING)
    views = await servers.views(record)
    for notice in await servers.notices(record):
        write_progress(f"phoenix: {clean_line(notice)}")
    if arguments.action == "list":
        return _list(views, arguments)
    chosen = [view for view in views if not arguments.name or view.name == arguments.name]
    if not chosen and (arguments.name or arguments.action == "get"):
        raise CommandError(f"There is no MCP server {clean_line(arguments.name)}; `phoenix mcp list` shows all.")
    if arguments.action == "get":
        if arguments.json:
            write_json(_object(chosen[0]))
        else:
            write_line(f"{clean_line(chosen[0].name)}\n{details(chosen[0])}")
        return Exit.OK
    return _test_servers(chosen, arguments)


def _list(views: Sequence[ServerView], arguments: CommandArguments) -> Exit:
    if arguments.json:
        write_json([_object(view) for view in views])
    elif views:
        rows = [
            (
                clean_line(view.name),
                _definition_state(view),
                view.transport,
                view.sandbox.value if view.sandbox is not None else "-",
                command_words(view),
                origin_words(view),
            )
            for view in views
        ]
        write_table(("NAME", "STATE", "TRANSPORT", "SANDBOX", "COMMAND OR ADDRESS", "DEFINED IN"), rows)
    else:
        write_line(NO_SERVERS)
    return Exit.OK


def _definition_state(view: ServerView) -> str:
    """State of a server that nothing was asked of: usable, off, or wrong."""
    return "ok" if view.state is ServerState.WAITING else f"{view.state.value}: {view.text}".removesuffix(": ")


def _test_servers(views: Sequence[ServerView], arguments: CommandArguments) -> Exit:
    if arguments.json:
        write_json([_object(view) for view in views])
    else:
        for view in views:
            words = sandbox_words(view.sandbox, view.sandbox_reason)
            sandbox = f"sandbox {words}" if words else ""
            write_line(f"{clean_line(view.name)}: {', '.join(filter(None, (view.state.value, facts(view), sandbox)))}")
    wanted = [view for view in views if view.state is not ServerState.OFF]
    return Exit.OK if all(view.state is ServerState.CONNECTED for view in wanted) else Exit.FAILED


def _object(view: ServerView) -> JsonObject:
    return {
        "name": view.name,
        "state": view.state.value,
        "cause": view.text,
        "transport": view.transport,
        "command": command_words(view),
        "source": origin_words(view),
        "sandbox": view.sandbox.value if view.sandbox is not None else None,
        "sandbox_reason": view.sandbox_reason.value if view.sandbox is not None else None,
        "kept": str(view.kept) if view.kept is not None else None,
        "tools": list(view.tools),
        "tokens": view.tokens,
        "sampling": "ask" if view.samples else "off",
    }


def change_servers(arguments: CommandArguments, config_file: Path, cwd: Path) -> Exit:
    """`add`, `add-json` and `remove`, in the user's config.toml or in `.mcp.json` of this folder.

    Raises:
        CommandError: the definition is wrong, or the file cannot be changed.
    """
    path = cwd / PROJECT_FILE if arguments.scope == PROJECT else config_file
    try:
        if arguments.action == "remove":
            remove_server(path, arguments.name)
            write_line(f"Removed {clean_line(arguments.name)} from {reveal_name(path)}")
        else:
            definition = _definition(arguments)
            origin = ServerOrigin.PROJECT if path.name == PROJECT_FILE else ServerOrigin.USER
            made, _ = parse_definition(
                arguments.name, definition, DefinitionPlace(origin, reveal_name(path), cwd, os.environ)
            )
            if not made.digest:  # a variable may be missing now, and a wrong definition is never usable
                raise CommandError(made.trouble)
            add_server(path, arguments.name, definition)
            write_line(f"Added {clean_line(arguments.name)} to {reveal_name(path)}")
    except OSError as error:
        raise CommandError(f"{reveal_name(path)}: {error.strerror or error}.", Exit.FAILED) from error
    except (BadServers, ConfigError) as error:
        raise CommandError(str(error)) from error
    return Exit.OK


def _definition(arguments: CommandArguments) -> dict[str, object]:
    if arguments.action == "add-json":
        try:
            given: object = json.loads(arguments.text)
        except (ValueError, RecursionError) as error:
            raise CommandError("The definition is not valid JSON; it is a table such as '{\"command\": …}'.") from error
        if not isinstance(given, dict):
            raise CommandError("The definition must be a JSON table such as '{\"command\": …}'.")
        return cast("dict[str, object]", given)
    first, *rest = arguments.rest
    is_address = first.startswith(("http://", "https://"))
    made: dict[str, object] = {"type": arguments.transport or ("http" if is_address else "stdio")}
    made |= {"url": first} if made["type"] != "stdio" else {"command": first, "args": rest}
    if made["type"] != "stdio" and rest:
        raise CommandError("An address takes no further arguments; put options before the name.")
    if arguments.sandbox:
        made["sandbox"] = arguments.sandbox
    for key, pairs, sign in (("env", arguments.env, "="), ("headers", arguments.header, ":")):
        table = dict(_pair(pair, sign) for pair in pairs)
        made |= {key: table} if table else {}
    return made


def _pair(text: str, sign: str) -> tuple[str, str]:
    name, found, value = text.partition(sign)
    if not found or not name.strip():
        raise CommandError(f"'{clean_line(text)}' must have the form NAME{sign}VALUE.")
    return name.strip(), value.strip() if sign == ":" else value


SIGNING: Final = frozenset({"login", "logout"})
ENDS: Final = frozenset({ServerState.FAILED, ServerState.NEEDS_AUTH})
LOOK: Final = 0.5
"""Seconds between two looks at the server."""
PATIENCE: Final = 330.0
"""Seconds for a sign-in; the helper gives up after 300."""
LONGEST: Final = 16_384


async def change_access(servers: McpHub, record: ConversationRecord, arguments: CommandArguments) -> Exit:
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


async def _outcome(servers: McpHub, record: ConversationRecord, name: str) -> ServerView:
    """The server once it is connected, or has another reason why it is not."""
    before = ""
    while True:
        view = next(one for one in await servers.views(record) if one.name == name)
        before = before or view.text or view.state.value
        if view.state is ServerState.CONNECTED or (view.state in ENDS and (view.text or view.state.value) != before):
            return view
        await asyncio.sleep(LOOK)


async def _paste(servers: McpHub, record: ConversationRecord, name: str) -> None:
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
