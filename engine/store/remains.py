"""Files outside the database that hold texts of a conversation; they go when it is removed for good."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from engine.diagnostics import Diagnostics
from tools.files.spills import spill_name


class Remains(Struct, frozen=True):
    """Folders of such files; None where there is none. Removing blocks, and files that cannot be removed stay."""

    outputs: Path | None = None
    """Whole outputs of commands, by conversation and call."""
    logs: Path | None = None
    """Requests and replies kept for debugging, of all conversations together: they go whole."""

    def remove(self, conversation_id: str, call_ids: Iterable[str]) -> None:
        """Remove the files of these calls of a conversation."""
        if self.outputs is not None:
            names = {spill_name(conversation_id, call_id) for call_id in call_ids}
            for path in (*self.outputs.glob("output-*"), *self.outputs.glob("*/output-*")) if names else ():
                if path.name in names:
                    with suppress(OSError):
                        path.unlink()
        if self.logs is not None:
            Diagnostics(self.logs).forget()
