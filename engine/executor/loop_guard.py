"""Detects runs that repeat tool calls without progress (SPEC CLAW-60)."""

from __future__ import annotations

import sys
from collections import deque
from enum import Enum, auto
from typing import Final, TypeAlias

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


class _Rule(Enum):
    """Patterns without progress."""

    CALL = auto()
    RESULT = auto()
    READS = auto()


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


_Pattern: TypeAlias = tuple[_Rule] | tuple[_Rule, _Call] | tuple[_Rule, str, str]


class LoopGuard(Struct, eq=False):
    """The newest calls of one run."""

    _recent: deque[_Call] = field(default_factory=lambda: deque[_Call](maxlen=REMEMBERED))
    _reads: int = 0
    """Reads since the last change; commands in between neither count nor reset."""
    _ends_at: dict[_Pattern, int] = field(default_factory=dict["_Pattern", int])
    """Count at which each pattern ends the run, as the model has read below a result: no run ends without that."""
    _unread: dict[_Pattern, int] = field(default_factory=dict["_Pattern", int])
    """The same for warnings below results of the present reply, which the model has not read yet."""
    _reply: int = 0
    _left: int = 0
    """Calls of the present reply that have not ended."""
    _finds_more: bool = False
    """True once a call of the present reply found something new."""
    _due: str = ""
    """Sentence about the repetition that ends the run behind the present reply."""
    _due_rule: _Rule | None = None

    def judge(
        self,
        call: ToolCall,
        kind: ToolClass | None,
        result: str,
        *,
        failed: bool = False,
        reply: int = 0,
        left: int = 0,
    ) -> LoopVerdict:
        """Take a call that has ended. `kind` is None for one that was never run: unknown, malformed or denied.

        A reply is judged with its last call: what a model asks for at once is one step, and it reads no warning
        between two calls of it. `reply` numbers the reply that made the call, `left` counts the calls behind it.
        """
        if reply != self._reply or not self._left:  # the model has read the results of its earlier replies
            self._ends_at |= self._unread
            self._unread.clear()
            self._reply, self._finds_more, self._due, self._due_rule = reply, False, "", None
        self._left = left
        warning = self._compare(call, kind, result, failed=failed) if call.name not in WAITING else ""
        self._finds_more |= not warning and call.name not in WAITING | CONSTANT
        if left or not self._due or (self._finds_more and self._due_rule is not _Rule.CALL):
            return LoopVerdict(warning)
        return LoopVerdict(f"\n\n[{self._due} The run ends here.]", stops=True)

    def _compare(self, call: ToolCall, kind: ToolClass | None, result: str, *, failed: bool) -> str:
        """The warning that this call deserves; empty for none."""
        if kind is ToolClass.EDIT and failed:
            kind = None
        if kind is ToolClass.EDIT:
            self._forget_reads()
        made = _Call(call.name, _normalize(call.input_json), result, kind)
        self._recent.append(made)
        self._reads += made.is_read
        found = [self._check_same_call(made), self._check_same_result(made), self._check_reads(made)]
        return next(filter(None, found), "")

    def _forget_reads(self) -> None:
        """A file was changed: reading and running the same again is no repetition. The change itself may be one."""
        edits = [call for call in self._recent if call.kind is ToolClass.EDIT]
        self._recent.clear()
        self._recent.extend(edits)
        self._reads, self._due = 0, ""
        for told in (self._ends_at, self._unread):
            for pattern in [one for one in told if one[0] is not _Rule.CALL]:
                del told[pattern]

    def _check_same_call(self, made: _Call) -> str:
        times = sum(call == made for call in self._recent)
        said = f"This same call has given this same result {times} times."
        return self._warn((_Rule.CALL, made), times, SAME_CALL, said)

    def _check_same_result(self, made: _Call) -> str:
        if not made.tells:
            return ""
        alike = {call.arguments for call in self._recent if (call.name, call.result) == (made.name, made.result)}
        said = f"{len(alike)} different calls of {made.name} have given this same result."
        return self._warn((_Rule.RESULT, made.name, made.result), len(alike), SAME_RESULT, said)

    def _check_reads(self, made: _Call) -> str:
        if not made.is_read:
            return ""
        reads = [(call.name, call.arguments) for call in self._recent if call.is_read]
        different = len(set(reads)) / len(reads)
        if different > NEARLY_ALL_DIFFERENT:
            return ""
        threshold = REPETITIVE_READS if different <= FEW_DIFFERENT else VARIED_READS
        said = f"{self._reads} reads in a row without a change, some of them repeated."
        return self._warn((_Rule.READS,), self._reads, threshold, said)

    def _warn(self, pattern: _Pattern, count: int, threshold: Threshold, said: str) -> str:
        if count < threshold.warn:
            return ""
        if count >= max(threshold.stop, self._ends_at.get(pattern, sys.maxsize)):
            self._due, self._due_rule = said, pattern[0]
            unless = "" if pattern[0] is _Rule.CALL else " unless it finds something new"
            return f"\n\n[{said} The run ends with this reply{unless}.]"
        last = max(threshold.stop, self._ends_at.get(pattern, count + self._left + 1))
        self._unread[pattern] = last
        return f"\n\n[{said} Do something else, or say what keeps you from going on; at {last} the run ends.]"


def _normalize(arguments: str) -> str:
    """Arguments without irrelevant differences: blanks and the order of fields."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments.encode("utf-8", "replace")), order="sorted").decode()
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return arguments
