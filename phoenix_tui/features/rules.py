"""The permission rules that concern the conversation in view."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from engine.permissions.projects import project_of
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.text.request_text import no_rule_counts


class RulePlaces(Struct, frozen=True):
    """Possible scopes of a new rule."""

    project: str
    folder: Path
    """Working directory, in which files of another program may have rules."""
    conversation_id: str = ""
    """Empty where none can be kept for a conversation."""
    note: str = ""
    """Reason why no rule counts; empty where they do."""


def rule_places(front: FrontEnd) -> RulePlaces:
    """The project and the conversation in view."""
    conversation = front.conversation
    folder = conversation.record.cwd if conversation is not None else front.launch.cwd
    kept_here = conversation.id if conversation is not None and not conversation.read_only else ""
    return RulePlaces(str(project_of(folder)), folder, kept_here, no_rule_counts(front.mode))
