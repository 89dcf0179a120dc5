"""The `demo` provider: one model, `guide`, that follows rules and calls tools that are on offer."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import AsyncGenerator, Sequence
from typing import assert_never

from msgspec import Struct

from engine.machine.messages import Block, StopReason, TextBlock, ToolUseBlock, Usage
from engine.ports import ModelInfo, ModelReply, ModelRequest, ProviderError, StreamItem, TextDelta, ToolCallDelta
from engine.providers.guide.answers import NOT_UNDERSTOOD, NOT_UNDERSTOOD_SENTENCE, SIGNATURE, code, compose
from engine.providers.guide.plan import (
    BashStep,
    ListStep,
    PatchStep,
    PlanStep,
    ReadStep,
    SearchStep,
    ThinkStep,
    WriteStep,
    next_steps,
    read_dialogue,
)
from engine.providers.guide.understand import understand
from tools.contract import JsonObject, ToolSpec


class PlannedCall(Struct, frozen=True):
    """A call, and the words that announce it."""

    tool: str
    arguments: JsonObject
    announcement: str

    @property
    def input_json(self) -> str:
        """The arguments as JSON text of a tool use."""
        return json.dumps(self.arguments, ensure_ascii=False)


def make_call(step: PlanStep) -> PlannedCall:
    """The call that carries out `step`."""
    match step:
        case ReadStep(path):
            return PlannedCall("read_file", {"path": path}, f"reading {code(path)}")
        case ListStep(folder, glob):
            place: JsonObject = {"path": folder} if folder else {}
            only: JsonObject = {"glob": glob} if glob else {}
            what = f"listing {code(glob or folder)}" if glob or folder else "listing the files"
            return PlannedCall("list_files", {**place, **only}, what)
        case SearchStep(pattern, glob):
            where: JsonObject = {"glob": glob} if glob else {}
            return PlannedCall("search", {"pattern": pattern, **where}, f"searching {code(pattern)}")
        case BashStep(command, slow):
            time: JsonObject = {"slow": True} if slow else {}
            return PlannedCall("bash", {"command": command, **time}, f"running {code(command)}")
        case WriteStep(path, content):
            return PlannedCall("write_file", {"path": path, "content": content}, f"writing {code(path)}")
        case PatchStep(path, old, new):
            edit: JsonObject = {"op": "replace", "old": old, "new": new}
            return PlannedCall("patch", {"path": path, "edits": [edit]}, f"patching {code(path)}")
        case ThinkStep(thoughts):
            return PlannedCall("think", {"thoughts": thoughts}, "noting a thought")
        case _:
            assert_never(step)


def missing_tools(calls: Sequence[PlannedCall], tools: Sequence[ToolSpec]) -> list[str]:
    """The tools these calls need and the conversation does not offer, each once."""
    offered = {spec.name for spec in tools}
    return list(dict.fromkeys(call.tool for call in calls if call.tool not in offered))


PROVIDER = "demo"
MODEL = "guide"
PIECE = re.compile(r"\s*\S{1,24}|\s+")
"""One streamed piece: a word with the space before it."""


class GuideProvider:
    """Answers from rules, with real tool calls, without a network.

    With `strict` a request no rule fits raises ProviderError(kind="not_understood") instead of an explanation:
    headless runs exit 41 on it (CONTRACT 5).
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict

    @property
    def name(self) -> str:
        """`demo`."""
        return PROVIDER

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Answer in small pieces.

        Raises:
            ProviderError: kind `not_understood`, only when strict.
        """
        text, calls = self._decide(request)
        for piece in PIECE.findall(text):
            yield TextDelta(piece)
            await asyncio.sleep(0)
        blocks: list[Block] = [TextBlock(text)]
        for call in calls:
            yield ToolCallDelta(call.tool, "")
            await asyncio.sleep(0)
            yield ToolCallDelta("", call.input_json)
            blocks.append(ToolUseBlock(f"guide_{uuid.uuid4().hex[:16]}", call.tool, call.input_json))
        stop = StopReason.TOOL_USE if calls else StopReason.END_TURN
        yield ModelReply(tuple(blocks), stop, Usage(), MODEL)

    def _decide(self, request: ModelRequest) -> tuple[str, tuple[PlannedCall, ...]]:
        """Choose the text, and the tools to call with it."""
        dialogue = read_dialogue(request.messages)
        intent = understand(dialogue.request)
        if intent is None:
            if self._strict:
                raise ProviderError(NOT_UNDERSTOOD_SENTENCE, kind="not_understood", retryable=False)
            return _sign(NOT_UNDERSTOOD), ()
        calls = tuple(make_call(step) for step in next_steps(intent, dialogue))
        missing = missing_tools(calls, request.tools)
        if missing:
            names = ", ".join(code(name) for name in missing)
            return _sign(f"That needs {names}, which this conversation does not offer."), ()
        if calls:
            return f"By rule: {', '.join(call.announcement for call in calls)}.", calls
        return _sign(compose(intent, dialogue)), ()

    def describe(self, model: str) -> ModelInfo:
        """The guide, whatever it is called by."""
        note = "rules, no model"
        return ModelInfo(PROVIDER, model, vision=False, local=True, note=note, summarizes=False)

    async def models(self) -> list[ModelInfo]:
        """The one there is."""
        return [self.describe(MODEL)]

    async def warm(self) -> None:
        """Do nothing: there is no connection."""

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def _sign(answer: str) -> str:
    return f"{answer}\n\n{SIGNATURE}"
