"""Permission modes, efforts and models as Claude's own program names them, and those of Phoenix that they mean.

Imports nothing: the parser of the command line reads it.
"""

from __future__ import annotations

from typing import Final

NOBODY: Final = "dontAsk"
"""Mode in which a question is a no, and rules count."""
FOREIGN_MODES: Final = {
    "default": "ask",
    "acceptEdits": "accept-edits",
    "bypassPermissions": "auto",
    "plan": "plan",
    NOBODY: "ask",
    "auto": "ask",
    "ask": "ask",
    "accept-edits": "accept-edits",
    "deny": "deny",
}
"""Permission modes of hosts. Their `auto` asks a model about each call; here it asks the host."""
FOREIGN_EFFORTS: Final = {"xhigh": "max", "minimal": "low"}
"""Efforts of hosts that have another name here."""
LINES: Final = {
    "sonnet": "anthropic/claude-sonnet-5-5",
    "opus": "anthropic/claude-opus-5-5",
    "haiku": "anthropic/claude-haiku-5-5",
    "fable": "anthropic/claude-fable-5",
}
"""Newest model of each line of Claude, by the line's name."""


def known_model(reference: str) -> str:
    """A reference as Phoenix writes it: lines of Claude by their newest model, bare Claude models with a provider."""
    if reference in LINES:
        return LINES[reference]
    return f"anthropic/{reference}" if reference.startswith("claude-") and "/" not in reference else reference
