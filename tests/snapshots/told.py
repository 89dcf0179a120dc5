"""Updates in the conversations of the scenes, step by step as from an engine: a failing test is fixed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from engine.codec import encode_display
from engine.machine.messages import (
    Block,
    ImageBlock,
    Origin,
    Role,
    TextBlock,
    ToolCall,
    ToolResult,
    ToolResultBlock,
    ToolStatus,
    ToolUseBlock,
)
from engine.machine.states import AwaitingLlm, Idle, Requesting, Run, ToolExecuting, ToolRound
from engine.records import StoredMessage
from engine.updates import ContextChanged, MessageSaved, Question, RunEnded, ToolEnded, ToolStarted
from tests.support.fake_engine import RUN, FakeConversation
from tests.support.still_time import NOW, UPTIME
from tests.support.story import AS_EXPECTED, FIX, NO_LIMIT, READ_FIRST, REPORT, REST, TEST
from tools.contract import DiffDisplay, Display, PlainDisplay, TerminalDisplay, ToolClass, ToolRequest

FAILED: Final = """\
F
======================================================================
FAIL: test_it_never_waits_longer_than_the_limit (tests.test_backoff.Backoff)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "tests/test_backoff.py", line 11, in test_it_never_waits_longer_than_the_limit
    self.assertLessEqual(delay(12), LIMIT)
AssertionError: 2048.0 not less than or equal to 30.0

----------------------------------------------------------------------
Ran 2 tests in 0.001s

FAILED (failures=1)
"""
DIFF: Final = '''\
@@ -4,5 +4,5 @@


 def delay(attempt: int, base: float = 0.5) -> float:
-    """Seconds before the next try: doubles each time."""
-    return base * 2**attempt
+    """Seconds before the next try: doubles each time, up to LIMIT."""
+    return min(LIMIT, base * 2**attempt)
'''


@dataclass
class Teller:
    """Tells a conversation's updates in the engine's order."""

    conversation: FakeConversation

    def prompt(self, text: str, *images: ImageBlock) -> None:
        """A message of the user, and the model is asked."""
        self.save(Role.USER, Origin.HUMAN, TextBlock(text), *images)
        self.thinks()

    def thinks(self, seconds: float = 4.0, run: Run = RUN) -> None:
        """The model is asked, so long ago."""
        self.conversation.engine.now = UPTIME - seconds
        self.conversation.become(AwaitingLlm(1, run, Requesting()))

    def says(self, text: str) -> None:
        """An answer that ends the turn."""
        self.save(Role.ASSISTANT, Origin.LLM, TextBlock(text))
        self.conversation.play(RunEnded(RUN.id, "success", "", "", 1))
        self.conversation.record = replace(self.conversation.record, last_status="success")
        self.conversation.become(Idle(2))

    def wants(self, words: str, *calls: ToolCall) -> None:
        """A reply that asks for tools."""
        uses = (ToolUseBlock(call.id, call.name, call.input_json) for call in calls)
        self.save(Role.ASSISTANT, Origin.LLM, *([TextBlock(words)] if words else []), *uses)

    def runs(self, call: ToolCall, summary: str, seconds: float = 7.0, after: tuple[ToolCall, ...] = ()) -> None:
        """A tool runs, since so long; others wait behind it."""
        self.conversation.engine.now = UPTIME - seconds
        self.conversation.become(ToolExecuting(1, RUN, ToolRound("m", call, after)))
        self.conversation.play(ToolStarted(call, ToolRequest(summary)))

    def ran(
        self, call: ToolCall, summary: str, text: str, display: Display | None = None, seconds: float = 0.4,
        status: ToolStatus = ToolStatus.SUCCESS,
    ) -> None:  # fmt: skip
        """A tool ran."""
        self.runs(call, summary, seconds)
        encoded = encode_display(display) if display is not None else ""
        self.conversation.play(ToolEnded(ToolResult(call.id, text, status, (), encoded), seconds))
        self.save(Role.USER, Origin.TOOL, ToolResultBlock(call.id, (TextBlock(text),)))

    def asks(self, call: ToolCall, command: str, reason: str, rule: str, **more: Any) -> None:
        """A tool asks."""
        preview, tool_class = more.get("preview"), more.get("tool_class", ToolClass.RUN)
        request = ToolRequest(command, preview=preview, command=command if tool_class is ToolClass.RUN else "")
        self.conversation.engine.now = UPTIME - more.get("seconds", 12.0)
        self.conversation.ask(Question(call, request, reason, rule, "", tool_class, self.conversation.engine.now))

    def measures(self, tokens: int, cost: float = 0.21) -> None:
        """The meter."""
        record = self.conversation.record
        totals = replace(record.totals, cost_usd=cost)
        self.conversation.record = replace(record, context_tokens=tokens, totals=totals)
        self.conversation.play(ContextChanged(tokens, record.context_window, estimated=False, cost_usd=cost))

    def save(self, role: Role, origin: Origin, *blocks: Block) -> None:
        """A message is stored."""
        conversation = self.conversation
        seq = len(conversation.messages) + 1
        message = StoredMessage(f"{conversation.id}-{seq}", seq, 0, seq - 1, role, origin, blocks, NOW - 300 + seq)
        conversation.messages.append(message)
        conversation.record = replace(conversation.record, message_count=seq)
        conversation.engine.stored[conversation.id] = conversation.record
        conversation.play(MessageSaved(message))


def call(call_id: str, name: str, **arguments: Any) -> ToolCall:
    """A tool use."""
    return ToolCall(call_id, name, json.dumps(arguments))


READS: Final = tuple(
    call(f"read-{name}", "read_file", path=name) for name in ("relay/backoff.py", "tests/test_backoff.py")
)
RUNS, AGAIN = call("test-1", "bash", command=TEST), call("test-2", "bash", command=TEST)
PATCH: Final = call("patch-1", "patch", path="relay/backoff.py")
CHANGE: Final = DiffDisplay("relay/backoff.py", DIFF, 2, 2)


def reads(teller: Teller) -> None:
    """The prompt, and two files that are read."""
    teller.prompt(FIX)
    teller.wants(READ_FIRST, *READS)
    for one, count in zip(READS, (8, 12), strict=True):
        path = str(json.loads(one.input_json)["path"])
        teller.ran(one, path, f"{count} lines", PlainDisplay("\n".join(f"line {n}" for n in range(1, count + 1))), 0.1)
    teller.measures(82_000, 0.14)


def fails(teller: Teller) -> None:
    """The test fails as it should."""
    teller.wants(NO_LIMIT, RUNS)
    teller.ran(RUNS, TEST, FAILED, TerminalDisplay(FAILED, 1), 0.6, ToolStatus.ERROR)


def patches(teller: Teller) -> None:
    """The change, and the test again."""
    teller.wants(AS_EXPECTED, PATCH)
    teller.ran(PATCH, "relay/backoff.py", "changed", CHANGE, 0.1)
    teller.wants("", AGAIN)
    passed = "..\n" + "-" * 70 + "\nRan 2 tests in 0.001s\n\nOK\n"
    teller.ran(AGAIN, TEST, passed, TerminalDisplay(passed, 0), 0.5)
    teller.measures(84_000)


def fixes(teller: Teller) -> None:
    """All of it."""
    reads(teller)
    fails(teller)
    patches(teller)
    teller.says(REPORT + REST)


def asks_to_run(teller: Teller) -> None:
    """Stops at the first question."""
    reads(teller)
    teller.wants(NO_LIMIT, RUNS)
    teller.asks(RUNS, TEST, "commands ask in mode ask", "bash(python3 -m unittest *)")


def asks_to_patch(teller: Teller) -> None:
    """Stops at the second."""
    reads(teller)
    fails(teller)
    teller.wants(AS_EXPECTED, PATCH)
    teller.asks(
        PATCH, "relay/backoff.py", "edits ask in mode ask", "patch(relay/*)", preview=CHANGE, tool_class=ToolClass.EDIT
    )


def model_of(
    conversation: FakeConversation, model: str = "anthropic/claude-sonnet-5-5", cwd: Path | None = None
) -> None:
    """The conversation talks to a model with a price."""
    record = conversation.record
    conversation.record = replace(record, model=model, cwd=cwd or record.cwd)
    conversation.engine.stored[conversation.id] = conversation.record
