"""`--session-mirror`: a host keeps sessions in a store of its own, which Phoenix neither fills nor reads."""

from __future__ import annotations

from typing import Final

from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.finding import UnknownConversationError
from tools.contract import JsonObject

NOT_WRITTEN: Final = (
    "Phoenix writes nothing to the session_store of a host; it stores each conversation itself, and --resume with its "
    "id continues it."
)
NOT_READ: Final = "Phoenix does not read the session_store of a host: it resumes conversations that it stored itself."


def store_notice(session_id: str) -> JsonObject:
    """The frame by which SDKs report that a session does not reach its store."""
    key: JsonObject = {"projectKey": "", "sessionId": session_id}
    return {"type": "system", "subtype": "mirror_error", "error": NOT_WRITTEN, "key": key}


def explained(error: CommandError, *, mirrors: bool) -> CommandError:
    """The error with the reason why a session of the host's store is unknown here."""
    if not mirrors or not isinstance(error, UnknownConversationError):
        return error
    return CommandError(f"{error.sentence} {NOT_READ}", error.code, error.below)
