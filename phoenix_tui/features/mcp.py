"""The MCP servers of the conversation in view: listed, read, connected, ended, signed in to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.executor.requests import EngineError
from engine.ports import ConversationChanges
from engine.ports.mcp import McpServers, ServerState, ServerView, SignInAddress, Unchosen
from engine.records import ConversationRecord
from phoenix_tui.config.sources.kinds import SourceKind
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.trust import trust_in_view
from phoenix_tui.text.server_text import command_words, details, share_words, state_words
from phoenix_tui.text.trust_text import counts, join_words
from tools.call_values import SandboxMode
from tools.clean import clean_line

NONE: Final = "MCP servers are not available here."
SETTLED: Final = 0.5
"""Seconds that the list waits for servers that start with it."""


async def servers_in_view(front: FrontEnd) -> Sequence[ServerView]:
    """Servers of the conversation in view, which are started where nothing has needed them."""
    servers, record = await _of(front)
    await servers.settle(record, SETTLED)
    return await servers.views(record)


async def servers_now(front: FrontEnd) -> Sequence[ServerView]:
    """Servers of the conversation in view as they are; nothing is started."""
    servers, record = await _of(front)
    return await servers.views(record)


async def server_shares(front: FrontEnd) -> str:
    """Tokens of each server of the conversation in view, in words; empty without any."""
    return "" if front.services.mcp is None else share_words(await servers_now(front))


async def left_out(front: FrontEnd) -> Sequence[str]:
    """Sentences about servers that wait for trust, and about files and entries that define no server."""
    servers, record = await _of(front)
    return [*await _untrusted(front), *(clean_line(notice) for notice in await servers.notices(record))]


async def _untrusted(front: FrontEnd) -> Sequence[str]:
    """A sentence about servers of the folder that are not used before a yes."""
    try:
        report = await trust_in_view(front)
    except EngineError:
        return ()
    waiting = [entry for entry in report.waiting() if entry.kind is SourceKind.SERVERS]
    return (f"Not used before your yes: {join_words(counts(waiting))} of this folder; see /trust.",) if waiting else ()


async def details_of(front: FrontEnd, name: str) -> str:
    """Details of a server, with its log."""
    servers, record = await _of(front)
    view = await servers.details(record, name)
    return details(view) if view is not None else f"There is no MCP server {clean_line(name)} any more."


async def reconnect(front: FrontEnd, name: str) -> str:
    """End a server and connect again; returns the outcome."""
    servers, record = await _of(front)
    await servers.reconnect(record, name)
    return await _outcome(servers, record, name)


async def switch(front: FrontEnd, view: ServerView) -> str:
    """Switch a server off in this conversation, or on again; returns the outcome."""
    conversation = await front.current()
    others = tuple(name for name in conversation.record.mcp_off if name != view.name)
    await conversation.change(ConversationChanges(mcp_off=others if not view.is_on else (*others, view.name)))
    words = "is off in this conversation" if view.is_on else "is on again"
    return f"{clean_line(view.name)} {words}; the next request is sent without what was cached of its tools."


async def switch_for_good(front: FrontEnd, view: ServerView) -> str:
    """Switch a server off in every conversation, or on again; returns the outcome."""
    servers, record = await _of(front)
    try:
        await servers.choices.switch(record, view.name, on=view.is_off)
    except Unchosen as error:
        raise EngineError(str(error)) from error
    return f"{clean_line(view.name)} is {'on again' if view.is_off else 'off for good; this switches it on again'}."


async def leave_sandbox(front: FrontEnd, view: ServerView) -> str:
    """Run a server without a sandbox from now on; returns the outcome."""
    return await _choose_sandbox(front, view, SandboxMode.OFF)


async def enter_sandbox(front: FrontEnd, view: ServerView) -> str:
    """Run a server in a sandbox again: that of the conversation, or workspace; returns the outcome."""
    own = (await _of(front))[1].sandbox
    return await _choose_sandbox(front, view, SandboxMode.WORKSPACE if own is SandboxMode.OFF else own)


async def _choose_sandbox(front: FrontEnd, view: ServerView, mode: SandboxMode) -> str:
    servers, record = await _of(front)
    try:
        await servers.choices.choose_sandbox(record, view.name, mode)
    except Unchosen as error:
        raise EngineError(str(error)) from error
    await servers.settle(record, SETTLED)
    words = "without a sandbox" if mode is SandboxMode.OFF else f"in the sandbox {mode.value}"
    return f"{clean_line(view.name)} runs {words}, as long as its definition stays as it is."


def sandbox_question(view: ServerView) -> str:
    """The question before a server runs without a sandbox."""
    return (
        f"{clean_line(view.name)} runs this command, defined in {view.source or 'this run'}:\n{command_words(view)}\n"
        "Without a sandbox it can read and write what you can, keys and all projects included. Run it without?"
    )


async def forget_kept(front: FrontEnd, view: ServerView) -> str:
    """Remove what a server has written below the home folder in its sandbox; returns the outcome."""
    servers, record = await _of(front)
    name = clean_line(view.name)
    if not await servers.forget_kept(record, view.name):
        return f"{name} has written nothing below the home folder in a sandbox."
    return f"What {name} had written below the home folder is removed; its next use starts it again."


def kept_question(view: ServerView) -> str:
    """The question before what a server keeps is removed."""
    return f"Remove all that {clean_line(view.name)} has written below the home folder in its sandbox? This is final."


async def allow_secrets(front: FrontEnd, view: ServerView) -> str:
    """Let a project's server have the secrets that it names; returns the outcome."""
    servers, record = await _of(front)
    try:
        await servers.choices.allow_secrets(record, view.name)
    except Unchosen as error:
        raise EngineError(str(error)) from error
    await servers.settle(record, SETTLED)
    return f"{clean_line(view.name)} gets {', '.join(view.secrets)} until its definition changes."


def secrets_question(view: ServerView) -> str:
    """The question before a project's server gets secrets: which, and where they go."""
    does = "runs this command" if view.transport == "stdio" else "sends them to this address"
    return (
        f"{clean_line(view.name)} is defined by this project, in {view.source}.\n"
        f"It wants the values of {', '.join(view.secrets)} from your environment, and {does}:\n"
        f"{command_words(view)}\nGive them to it?"
    )


async def end(front: FrontEnd, name: str) -> str:
    """End a server; returns the outcome."""
    servers, record = await _of(front)
    await servers.end(record, name)
    return f"{clean_line(name)} has ended; its next use starts it again."


async def _outcome(servers: McpServers, record: ConversationRecord, name: str) -> str:
    view = next((one for one in await servers.views(record) if one.name == name), None)
    if view is None:
        return f"There is no MCP server {clean_line(name)} any more."
    words = view.state.value if view.state is ServerState.CONNECTED else state_words(view)
    return f"{clean_line(name)}: {words}."


async def _of(front: FrontEnd) -> tuple[McpServers, ConversationRecord]:
    servers = front.services.mcp
    if servers is None:
        raise EngineError(NONE)
    return servers, (await front.current()).record


PASTED: Final = "The address was taken; Phoenix connects."


async def begin(front: FrontEnd, name: str) -> SignInAddress:
    """The address to open in a browser.

    Raises:
        EngineError: there is none; the sentence says why.
    """
    servers, record = await _of(front)
    found = await servers.sign_ins.begin(record, name)
    if isinstance(found, str):
        raise EngineError(found)
    return found


async def paste(front: FrontEnd, name: str, url: str) -> str:
    """Take the address that the browser was sent to; returns the outcome."""
    servers, record = await _of(front)
    return await servers.sign_ins.paste(record, name, url) or PASTED


async def sign_out(front: FrontEnd, name: str) -> str:
    """Delete the tokens of a server; returns the outcome."""
    servers, record = await _of(front)
    return await servers.sign_ins.forget(record, name) or f"Signed out of {clean_line(name)}; its tokens are deleted."


async def is_signed_in(front: FrontEnd, name: str) -> bool:
    """True once the server is connected."""
    servers, record = await _of(front)
    return any(one.name == name and one.state is ServerState.CONNECTED for one in await servers.views(record))


def sign_in_lines(name: str, address: SignInAddress) -> list[str]:
    """Words about a sign-in, with nothing of the address left out."""
    return [
        f"Sign in to {clean_line(name)} at {address.host}",
        "Open this address in a browser, and go on only if this host is the right one:",
        address.url,
        "Where the browser runs on another machine, paste the address here that it is sent to at the end.",
    ]
