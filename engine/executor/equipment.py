"""The tools of a conversation's model at this moment: its own, and those of the sources of extensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.executor.session import Session
from engine.executor.web_model import search_model
from engine.ports.extensions import ExtensionPrompt, FolderSource, ReadListener
from tools.contract import Tool, ToolClass, ToolOutput, ToolRequest, ToolSpec
from tools.web_search import NAME as WEB_SEARCH
from tools.web_search import WebSearch


def tools_of(session: Session) -> Mapping[str, Tool]:
    """Tools by name; a name of Phoenix's own tools is never another's, and a profile's list holds for all."""
    sources, own = session.ports.extensions, _own_tools(session)
    if not sources:
        return own
    found, profile, left_out = dict(own), session.profile, session.settings.left_out
    for source in sources:
        for name, tool in source.tools(session.record).items():
            allowed = profile is None or profile.allows(name)
            if name not in session.ports.tools and allowed and not is_left_out(name, left_out):
                found.setdefault(name, tool)
    return found


def is_left_out(tool: str, names: Sequence[str]) -> bool:
    """True for a tool that is named, or is of a server that is."""
    return any(tool == name or tool.startswith(f"{name}__") for name in names)


def own_tool_names(session: Session) -> tuple[str, ...]:
    """Names of Phoenix's own tools that the model is offered: web_search only where something can search."""
    return tuple(_own_tools(session))


def _own_tools(session: Session) -> Mapping[str, Tool]:
    """Phoenix's own tools; web_search where there is something to search with."""
    tools = session.tools
    search = tools.get(WEB_SEARCH)
    if not isinstance(search, WebSearch) or search.service is not None or search_model(session):
        return tools
    return {name: tool for name, tool in tools.items() if name != WEB_SEARCH}


def extension_prompts(session: Session) -> tuple[ExtensionPrompt, ...]:
    """Texts of all sources for the system prompt."""
    record, sources = session.record, session.ports.extensions
    if not sources:
        return ()
    tools = tools_of(session)
    found = (text for source in sources for text in source.prompts(record))
    allowed = (text for text in found if record.agent is None or text.for_agents)
    return tuple(text for text in allowed if not text.tool or text.tool in tools)


def extension_folders(session: Session) -> tuple[Path, ...]:
    """Folders of extensions that reading tools may use."""
    sources = (source for source in session.ports.extensions if isinstance(source, FolderSource))
    return tuple(folder for source in sources for folder in source.folders(session.record))


async def prepare_extensions(session: Session) -> None:
    """Let every source get ready for the next request."""
    for source in session.ports.extensions:
        await source.prepare(session.record)


def note_read(session: Session, spec: ToolSpec, request: ToolRequest, output: ToolOutput) -> None:
    """Tell sources of the paths that a tool has read."""
    if spec.tool_class is not ToolClass.READ or output.is_error or not request.paths:
        return
    for source in session.ports.extensions:
        if isinstance(source, ReadListener):
            source.note_read(session.record, request.paths)
