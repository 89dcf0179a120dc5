"""Noise of a terminal: keys, mouse, replies and pastes of xterm, kitty and iTerm2, whole or cut, and any bytes."""

from __future__ import annotations

import random
from typing import Final

NUMBERS: Final = (
    *("", "0", "1", "2", "3", "5", "13", "27", "97", "127", "200", "255"),
    *("57376", "55296", "1114112", "9" * 30),
)
FINALS: Final = "u~ABCDEFHPQRSZMmtcnyRIO[^@x"
STRINGS: Final = (
    *("]11;rgb:0/0/0", "]4;1;", "]1337;Capabilities=T", "]52;c;YQ==", "P>|kitty(0.3)", "P1+r", "_Gi=1;OK"),
    *("^", "X"),
)
TEXTS: Final = ("abc ", "é", "日本", "\x00", "\ufffd", "\r", "\t", "/he", "@re", " " * 300, "\x1b\x1b", "\x7f", "?")
KEPT_BACK: Final = b"\x03\x04\x11\x1a\x1c!"
"""Keys that end or stop Phoenix, as they shall, and the sign before a line for the shell."""


class Noise:
    """Pieces of it from a seed; one may go on where the last was cut."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def piece(self) -> bytes:
        """The next bytes."""
        return self._made().translate(None, KEPT_BACK)

    def _made(self) -> bytes:
        rng = self._rng
        kind = rng.randrange(8)
        if kind == 0:
            return rng.randbytes(rng.randint(1, 30))
        if kind == 1:
            return "".join(rng.choices(TEXTS, k=rng.randint(1, 4))).encode()
        if kind == 2:
            made = "\x1b" + rng.choice(STRINGS) + rng.choice(("\x07", "\x1b\\", "\x1b", ""))
        elif kind == 3:
            made = f"\x1b[<{rng.randint(0, 140)};{rng.randint(0, 310)};{rng.randint(0, 110)}{rng.choice('Mm')}"
        elif kind == 4:
            made = "\x1b[200~" + "".join(rng.choices(TEXTS, k=3)) + rng.choice(("\x1b[201~", "\x1b[20", ""))
        else:
            fields = (":".join(rng.choices(NUMBERS, k=rng.randint(1, 3))) for _ in range(rng.randint(1, 3)))
            made = f"\x1b[{rng.choice('   <?>=').strip()}{';'.join(fields)}{rng.choice(FINALS)}"
        data = made.encode()
        return data[: rng.randint(1, len(data))] if rng.random() < 0.2 else data
