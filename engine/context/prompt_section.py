"""One section of a system prompt, with its origin."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

BUILT_IN: Final = "built-in"


class PromptMode(StrEnum):
    """Amount of system prompt: sub-agents and the memory flush get the minimal one (SPEC CLAW-16)."""

    FULL = "full"
    MINIMAL = "minimal"


BOTH: Final = frozenset(PromptMode)
FULL_ONLY: Final = frozenset({PromptMode.FULL})


class PromptSection(Struct, frozen=True):
    """One section; its text is sent as it is."""

    name: str
    text: str
    origin: str = BUILT_IN
    """`built-in`, the path of a file, or the flag or setting that gave it."""
    modes: frozenset[PromptMode] = BOTH
    is_instructions: bool = False
    """True for the content of a file of the user or the project; counted apart from the rest."""


def section(
    name: str,
    body: str,
    origin: str = BUILT_IN,
    modes: frozenset[PromptMode] = BOTH,
    *,
    is_instructions: bool = False,
) -> tuple[PromptSection, ...]:
    """A section below its name as heading; none without a body."""
    body = body.strip()
    text = f"# {name}\n{body}"
    return (PromptSection(name, text, origin, modes, is_instructions),) if body else ()


def tagged(tag: str, body: str) -> str:
    """A body between the tags `tag`, which it cannot close itself; empty without a body."""
    body = body.strip().replace(f"</{tag}", f"< /{tag}")
    return f"<{tag}>\n{body}\n</{tag}>" if body else ""
