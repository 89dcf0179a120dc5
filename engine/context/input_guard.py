"""Finds text that looks like an attempt to steer the model: six patterns, in fixed order (SPEC CLAW-03, T-GRD)."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from msgspec import Struct

NULL_BYTES: Final = "null_bytes"
SECURITY_LOG: Final = "security"
"""Name of the logger of detections, written at every level of detail."""


class Pattern(Struct, frozen=True):
    """Signs of one kind of injection, in lower case."""

    name: str
    literals: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()
    """Regular expressions beside them. Each begins with a line or a fixed word, which is found fast, and repeats
    blanks possessively, so that a scan is linear.
    """

    def matches(self, lowered: str) -> bool:
        """True when a text in lower case has one of the signs."""
        if any(literal in lowered for literal in self.literals):
            return True
        return any(re.search(expression, lowered) for expression in self.expressions)


PATTERNS: Final = (
    Pattern(
        "ignore_instructions",
        expressions=(
            r"ignore\s++(?:all\s++)?(?:previous|prior|above|earlier)\s++(?:instructions?|rules?|prompts?|guidelines?)\b",
        ),
    ),
    Pattern(
        "role_override",
        expressions=(
            r"you\s++are\s++now\s++(?:a|an|the)\s",
            r"from\s++now\s++on,?+\s++(?:you\s++are|you\s++will\s++(?:be|act)|act\s++as|pretend)\b",
        ),
    ),
    Pattern(
        "system_tags",
        ("<|im_start|>", "<|im_end|>", "[system]", "[inst]", "[/inst]", "<<sys>>", "<</sys>>", "<system>", "</system>"),
    ),
    Pattern(
        "instruction_injection",
        ("override:", "<|system|>"),
        (r"new\s++instructions?:", r"system\s++prompt:"),
    ),
    Pattern(NULL_BYTES, ("\x00",)),
    Pattern(
        "delimiter_escape",
        ("begin user input", "begin user message"),
        (
            r"end\s++of\s++(?:the\s++)?(?:system\s++)?(?:prompt|instructions)\b",
            r"end\s++of\s++(?:the\s++)?system\s*+[^\w\s]",
            r"(?m)^[^\w\n]*+end of (?:the )?system[^\w\n]*+$",
            r"</?+\s*+(?:instructions|prompt|system_prompt|context)\s*+>",
        ),
    ),
)
"""The table, in its order."""


class GuardAction(StrEnum):
    """Treatment of text that matches a pattern: the setting `input_guard`."""

    OFF = "off"
    LOG = "log"
    WARN = "warn"
    BLOCK = "block"


def suspicions(text: str) -> tuple[str, ...]:
    """Names of the patterns that match, in the order of the table."""
    lowered = text.lower()
    return tuple(pattern.name for pattern in PATTERNS if pattern.matches(lowered))
