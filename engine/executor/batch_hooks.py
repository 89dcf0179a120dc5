"""Hooks after the calls of a reply, before the model reads their results; they can end the run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, cast

from engine.executor.call_hooks import ask_after_call, describe_stop, subject_of
from engine.executor.event_hooks import ask_hooks, wants_hooks
from engine.executor.ready_calls import prepare
from engine.executor.session import Session
from engine.extensions.hooks.output import JoinedVerdict
from engine.machine.effects import RequestLlm
from engine.machine.messages import Role, ToolCall, ToolResultBlock, ToolUseBlock, text_in
from engine.machine.reply import HOOK_STOPPED
from engine.ports import ProviderError
from engine.ports.extensions import HookEvent
from engine.records import StoredMessage
from engine.updates import Noticed
from tools.aliases import FOREIGN, to_foreign
from tools.contract import JsonObject, JsonValue, ToolInputError, ToolOutput


async def run_agent_call_hooks(
    session: Session, calls: Iterable[ToolUseBlock], texts: dict[str, str]
) -> tuple[str, ...]:
    """Ask the hooks about each call of a reply that started sub-agents; `texts` are the results by call. Returns what
    they add for the model.

    Raises:
        ProviderError: one ends the run.
    """
    notes: list[str] = []
    for block in calls:
        started = session.run.agent_calls.pop(block.id, None)
        if started is None or not session.ports.hooks:
            continue
        call = ToolCall(block.id, block.name, block.input_json)
        try:
            ready = await prepare(session, call)
        except ToolInputError:  # its tool has gone meanwhile
            continue
        subject = subject_of(session, ready.tool.spec, ready.args, ready.request)
        seconds = session.ports.clock.monotonic() - started
        output = ToolOutput(texts.get(block.id, ""))
        output, verdict, rows = await ask_after_call(session, call, subject, output, seconds)
        for row in rows:
            session.publisher.publish(Noticed(row))
        if verdict.stops:
            raise ProviderError(describe_stop(verdict), kind=HOOK_STOPPED, retryable=False)
        notes += _build_notes(verdict, output)
    return tuple(notes)


def _build_notes(verdict: JoinedVerdict, output: ToolOutput) -> Iterable[str]:
    """Text for the model beside the result, which is stored already."""
    if verdict.updated_output is not None:
        yield f"[In place of the results of the sub-agents, a hook gives this] {output.text}"
        return
    if verdict.blocks:
        yield f"[A hook objects: {verdict.reason}]"
    for context in verdict.context:
        yield f"[From a hook: {context}]"


BLOCKED: Final = "A hook stopped the run: {reason}"
_CONTEXT: Final = "[From a hook: {text}]"


async def run_batch_hooks(session: Session, rows: Sequence[StoredMessage], ask: RequestLlm) -> None:
    """Ask the hooks once about the results that the model is about to read; their texts go with that request.

    Raises:
        ProviderError: one ends the run.
    """
    run = session.run
    wanted = wants_hooks(session, HookEvent.POST_TOOL_BATCH)
    if ask.attempt or not (wanted or run.agent_calls or run.batch_note):
        return
    results, calls = _find_newest_batch(rows, ask.run_id)
    if results is None:
        run.batch_note = ""
        return
    if results.id == run.batch:
        return
    run.batch, run.batch_note = results.id, ""
    notes = await run_agent_call_hooks(session, calls, _collect_texts(results)) if run.agent_calls else ()
    notes += await _ask_batch_hooks(session, calls, results) if wanted else ()
    run.batch_note = "\n".join(notes)


async def _ask_batch_hooks(session: Session, calls: Iterable[ToolUseBlock], results: StoredMessage) -> tuple[str, ...]:
    fields: JsonObject = {"tool_calls": list(_describe_calls(calls, results, session.record.cwd))}
    asked = await ask_hooks(session, HookEvent.POST_TOOL_BATCH, fields=fields)
    for row in asked.rows:
        session.publisher.publish(Noticed(row))
    verdict = asked.verdict
    if verdict.stops or verdict.blocks:
        text = describe_stop(verdict) or BLOCKED.format(reason=verdict.reason or "it gave no reason")
        raise ProviderError(text, kind=HOOK_STOPPED, retryable=False)
    return tuple(_CONTEXT.format(text=text) for text in verdict.context)


def _collect_texts(results: StoredMessage) -> dict[str, str]:
    return {block.tool_use_id: text_in(block.content) for block in results.blocks if isinstance(block, ToolResultBlock)}


def _find_newest_batch(
    rows: Sequence[StoredMessage], run_id: str
) -> tuple[StoredMessage | None, Sequence[ToolUseBlock]]:
    """The newest results of this run behind the newest reply, and the calls of that reply."""
    results: StoredMessage | None = None
    for row in reversed(rows):
        if row.run_id != run_id:
            break
        if row.role is Role.ASSISTANT:
            return results, [block for block in row.blocks if isinstance(block, ToolUseBlock)]
        if any(isinstance(block, ToolResultBlock) for block in row.blocks):
            results = row
    return None, ()


def _describe_calls(calls: Iterable[ToolUseBlock], results: StoredMessage, cwd: Path) -> Iterable[JsonValue]:
    """The calls under foreign names, each with its result as the model reads it."""
    texts = _collect_texts(results)
    for call in calls:
        name, given = _translate_call(call, cwd)
        yield {"tool_name": name, "tool_input": given, "tool_use_id": call.id, "tool_response": texts.get(call.id, "")}


def _translate_call(call: ToolUseBlock, cwd: Path) -> tuple[str, JsonObject]:
    try:
        given = cast("JsonValue", json.loads(call.input_json or "{}"))
    except ValueError:
        given = {}
    args = given if isinstance(given, dict) else {}
    try:
        found = to_foreign(call.name, args, cwd)
    except ToolInputError:
        return FOREIGN.get(call.name, call.name), args
    return found.name, found.input
