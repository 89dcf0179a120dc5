"""Facts about the hooks of an open conversation."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from msgspec import Struct, field


class HookFacts(Struct, eq=False):
    """Hooks that run beside its runs, and what they were told."""

    running: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    """Hooks for which a message waits, and hooks that run on alone."""
    looked: bool = False
    """True once the sources of hooks have looked what is there."""
    asking: bool = False
    """True while a message waits for them."""
    begun: str = ""
    """Source that they were told the session began from; empty before."""
    instructions: set[Path] = field(default_factory=set[Path])
    """Instruction files that they were told of."""
    idle: asyncio.TimerHandle | None = None
    """Timer until they hear that the conversation waits for its user."""
    end_reason: str = "other"
    """Reason of the end of the session, as hooks hear it."""
    compacted: bool = False
    """True once older messages were summarized since they heard of a beginning."""
