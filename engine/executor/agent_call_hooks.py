"""Hooks behind calls that started sub-agents: asked once these have ended, before the model reads their results."""

from __future__ import annotations

from collections.abc import Iterable

from engine.executor.call_hooks import opinion_after, stop_sentence, subject_of
from engine.executor.ready_calls import prepare
from engine.executor.session import Session
from engine.extensions.hooks.joining import JoinedVerdict
from engine.machine.messages import ToolCall, ToolUseBlock
from engine.machine.reply import HOOK_STOPPED
from engine.ports import ProviderError
from engine.updates import Noticed
from tools.contract import ToolInputError, ToolOutput


async def hear_agent_calls(session: Session, calls: Iterable[ToolUseBlock], texts: dict[str, str]) -> tuple[str, ...]:
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
        output, verdict, rows = await opinion_after(session, call, subject, output, seconds)
        for row in rows:
            session.publisher.publish(Noticed(row))
        if verdict.stops:
            raise ProviderError(stop_sentence(verdict), kind=HOOK_STOPPED, retryable=False)
        notes += _notes(verdict, output)
    return tuple(notes)


def _notes(verdict: JoinedVerdict, output: ToolOutput) -> Iterable[str]:
    """Text for the model beside the result, which is stored already."""
    if verdict.updated_output is not None:
        yield f"[In place of the results of the sub-agents, a hook gives this] {output.text}"
        return
    if verdict.blocks:
        yield f"[A hook objects: {verdict.reason}]"
    for context in verdict.context:
        yield f"[From a hook: {context}]"
