"""The MCP servers of the conversation in view: listed, read, connected, ended, signed in to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from engine.executor.requests import EngineError
from engine.ports import ConversationChanges
from engine.ports.mcp import ServerState, ServerView, SignInAddress, Unchosen
from engine.records import ConversationRecord
from phoenix_tui.config.sources.extension_files import SourceKind
from phoenix_tui.features.front_end import TAKE, Confirmation, FrontEnd, ListPage, PageAction, PageRow
from phoenix_tui.features.trust import trust_in_view
from phoenix_tui.text.server_text import (
    NO_SANDBOX,
    NO_SERVERS,
    NOT_WORKING,
    command_words,
    details,
    facts,
    row,
    sandbox_words,
    share_words,
    show_origin,
    state_words,
)
from phoenix_tui.text.trust_text import counts, join_words
from tools.call_values import SandboxMode
from tools.clean import clean_line
from tools.wording import one_line

if TYPE_CHECKING:
    from engine.extensions.mcp.hub import McpHub

NONE: Final = "MCP servers are not available here."
SETTLED: Final = 0.5
"""Seconds that the list waits for servers that start with it."""
LONGEST_CAUSE: Final = 400
DOTS: Final = {
    ServerState.CONNECTED: "●",
    ServerState.CONNECTING: "◐",
    ServerState.WAITING: "○",
    ServerState.NEEDS_AUTH: "!",
    ServerState.FAILED: "✗",
    ServerState.OFF: "–",
}
TAKEN: Final = "The address was taken; Phoenix connects."


async def show_servers(front: FrontEnd, _: str) -> None:
    """Show the servers of the conversation in view, which are started where nothing has needed them."""
    await front.show(ServersPage(front).read)


async def server_shares(front: FrontEnd) -> str:
    """Tokens of each server of the conversation in view, in words; empty without any."""
    if front.services.mcp is None:
        return ""
    servers, record = await _servers_in_view(front)
    return share_words(await servers.views(record))


async def paste(front: FrontEnd, name: str, url: str) -> str:
    """Take the address that the browser was sent to; returns the outcome."""
    servers, record = await _servers_in_view(front)
    return await servers.sign_ins.paste(record, name, url) or TAKEN


async def is_signed_in(front: FrontEnd, name: str) -> bool:
    """True once the server is connected."""
    servers, record = await _servers_in_view(front)
    return any(one.name == name and one.state is ServerState.CONNECTED for one in await servers.views(record))


def sign_in_lines(name: str, address: SignInAddress) -> list[str]:
    """Words about a sign-in, with nothing of the address left out."""
    return [
        f"Sign in to {clean_line(name)} at {address.host}",
        "Open this address in a browser, and go on only if this host is the right one:",
        address.url,
        "Where the browser runs on another machine, paste the address here that it is sent to at the end.",
    ]


async def _servers_in_view(front: FrontEnd) -> tuple[McpHub, ConversationRecord]:
    servers = front.services.mcp
    if servers is None:
        raise EngineError(NONE)
    return servers, (await front.current()).record


class ServersPage:
    """Servers with their actions, each of which returns its outcome in words."""

    def __init__(self, front: FrontEnd) -> None:
        self._front = front
        self._notices: tuple[str, ...] | None = None

    async def read(self) -> ListPage:
        """List them, at first with sentences about servers and files that are left out."""
        servers, record = await _servers_in_view(self._front)
        if self._notices is None:
            await servers.settle(record, SETTLED)
        views = await servers.views(record)
        if self._notices is None:
            notices = await servers.notices(record)
            self._notices = (*await self._name_untrusted(), *(clean_line(notice) for notice in notices))
        return ListPage(
            "MCP servers",
            tuple(self._row(view) for view in views),
            (  # 56 columns: all of them fit beside the heading at 80
                (TAKE, "opens"),
                ("mcp_reconnect", "retry"),
                ("mcp_switch", "off"),
                ("mcp_off", "for good"),
                ("mcp_end", "ends"),
            ),
            NO_SERVERS,
            self._notices,
            outcome="last",
            follows=True,
        )

    async def _name_untrusted(self) -> Sequence[str]:
        """Count the servers of the folder that are not used before a yes."""
        try:
            report = await trust_in_view(self._front)
        except EngineError:
            return ()
        waiting = [entry for entry in report.waiting() if entry.kind is SourceKind.SERVERS]
        return (f"Not used before your yes: {join_words(counts(waiting))} of this folder; see /trust.",) * bool(waiting)

    def _row(self, view: ServerView) -> PageRow:
        name = clean_line(view.name)
        about = [one_line(state_words(view), LONGEST_CAUSE)] if view.state in NOT_WORKING else []
        about.append(f"{show_origin(view)}: {command_words(view)}")
        if view.sandbox is not None:
            words = sandbox_words(view.sandbox, view.sandbox_reason)
            about.append(f"sandbox: {words} · {self._front.name_way('mcp_sandbox', '')} changes it")
        if view.kept is not None and view.kept.is_dir():
            way = self._front.name_way("mcp_forget", "")
            about.append(f"keeps what it writes below the home folder · {way} removes it")
        return PageRow(
            "",
            view.name,
            f"{DOTS[view.state]} {name}",
            facts(view),
            view.state.value,
            about=tuple(about),
            spoken=row(view),
            name=name,
            actions=self._actions(view, name),
        )

    def _actions(self, view: ServerView, name: str) -> tuple[PageAction, ...]:
        """Actions in the order of the menu; Enter does the one that the server waits for."""
        needs_sign_in = not view.secrets and view.state is ServerState.NEEDS_AUTH
        kept = (
            f"Remove all that {name} has written below the home folder in its sandbox? This is final.",
            "remove it",
            "keep it",
        )

        def act(run: Callable[[ServerView], Awaitable[str]], keys: str, words: str, progress: str = "") -> PageAction:
            return PageAction(partial(run, view), keys, words, progress=progress)

        actions = [
            act(self._show, "" if view.secrets or needs_sign_in else TAKE, "Show details"),
            act(self._reconnect, "mcp_reconnect", "Connect again", f"Connecting to {name} …"),
            act(self._switch, "mcp_switch", "Use it here, or not"),
            act(self._end, "mcp_end", "End it"),
            act(self._sign_in, TAKE if needs_sign_in else "", "Sign in", f"Asking {name} where to sign in …"),
            act(self._sign_out, "", "Sign out"),
            act(self._switch_for_good, "mcp_off", "Off for good, or on again"),
            PageAction(
                partial(self._change_sandbox, view),
                "mcp_sandbox",
                "In a sandbox, or without",
                question=None if view.sandbox in {None, SandboxMode.OFF} else _ask_leaving(view),
            ),
            PageAction(  # packages of npx are thousands of files
                partial(self._forget_kept, view),
                "mcp_forget",
                "Remove what it keeps",
                progress=f"Removing what {name} keeps …",
                question=Confirmation(*kept),
            ),
        ]
        if view.secrets:
            give = "Give it the variables that it wants"
            actions.append(PageAction(partial(self._give, view), TAKE, give, question=_ask_secrets(view)))
        return tuple(actions)

    async def _show(self, view: ServerView) -> str:
        servers, record = await _servers_in_view(self._front)
        name, found = clean_line(view.name), await servers.details(record, view.name)
        text = details(found) if found is not None else f"There is no MCP server {name} any more."
        self._front.read(f"MCP server {name}", text)
        return ""

    async def _reconnect(self, view: ServerView) -> str:
        servers, record = await _servers_in_view(self._front)
        await servers.reconnect(record, view.name)
        now = next((one for one in await servers.views(record) if one.name == view.name), None)
        if now is None:
            return f"There is no MCP server {clean_line(view.name)} any more."
        words = now.state.value if now.state is ServerState.CONNECTED else state_words(now)
        return f"{clean_line(view.name)}: {words}."

    async def _switch(self, view: ServerView) -> str:
        """Switch a server off in this conversation, or on again."""
        conversation = await self._front.current()
        others = tuple(name for name in conversation.record.mcp_off if name != view.name)
        await conversation.change(ConversationChanges(mcp_off=others if not view.is_on else (*others, view.name)))
        words = "is off in this conversation" if view.is_on else "is on again"
        return f"{clean_line(view.name)} {words}; the next request is sent without what was cached of its tools."

    async def _switch_for_good(self, view: ServerView) -> str:
        """Switch a server off in every conversation, or on again."""
        servers, record = await _servers_in_view(self._front)
        with _choosing():
            await servers.choices.switch(record, view.name, on=view.is_off)
        words = "on again" if view.is_off else "off for good; this switches it on again"
        return f"{clean_line(view.name)} is {words}."

    async def _end(self, view: ServerView) -> str:
        servers, record = await _servers_in_view(self._front)
        await servers.end(record, view.name)
        return f"{clean_line(view.name)} has ended; its next use starts it again."

    async def _sign_in(self, view: ServerView) -> str:
        servers, record = await _servers_in_view(self._front)
        found = await servers.sign_ins.begin(record, view.name)
        if isinstance(found, str):
            raise EngineError(found)
        return await self._front.sign_in(view.name, found)

    async def _sign_out(self, view: ServerView) -> str:
        servers, record = await _servers_in_view(self._front)
        name = clean_line(view.name)
        return await servers.sign_ins.forget(record, view.name) or f"Signed out of {name}; its tokens are deleted."

    async def _change_sandbox(self, view: ServerView) -> str:
        """Run a server without a sandbox from now on, or in one again: that of the conversation, or workspace."""
        if view.sandbox is None:
            return NO_SANDBOX
        servers, record = await _servers_in_view(self._front)
        mode = SandboxMode.OFF
        if view.sandbox is SandboxMode.OFF:
            mode = SandboxMode.WORKSPACE if record.sandbox is SandboxMode.OFF else record.sandbox
        with _choosing():
            await servers.choices.choose_sandbox(record, view.name, mode)
        await servers.settle(record, SETTLED)
        words = "without a sandbox" if mode is SandboxMode.OFF else f"in the sandbox {mode.value}"
        return f"{clean_line(view.name)} runs {words}, as long as its definition stays as it is."

    async def _forget_kept(self, view: ServerView) -> str:
        """Remove what a server has written below the home folder in its sandbox."""
        servers, record = await _servers_in_view(self._front)
        name = clean_line(view.name)
        if not await servers.forget_kept(record, view.name):
            return f"{name} has written nothing below the home folder in a sandbox."
        return f"What {name} had written below the home folder is removed; its next use starts it again."

    async def _give(self, view: ServerView) -> str:
        """Let a project's server have the secrets that it names."""
        servers, record = await _servers_in_view(self._front)
        with _choosing():
            await servers.choices.allow_secrets(record, view.name)
        await servers.settle(record, SETTLED)
        return f"{clean_line(view.name)} gets {', '.join(view.secrets)} until its definition changes."


@contextmanager
def _choosing() -> Generator[None]:
    """Give the reason of a choice that cannot be kept to the user."""
    try:
        yield
    except Unchosen as error:
        raise EngineError(str(error)) from error


def _ask_leaving(view: ServerView) -> Confirmation:
    """Ask before a server runs without a sandbox."""
    return Confirmation(
        f"{clean_line(view.name)} runs this command, defined in {view.source or 'this run'}:\n{command_words(view)}\n"
        "Without a sandbox it can read and write what you can, keys and all projects included. Run it without?",
        "run it without",
        "keep the sandbox",
    )


def _ask_secrets(view: ServerView) -> Confirmation:
    """Ask before a project's server gets secrets: which, and where they go."""
    does = "runs this command" if view.transport == "stdio" else "sends them to this address"
    return Confirmation(
        f"{clean_line(view.name)} is defined by this project, in {view.source}.\n"
        f"It wants the values of {', '.join(view.secrets)} from your environment, and {does}:\n"
        f"{command_words(view)}\nGive them to it?",
        "give them",
        "do not",
    )
