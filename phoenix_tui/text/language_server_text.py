"""Words about language servers for screens, lines and the doctor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tools.clean import clean_line, reveal_name
from tools.lsp.contract import LanguageServerState, LanguageServerView
from tools.wording import counted

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
    """State of a server, with its cause."""
    return f"{view.state.value}: {clean_line(view.text)}" if view.text else view.state.value


def server_details(view: LanguageServerView) -> str:
    """Details of a server, with its log."""
    lines = [state_of(view), "", f"files      {clean_line(view.files)}"]
    if view.program:
        lines.append(f"program    {reveal_name(view.program)}")
    if view.pid:
        lines += [f"root       {reveal_name(view.root)}", f"process    {view.pid}", f"sandbox    {view.sandbox}"]
    if view.log:
        lines += ["", "Log:", *(f"  {clean_line(row)}" for row in view.log)]
    return "\n".join(lines)


def summary(views: Sequence[LanguageServerView]) -> str:
    """The installed servers in one line, for the doctor."""
    there = [view for view in views if is_there(view)]
    if not there:
        return "none of the known ones is installed"
    names = ", ".join(
        clean_line(view.name) + (" (needs your yes: /lsp)" if view.state is LanguageServerState.NEEDS_YES else "")
        for view in there
    )
    return f"{counted(len(there), 'server')} installed: {names}"
