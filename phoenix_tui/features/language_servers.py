"""Language servers of the folder in view: listed, read, started again; the yes to run what the folder contains."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from engine.executor.requests import EngineError
from engine.ports.edit_checks import LanguageServers
from phoenix_tui.features.front_end import FrontEnd, Option
from phoenix_tui.text.server_text import (
    ALLOW,
    ALLOWED,
    FORBID,
    FORBIDDEN,
    OFF,
    WARNING,
    is_there,
    server_details,
    state_of,
)
from tools.clean import clean_line, reveal_name
from tools.contract import Sandbox
from tools.lsp.contract import CheckPlace, LanguageServerState, LanguageServerView

HEADING: Final = "Language servers, which check edited files"
HANG: Final = 11


async def language_servers(front: FrontEnd, name: str) -> None:
    """List servers and do what is chosen.

    Raises:
        EngineError: they are switched off.
    """
    servers = front.services.language_servers
    if servers is None:
        raise EngineError(OFF)
    place = _place(front)
    views = list(await servers.views(place))
    notices = servers.notices
    if not name:
        options = [
            Option(f"server {view.name}", clean_line(view.name), (_facts(view),)) for view in views if is_there(view)
        ]
        options += [_folder_option(servers, place.folder)]
        options += [Option(f"notice {number}", notice) for number, notice in enumerate(notices)]
        options += [
            Option(f"server {view.name}", clean_line(view.name), (_facts(view),))
            for view in views
            if not is_there(view)
        ]
        name = await front.pick(HEADING, options)
    kind, _, rest = name.partition(" ")
    match kind:
        case "":
            return
        case "allow":
            await _answer(front, servers, place.folder, allowed=True)
        case "forbid":
            await _answer(front, servers, place.folder, allowed=False)
        case "notice":
            front.read("Left out", clean_line(notices[int(rest)]))
        case _:
            await _server(front, servers, place, views, rest or name)


def _place(front: FrontEnd) -> CheckPlace:
    folder = front.conversation.record.cwd if front.conversation is not None else front.launch.cwd
    return CheckPlace("", folder, Sandbox(front.sandbox))


def _folder_option(servers: LanguageServers, folder: Path) -> Option:
    if servers.is_allowed(folder):
        return Option("forbid", FORBID, ("allowed now",))
    return Option("allow", ALLOW, ("not allowed now",))


def _facts(view: LanguageServerView) -> str:
    """State and files; the cause of a state that no action of the list explains."""
    if not is_there(view):
        return view.state.value
    state = view.state.value if view.state is LanguageServerState.NEEDS_YES else state_of(view)
    return f"{state} · {view.files}"


async def _answer(front: FrontEnd, servers: LanguageServers, folder: Path, *, allowed: bool) -> None:
    shown = reveal_name(folder)
    if allowed and not await front.confirm(WARNING.format(folder=shown), "Allow it", "Leave it"):
        return
    try:
        await servers.allow(folder, allowed=allowed)
    except OSError as error:
        raise EngineError(f"The answer cannot be kept: {error.strerror or error}.") from error
    front.tell((ALLOWED if allowed else FORBIDDEN).format(folder=shown))


async def _server(
    front: FrontEnd, servers: LanguageServers, place: CheckPlace, views: list[LanguageServerView], name: str
) -> None:
    view = next((one for one in views if one.name == name), None)
    if view is None:
        raise EngineError(f"There is no language server {clean_line(name)}; /lsp lists all.")
    if view.state not in {LanguageServerState.READY, LanguageServerState.STARTING, LanguageServerState.FAILED}:
        front.read(clean_line(view.name), server_details(view), hang=HANG)
        return
    options = [Option("read", "Show it"), Option("restart", "End it; the next edit starts it again")]
    match await front.pick(f"{clean_line(view.name)}: {state_of(view)}", options):
        case "read":
            front.read(clean_line(view.name), server_details(view), hang=HANG)
        case "restart":
            await servers.restart(place, view.name)
            front.tell(f"{clean_line(view.name)} has ended; the next edit starts it again.")
        case _:
            pass  # none was wanted
