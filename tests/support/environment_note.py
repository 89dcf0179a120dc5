"""The note behind the newest message of a request, which servers that answer by the user's words leave out."""

from __future__ import annotations

from typing import Any


def is_note(block: Any) -> bool:
    """True for the text block with day and permission mode."""
    return isinstance(block, dict) and str(block.get("text", "")).startswith("<environment>")


def without_note(content: Any) -> list[Any]:
    """Content of a message without it."""
    return [block for block in content if not is_note(block)]
