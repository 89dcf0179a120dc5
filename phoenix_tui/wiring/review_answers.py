"""The tool with which a review hands in its findings, in conversations of a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from engine.ports.extensions import ExtensionPrompt
from engine.records import ConversationRecord
from phoenix_tui.features.review_changes import REVIEW, SCHEMA
from tools.contract import JsonObject, Tool, ToolRequest
from tools.submit_structured import NAME, SubmitStructured
from tools.wording import pluralize

KEPT: Final = "The findings are kept; the user has them as a list. End with one sentence about the whole."


class SubmitFindings(SubmitStructured):
    """The tool, whose row says the number of findings and the way to them."""

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Check the findings. Raises ToolInputError."""
        await super().request(args, working_dir)
        found = args["findings"]
        count = len(found) if isinstance(found, list) else 0
        return ToolRequest(f"{pluralize(count, 'finding')} · /review lists them" if count else "no findings")


class ReviewAnswers:
    """A source of that tool, for conversations of the profile `review`; the transcript keeps what is handed in."""

    def __init__(self) -> None:
        self._tools = {NAME: SubmitFindings(SCHEMA, KEPT)}

    def tools(self, record: ConversationRecord) -> Mapping[str, Tool]:
        """The tool, for a review alone."""
        return self._tools if record.profile == REVIEW and record.agent is None else {}

    def prompts(self, record: ConversationRecord) -> Sequence[ExtensionPrompt]:
        """Return none: the message that begins a review names the tool."""
        del record
        return ()

    async def prepare(self, record: ConversationRecord) -> None:
        """Return at once."""

    def close_conversation(self, conversation_id: str) -> None:
        """Do nothing: nothing is held for it."""
