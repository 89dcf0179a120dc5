"""The tools of a conversation's model at this moment: its own, and those of the sources of extensions."""

from __future__ import annotations

from collections.abc import Mapping

from engine.executor.session import Session
from engine.ports.extensions import ExtensionPrompt
from tools.contract import Tool


def tools_of(session: Session) -> Mapping[str, Tool]:
    """Tools by name; a name of Phoenix's own tools is never another's, and a profile's list holds for all."""
    sources = session.ports.extensions
    if not sources:
        return session.tools
    found, profile = dict(session.tools), session.profile
    for source in sources:
        for name, tool in source.tools(session.record).items():
            if name not in session.ports.tools and (profile is None or profile.allows(name)):
                found.setdefault(name, tool)
    return found


def extension_prompts(session: Session) -> tuple[ExtensionPrompt, ...]:
    """Texts of all sources for the system prompt."""
    record = session.record
    found = (text for source in session.ports.extensions for text in source.prompts(record))
    return tuple(text for text in found if record.agent is None or text.for_agents)


async def prepare_extensions(session: Session) -> None:
    """Let every source get ready for the next request."""
    for source in session.ports.extensions:
        await source.prepare(session.record)
