"""Random scripts of keys, each word of them numbered, with the conversation that each word is meant for."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias

ENTER, TAB, ESC = b"\r", b"\t", b"\x1b[27u"
"""Esc as terminals with unambiguous keys send it: a letter right behind would make it Alt with that letter."""
NEW, FIND_ANYTHING, LIST, HISTORY, SEND_NOW = b"\x0e", b"\x10", b"\x0c", b"\x12", b"\x13"
STASH, STEER, EDITOR, OTHER_PANE, CLOSE_PANE = b"\x1bq", b"\x1bi", b"\x07", b"\x1b[17~", b"\x1bw"
SHEETS: Final = (b"\x10", b"\x1bOP", b"\x12", b"\x06", b"\x1ba", b"\x1bs", b"\x1bt")
OPENERS: Final = ("opener0", "opener1")
"""First messages, and so titles, of conversations that exist before a script begins."""
RESIZES: Final = 0.1
"""Share of the pieces of keys before which the terminal gets another size."""
ENDLESS: Final = "endless"
"""A message with this word begins an answer that does not end."""


class Pause(NamedTuple):
    """Seconds without a key."""

    seconds: float


Stroke: TypeAlias = bytes | Pause


class Weather(Enum):
    """State of the machine during a step."""

    CALM = auto()
    """Keys come one after the other."""
    STALLS = auto()
    """Phoenix is stopped while some of the keys come."""
    FROZEN = auto()
    """Phoenix is stopped while all of them come."""
    LOCKED = auto()
    """Another process writes into the database."""


CLEAR: Final = (Weather.CALM, Weather.STALLS)
IN_PROGRAMS: Final = frozenset({"editor", "program", "queue edit"})
"""Steps in which another program has the keys for some time, or that wait for the queue: in other weather a script
does not know when.
"""


@dataclass(frozen=True, slots=True)
class Step:
    """Keys of one kind of use, pressed without waiting for their effect."""

    kind: str
    strokes: tuple[Stroke, ...]
    weather: Weather


@dataclass
class Script:
    """Steps of one seed; `meant` has, in the order of typing, each run of words and the place that it is meant for."""

    seed: int
    kinds: tuple[str, ...] = ()
    """Kinds of its steps; all of them by default."""
    most: int = 9
    """Steps at most."""
    steps: list[Step] = field(default_factory=list[Step])
    meant: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    images: list[str] = field(default_factory=list[str])
    """Place of each pasted image."""
    repeats: bool = False
    """True once an older prompt was inserted: its words are in two texts."""

    def __post_init__(self) -> None:
        """Write it."""
        self._rng = random.Random(self.seed)
        self._words = 0
        self._places = 0
        self._place = self._fresh()
        steps = dict(STEPS) if not self.kinds else {kind: STEPS[kind] for kind in self.kinds}
        kinds, weights = list(steps), [weight for weight, _ in steps.values()]
        for _ in range(self._rng.randint(min(5, self.most), self.most)):
            (kind,) = self._rng.choices(kinds, weights)
            strokes = steps[kind][1](self)
            weathers = CLEAR if kind in IN_PROGRAMS else list(Weather)
            self.steps.append(Step(kind, tuple(strokes), self._rng.choice(weathers)))

    def _fresh(self) -> str:
        self._places += 1
        return f"new{self._places}"

    def text(self) -> bytes:
        """Words for the place in focus."""
        words: list[str] = []
        for _ in range(self._rng.randint(1, 3)):
            self._words += 1
            words.append(f"w{self._words}{''.join(self._rng.choices('abcdefgh', k=self._rng.randint(2, 6)))}z")
        run = " ".join(words)
        self.meant.append((run, self._place))
        return f"{run} ".encode()

    def new(self) -> bytes:
        """Begin a conversation."""
        self._place = self._fresh()
        return NEW

    def go(self) -> bytes:
        """Open a conversation by its place in the list: which one that is depends on the answers so far."""
        self._place = ""
        return b"\x1b%d" % self._rng.randint(1, 4)

    def opened(self) -> str:
        """One of the conversations from before, from now on in focus."""
        self._place = self._rng.choice(OPENERS)
        return self._place

    def choice(self, *of: bytes) -> bytes:
        """One of these."""
        return self._rng.choice(of)

    def rest(self, *seconds: float) -> Pause:
        """One of these times."""
        return Pause(self._rng.choice(seconds))

    def image(self) -> bytes:
        """The path of an image, pasted."""
        self.images.append(self._place)
        return b"\x1b[200~@IMAGE%d@\x1b[201~" % (len(self.images) - 1)

    def panes(self) -> list[Stroke]:
        """Two panes, the focus from one to the other and back."""
        left = self._fresh()
        self._place = left
        strokes: list[Stroke] = [NEW, self.text(), ENTER, Pause(0.8)]
        right = self.opened()
        strokes += [f"/split {right}".encode(), ENTER, self.text()]
        for _ in range(self._rng.randint(1, 3)):
            self._place = left if self._place == right else right
            strokes += [OTHER_PANE, self.text()]
        self._place = left if self._place == right else right
        return [*strokes, CLOSE_PANE, self.text()]

    def several(self) -> list[Stroke]:
        """Several conversations, none of which is waited for."""
        strokes: list[Stroke] = [self.text()]
        for _ in range(self._rng.randint(2, 3)):
            strokes.append(self.new())
            way = self.choice(b"", b"send", b"open")
            if way == b"send":
                strokes += [self.text(), ENTER]
            elif way == b"open":
                strokes += [f"/resume {self.opened()}".encode(), ENTER]
            strokes.append(self.text())
        return strokes

    def rename(self) -> list[Stroke]:
        """A new title for a conversation that has a message."""
        begin: list[Stroke] = [self.new(), self.text(), ENTER, self.rest(0.0, 0.8), b"/rename", ENTER]
        title = self.text()
        return [*begin, b" ", title.strip(), ENTER, self.text()]

    def slow_paste(self) -> list[Stroke]:
        """A paste in parts, a switch under way."""
        switch = self.choice(b"new", b"open")
        strokes: list[Stroke] = [self.new()] if switch == b"new" else [FIND_ANYTHING, self.opened().encode(), ENTER]
        strokes.append(b"\x1b[200~")
        for _ in range(self._rng.randint(1, 3)):
            strokes += [self.text(), self.rest(0.05, 0.3, 0.7)]
        return [*strokes, b"\x1b[201~", self.text()]

    def history(self) -> list[Stroke]:
        """The newest prompt again."""
        self.repeats = True
        return [self.new(), HISTORY, ENTER, b" ", self.text()]

    def queue_edit(self) -> list[Stroke]:
        """Add to a message that waits, with Up from the empty composer."""
        strokes: list[Stroke] = [self.new(), f"{ENDLESS} ".encode(), self.text(), ENTER, Pause(0.7)]
        strokes += [self.text(), TAB, Pause(0.6), b"\x1b[A", Pause(0.6), ENTER, self.rest(0.0, 0.6)]
        return [*strokes, b"\x1b[F", b" ", self.text(), SEND_NOW, self.rest(0.0, 0.4), self.text()]

    def shell_line(self) -> list[Stroke]:
        """A line for the shell, and text behind it."""
        return [self.new(), b"!echo ", self.text().strip(), ENTER, self.text()]

    def shell_busy(self) -> list[Stroke]:
        """A line that takes a while, a message queued behind it."""
        return [self.new(), b"!sleep 0.6; echo ", self.text().strip(), ENTER, self.text(), TAB, self.text()]

    def in_program(self) -> list[Stroke]:
        """Keys for a program that reads; then for Phoenix again."""
        strokes: list[Stroke] = [self.new(), b"!cat", ENTER, self.rest(0.0, 0.1, 0.8), b"\x1d"]
        return [*strokes, self.text().strip(), ENTER, Pause(2.5), b"\x04", Pause(1.5), self.text()]


def some_size(rng: random.Random) -> tuple[int, int]:
    """Columns and rows of a terminal: any up to 300x100, often below those that can be read."""
    least = rng.random() < 0.4
    return rng.randint(1, 25 if least else 300), rng.randint(1, 8 if least else 100)


Maker: TypeAlias = Callable[[Script], list[Stroke]]
STEPS: Final[dict[str, tuple[float, Maker]]] = {
    "text": (4, lambda s: [s.text()]),
    "send": (3, lambda s: [s.text(), ENTER]),
    "new": (2, lambda s: [s.new()]),
    "new text": (2, lambda s: [s.new(), s.text()]),
    "go": (1, lambda s: [s.go()]),
    "go text": (2, lambda s: [s.go(), s.text()]),
    "open": (3, lambda s: [FIND_ANYTHING, s.opened().encode(), ENTER, s.text()]),
    "resume": (1, lambda s: [s.new(), f"/resume {s.opened()}".encode(), ENTER, s.text()]),
    "list": (1, lambda s: [LIST, s.choice(LIST, ESC), s.text()]),
    "sheet": (2, lambda s: [s.choice(*SHEETS), s.rest(0.0, 0.05, 0.3), ESC, s.text()]),
    "filter": (1, lambda s: [s.choice(FIND_ANYTHING, HISTORY), b"zq", s.rest(0.0, 0.3), ESC, s.text()]),
    "file": (1, lambda s: [b"@rea", TAB, b" ", s.text()]),
    "several": (2, Script.several),
    "stash": (1, lambda s: [s.text(), STASH, s.text()]),
    "stash again": (1, lambda s: [STASH, s.text()]),
    "queue": (1, lambda s: [s.text(), ENTER, s.text(), TAB, s.text()]),
    "steer": (2, lambda s: [s.new(), f"{ENDLESS} ".encode(), s.text(), ENTER, s.text(), STEER, s.text()]),
    "esc": (1, lambda s: [ESC, s.text()]),
    "send now": (1, lambda s: [s.text(), SEND_NOW, s.text()]),
    "history": (1, Script.history),
    "up and down": (1, lambda s: [b"\x1b[A\x1b[B", s.text()]),
    "paste": (1, lambda s: [b"\x1b[200~" + s.text() + b"\x1b[201~", s.text()]),
    "slow paste": (2, Script.slow_paste),
    "image": (2, lambda s: [s.image(), s.text(), s.new(), s.text()]),
    "image behind": (2, lambda s: [s.new(), s.image(), s.text()]),
    "panes": (1, Script.panes),
    "rename": (1, Script.rename),
    "side question": (1, lambda s: [s.new(), FIND_ANYTHING, b"/btw", ENTER, s.text(), s.new()]),
    "command": (1, lambda s: [s.new(), b"/new", ENTER, s.text(), s.choice(b"", ENTER)]),
    "editor": (2, lambda s: [s.text(), EDITOR, Pause(0.9), s.text()]),
    "queue edit": (2, Script.queue_edit),
    "shell": (1, Script.shell_line),
    "shell busy": (1, Script.shell_busy),
    "program": (1, Script.in_program),
}
"""Kinds of steps with their weights."""
