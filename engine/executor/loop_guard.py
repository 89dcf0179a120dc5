"""Detects runs that repeat tool calls without progress (SPEC CLAW-60)."""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec
from msgspec import Struct, field

from engine.machine.messages import ToolCall
from tools.contract import ToolClass

REMEMBERED: Final = 30
"""Calls of a run that are compared."""
WAITING: Final = frozenset({"job_output"})
"""Tools by which a model waits: their output may stay the same for long."""
CONSTANT: Final = frozenset({"think"})
"""Tools that answer the same to everything."""
FEW_DIFFERENT: Final = 0.6
"""Share of different calls up to which a series of reads counts as repetitive."""
NEARLY_ALL_DIFFERENT: Final = 0.9
"""Share of different calls above which a series of reads is no loop, however long: it reads a large project."""


class Threshold(Struct, frozen=True):
    """Number of calls from which the model is warned, and number that ends the run."""

    warn: int
    stop: int


SAME_CALL: Final = Threshold(3, 5)
"""The same tool, arguments and result."""
SAME_RESULT: Final = Threshold(4, 6)
"""The same tool and result with different arguments."""
REPETITIVE_READS: Final = Threshold(8, 12)
"""Reads in a row without a change, few of them different."""
VARIED_READS: Final = Threshold(24, 36)
"""The same, most of them different."""


class LoopVerdict(Struct, frozen=True):
    """Judgement about one call: a warning for the model below its result, and whether the run ends."""

    warning: str = ""
    stops: bool = False


class _Call(Struct, frozen=True):
    """One remembered call."""

    name: str
    arguments: str
    result: str
    kind: ToolClass | None

    @property
    def is_read(self) -> bool:
        """True for a call that counts in a series of reads."""
        return self.kind is ToolClass.READ and self.name not in CONSTANT

    @property
    def tells(self) -> bool:
        """True when an equal result to other arguments means that nothing new was found.

        A successful command or edit often says nothing of its own.
        """
        return self.kind is None or self.is_read


class LoopGuard(Struct, eq=False):
    """The newest calls of one run."""

    _recent: deque[_Call] = field(default_factory=lambda: deque[_Call](maxlen=REMEMBERED))
    _reads: int = 0
    """Reads since the last change; commands in between neither count nor reset."""
    _warned: set[str] = field(default_factory=set[str])
    """Rules whose warning the model has read: no run ends without one."""

    def judge(self, call: ToolCall, kind: ToolClass | None, result: str, *, failed: bool = False) -> LoopVerdict:
        """Take a call that has ended. `kind` is None for one that was never run: unknown, malformed or denied."""
        if call.name in WAITING:
            return LoopVerdict()
        if kind is ToolClass.EDIT and failed:
            kind = None
        if kind is ToolClass.EDIT:
            self._changed()
        made = _Call(call.name, _plain(call.input_json), result, kind)
        self._recent.append(made)
        self._reads += made.is_read
        found = [
            verdict for verdict in (self._same_call(made), self._same_result(made), self._reading(made)) if verdict
        ]
        return max(found, key=lambda verdict: verdict.stops, default=LoopVerdict())

    def _changed(self) -> None:
        """A file was changed: reading and running the same again is no repetition. The change itself may be one."""
        edits = [call for call in self._recent if call.kind is ToolClass.EDIT]
        self._recent.clear()
        self._recent.extend(edits)
        self._reads = 0
        self._warned -= {"result", "reads"}

    def _same_call(self, made: _Call) -> LoopVerdict | None:
        times = sum(call == made for call in self._recent)
        said = f"This same call has given this same result {times} times."
        return self._verdict("call", times, SAME_CALL, said)

    def _same_result(self, made: _Call) -> LoopVerdict | None:
        if not made.tells:
            return None
        alike = {call.arguments for call in self._recent if (call.name, call.result) == (made.name, made.result)}
        said = f"{len(alike)} different calls of {made.name} have given this same result."
        return self._verdict("result", len(alike), SAME_RESULT, said)

    def _reading(self, made: _Call) -> LoopVerdict | None:
        if not made.is_read:
            return None
        reads = [(call.name, call.arguments) for call in self._recent if call.is_read]
        different = len(set(reads)) / len(reads)
        if different > NEARLY_ALL_DIFFERENT:
            return None
        threshold = REPETITIVE_READS if different <= FEW_DIFFERENT else VARIED_READS
        said = f"{self._reads} reads in a row without a change, some of them repeated."
        return self._verdict("reads", self._reads, threshold, said)

    def _verdict(self, rule: str, count: int, threshold: Threshold, said: str) -> LoopVerdict | None:
        if count < threshold.warn:
            return None
        stops = count >= threshold.stop and rule in self._warned
        self._warned.add(rule)
        last = max(threshold.stop, count + 1)
        advice = f"Do something else, or say what keeps you from going on; at {last} the run ends."
        return LoopVerdict(f"\n\n[{said} {'The run ends here.' if stops else advice}]", stops)


def _plain(arguments: str) -> str:
    """Arguments without irrelevant differences: blanks and the order of fields."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments.encode("utf-8", "replace")), order="sorted").decode()
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return arguments
