"""Exit codes, and the error with its one sentence (CONTRACT 2)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum


class Exit(IntEnum):
    """The exit codes scripts rely on."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CREDENTIALS = 41
    CAP = 53
    RETRYABLE = 75
    INTERRUPTED = 130
    TERMINATED = 143


class CommandError(Exception):
    """Raised when the program cannot continue; `sentence` is for the user and names the fix."""

    def __init__(self, sentence: str, code: Exit = Exit.USAGE, below: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.below = tuple(below)
        """Further lines that show the place, such as the input with a mark under it."""
        self.code = code


class StdoutLost(BrokenPipeError):
    """Stdout takes nothing more, for another reason than that its reader is gone: a full disk, most often."""
