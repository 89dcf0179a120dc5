"""A terminal of shell lines that records its calls."""

from __future__ import annotations

from dataclasses import dataclass, field

from tools.process.command_terminal import TerminalLoan
from tools.terminal.values import TerminalModes, TerminalSize


@dataclass
class FakeTerminal:
    """Idle until a test sets `modes`."""

    folder: str = ""
    modes: TerminalModes | None = None
    wants_screen: bool = False
    sizes: list[TerminalSize] = field(default_factory=list[TerminalSize])
    typed: list[bytes] = field(default_factory=list[bytes])

    def lend(self, size: TerminalSize) -> TerminalLoan | None:
        self.sizes.append(size)
        return None

    def fit(self, size: TerminalSize) -> None:
        self.sizes.append(size)

    def type(self, keys: bytes) -> None:
        self.typed.append(keys)
