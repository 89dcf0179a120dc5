"""Words about MCP servers, language servers and a busy database, for screens, lines and commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from engine.ports.mcp import SandboxReason, ServerOrigin, ServerState, ServerView
from phoenix_tui.text.labels import short_path
from tools.call_values import SandboxMode
from tools.clean import clean, clean_line, reveal_name
from tools.lsp.problems import LanguageServerState, LanguageServerView
from tools.redaction import without_keys
from tools.wording import pluralize

NO_SERVERS: Final = (
    "No MCP servers here. Define them in .mcp.json of the project, or with `phoenix mcp add NAME -- COMMAND`; the "
    "agent gets their tools."
)
MOST_SHARES: Final = 8
NO_SANDBOX: Final = "This server is over HTTP, or not used: there is no sandbox to choose."
WITHOUT: Final = "it can read and write what you can"
ALL_HOSTS: Final = "every host: the hosts of commands do not limit servers"
LISTED: Final = 200
"""Tools that details list."""
NOT_WORKING: Final = frozenset({ServerState.FAILED, ServerState.NEEDS_AUTH, ServerState.OFF})
NEXT_STEPS: Final = {
    ServerState.NEEDS_AUTH: "Enter in /mcp signs in, or `phoenix mcp login NAME`",
}


def cause_of(view: ServerView) -> str:
    """Reason why a server does not work, or the next step; without its name, which is beside it."""
    cause = clean_line(view.text).removeprefix(f"MCP server '{clean_line(view.name)}' ")
    for said in ("ended: ", "is not connected: "):
        cause = cause.removeprefix(said)
    return cause or NEXT_STEPS.get(view.state, "")


def state_words(view: ServerView) -> str:
    cause = cause_of(view)
    return f"{view.state.value}: {cause}" if cause else view.state.value


def missing_words(view: ServerView, seconds: float) -> str:
    """Clause about a required server that has not connected."""
    name, cause = clean_line(view.name), cause_of(view).rstrip(".")
    late = view.state is ServerState.CONNECTING
    state = f"is still connecting after {seconds:.0f} s" if late else f"did not connect: {cause}"
    return f"MCP server '{name}', which is required, {state}"


def facts(view: ServerView) -> str:
    """Tools, tokens and last call of a server; the cause instead where it does not work."""
    if view.state in NOT_WORKING:
        return cause_of(view)
    parts = [pluralize(len(view.tools), "tool")]
    if view.tokens:
        parts.append(f"{view.tokens:,} tokens")
    if view.last_ms >= 0:
        parts.append(f"last call {view.last_ms:,} ms")
    return " · ".join(parts)


def share_words(views: Sequence[ServerView]) -> str:
    """Tokens of each server in a request, the largest first; empty where none has tools."""
    having = sorted((view for view in views if view.tools and view.is_on), key=lambda view: (-view.tokens, view.name))
    if not having:
        return ""
    parts = [
        f"{clean_line(view.name)} ~{view.tokens:,}"
        + (f" ({pluralize(view.deferred, 'tool')} named only)" if view.deferred else "")
        for view in having[:MOST_SHARES]
    ]
    more = [f"and {len(having) - MOST_SHARES} more"] if len(having) > MOST_SHARES else []
    return f"MCP servers in each request: {', '.join((*parts, *more))}"


def origin_words(view: ServerView) -> str:
    """File or flag that defines a server."""
    if view.origin is ServerOrigin.FLAG:
        return f"--mcp-config {view.source}".strip()
    return view.source


def show_origin(view: ServerView) -> str:
    """The same for a screen, with the home folder as `~`."""
    return origin_words(view) if view.origin is ServerOrigin.FLAG else short_path(Path(view.source))


def command_words(view: ServerView) -> str:
    """Command or address as it is written, without credentials of known shapes."""
    return reveal_name(without_keys(view.shown))


def sandbox_words(mode: SandboxMode | None, reason: SandboxReason) -> str:
    """Sandbox of a server in words, with the reason; empty for one over HTTP."""
    if mode is None:
        return ""
    return f"{mode.value}, {reason.value}{f': {WITHOUT}' if mode is SandboxMode.OFF else ''}"


def row(view: ServerView) -> str:
    about = facts(view)
    return f"{clean_line(view.name)}, {view.state.value}, {view.transport}{f': {about}' if about else ''}"


def details(view: ServerView) -> str:
    lines = [
        state_words(view),
        "",
        f"defined in   {show_origin(view)}",
        f"{'command' if view.transport == 'stdio' else 'address'}      {command_words(view)}",
        f"transport    {view.transport}",
    ]
    if view.sandbox is not None:
        lines.append(f"sandbox      {sandbox_words(view.sandbox, view.sandbox_reason)}")
        lines.append(f"network      {ALL_HOSTS if view.has_network else 'none: sandbox_network = false'}")
    if view.kept is not None and view.kept.is_dir():
        lines.append(f"keeps        what it writes below the home folder, in {short_path(view.kept)}")
    if view.folder:
        lines.append(f"starts in    {short_path(Path(view.folder))}")
    if view.pid:
        lines.append(f"process      {view.pid}")
    if view.is_required:
        lines.append("required     phoenix -p fails without it")
    if view.samples:
        lines.append("sampling     asks you before a model answers it")
    lines += _list_entries("Tools", view.tools)
    lines += _list_entries("Not offered", view.left_out)
    lines += _list_entries("Prompts", view.prompts)
    if view.instructions:
        lines += ["", "Instructions, in the words of the server:", clean(view.instructions)]
    lines += _list_entries("Log", view.log)
    return "\n".join(lines)


def _list_entries(heading: str, entries: Sequence[str]) -> list[str]:
    if not entries:
        return []
    more = [f"  … and {len(entries) - LISTED} more"] if len(entries) > LISTED else []
    return ["", f"{heading} ({len(entries)}):", *(f"  {clean_line(entry)}" for entry in entries[:LISTED]), *more]


OFF: Final = "Language servers are switched off (language_servers = false in config.toml)."
ALLOW: Final = "Let servers run what this folder contains"
FORBID: Final = "No longer let servers run what this folder contains"
ALLOWED: Final = (
    "Language servers may run what {folder} contains: build scripts, plug-ins, programs of its own. "
    "They have the limits of the conversation."
)
FORBIDDEN: Final = "Language servers run nothing of {folder} any more: they only read it, without the network."
WARNING: Final = (
    "Some language servers run what a project contains: build scripts, compiler plug-ins, programs in .venv or "
    "node_modules. A yes lets them do that in {folder}, in the sandbox of the conversation if it has one. Say yes only "
    "where you would run its tests."
)
_SHOWN_AS_MISSING: Final = frozenset({LanguageServerState.MISSING, LanguageServerState.OFF})


def is_there(view: LanguageServerView) -> bool:
    """True for a server that is installed and not switched off."""
    return view.state not in _SHOWN_AS_MISSING


def state_of(view: LanguageServerView) -> str:
    return f"{view.state.value}: {clean_line(view.text)}" if view.text else view.state.value


def server_details(view: LanguageServerView) -> str:
    lines = [state_of(view), "", f"files      {clean_line(view.files)}"]
    if view.program:
        lines.append(f"program    {reveal_name(view.program)}")
    if view.pid:
        lines += [f"root       {reveal_name(view.root)}", f"process    {view.pid}", f"sandbox    {view.sandbox}"]
    if view.log:
        lines += ["", "Log:", *(f"  {clean_line(row)}" for row in view.log)]
    return "\n".join(lines)


def summary(views: Sequence[LanguageServerView]) -> str:
    there = [view for view in views if is_there(view)]
    if not there:
        return "none of the known ones is installed"
    names = ", ".join(
        clean_line(view.name) + (" (needs your yes: /lsp)" if view.state is LanguageServerState.NEEDS_YES else "")
        for view in there
    )
    return f"{pluralize(len(there), 'server')} installed: {names}"


WAITING: Final = "Waiting for the database, which another program is using."


def on_this_loop(tell: Callable[[float], object]) -> Callable[[float], None]:
    """Wrap a listener of `DatabaseWaits`, which is called in another thread, for a callee in this loop."""
    loop = asyncio.get_running_loop()

    def report_wait(seconds: float) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(tell, seconds)

    return report_wait


def say_once(tell: Callable[[str], object], words: str) -> Callable[[float], None]:
    """A listener that says `words` as a wait begins to be long, once a wait."""
    waiting = False

    def report_wait(seconds: float) -> None:
        nonlocal waiting
        if seconds and not waiting:
            tell(words)
        waiting = bool(seconds)

    return report_wait
