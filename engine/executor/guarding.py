"""The guard at the doors of a conversation: messages of people, files they attach, results of tools (SPEC CLAW-03)."""

from __future__ import annotations

import logging

from msgspec.structs import replace

from engine.codec import encode_display
from engine.context.input_guard import NULL_BYTES, SECURITY_LOG, GuardAction, suspicions
from engine.executor.session import Ports, Session
from engine.machine.messages import Block, TextBlock, ToolCall, ToolResult
from engine.machine.states import round_of, run_of
from engine.ports import ConversationChanges, OwnedElsewhere, RecordEvent, StorageError, Write
from engine.records.events import EventKind, encode_payload
from tools.contract import PlainDisplay

log = logging.getLogger(SECURITY_LOG)


def check_message(session: Session, text: str) -> str:
    """Reason why a text of the user is not taken; empty for all that `block` lets through. Its event has no move."""
    why = _check_text(session.settings.input_guard, text, session.record.id)
    if why and not session.read_only:
        found = _build_event(session, GuardAction.BLOCK, "message", suspicions(text))
        changes, now = ConversationChanges(events=(found,)), session.ports.clock.now()
        session.background.start(session.ports.store.change(session.record.id, changes, now))
    return why


async def check_hint(ports: Ports, action: GuardAction, text: str, agent_id: str, run_id: str) -> str:
    """The same for a message of the user to a sub-agent, open or not; `run_id` is the run it has under way, if any.

    The event is in the sub-agent's own stream, stored when this returns; a failure to store it changes no refusal.
    """
    why = _check_text(action, text, agent_id)
    if why:
        found = _build_guard_event(ports, action, "message", suspicions(text), run_id=run_id, agent_id=agent_id)
        try:
            await ports.store.change(agent_id, ConversationChanges(events=(found,)), ports.clock.now())
        except (StorageError, OwnedElsewhere) as error:
            log.info("the event of a refused message to %s is not stored: %s", agent_id, error)
    return why


def _check_text(action: GuardAction, text: str, conversation_id: str) -> str:
    if action is not GuardAction.BLOCK or not (found := suspicions(text)):
        return ""
    _log_detection(action, "message", "(refused)", conversation_id, found)
    return f"message blocked: potential prompt injection detected ({', '.join(found)})"


def inspect_message(
    session: Session, blocks: tuple[Block, ...], message_id: str, run_id: str
) -> tuple[tuple[Block, ...], tuple[str, ...], tuple[Write, ...]]:
    """A message as it is sent, the patterns to show below it, and the writes for its move.

    Attached text that is blocked is left out.
    """
    action = session.settings.input_guard
    if action is GuardAction.OFF:
        return blocks, (), ()
    sent: list[Block] = []
    found: list[str] = []
    for block in blocks:
        names = suspicions(block.text) if isinstance(block, TextBlock) else ()
        found += names
        if names and action is GuardAction.BLOCK and isinstance(block, TextBlock) and block.attached:
            block = TextBlock(_withhold(", ".join(names)), f"not attached: {block.attached} looks like an injection")
        sent.append(block)
    order = tuple(dict.fromkeys(found))
    if not order:
        return tuple(sent), (), ()
    _log_detection(action, "message", message_id, session.record.id, order)
    event = _build_event(session, action, "message", order, message_id, run_id)
    return tuple(sent), order if action in {GuardAction.WARN, GuardAction.BLOCK} else (), (event,)


def inspect_result(session: Session, call: ToolCall, result: ToolResult) -> tuple[ToolResult, str, tuple[Write, ...]]:
    """A result as the model reads it, a notice for the user, empty without a suspicion, and the writes for its move.

    Blocked text is left out for the model alone: the display keeps it, so that no output of a tool is lost.
    """
    action = session.settings.input_guard
    if action is GuardAction.OFF:
        return result, "", ()
    found = tuple(name for name in suspicions(result.text) if name != NULL_BYTES)  # usual in what programs print
    if not found:
        return result, "", ()
    round_, run = round_of(session.state), run_of(session.state)
    message_id, run_id = round_.message_id if round_ else "", run.id if run else ""
    writes: tuple[Write, ...] = (_build_event(session, action, call.name, found, message_id, run_id),)
    _log_detection(action, call.name, call.id, session.record.id, found)
    if action is GuardAction.LOG:
        return result, "", writes
    names = ", ".join(found)
    if action is GuardAction.WARN:
        return result, f"⚠ The result of {call.name} looks like an injection: {names}", writes
    display = result.display_json or encode_display(PlainDisplay(result.text))
    notice = f"⚠ The result of {call.name} was withheld from the model; it looks like an injection: {names}"
    return replace(result, text=_withhold(names), display_json=display), notice, writes


def _build_event(
    session: Session, action: GuardAction, source: str, found: tuple[str, ...], message_id: str = "", run_id: str = ""
) -> RecordEvent:
    agent_id = session.record.id if session.record.agent is not None else ""
    return _build_guard_event(session.ports, action, source, found, message_id, run_id, agent_id)


def _build_guard_event(
    ports: Ports,
    action: GuardAction,
    source: str,
    found: tuple[str, ...],
    message_id: str = "",
    run_id: str = "",
    agent_id: str = "",
) -> RecordEvent:
    """The event of a suspicion: names and ids, never the text."""
    payload = encode_payload({"source": source, "patterns": list(found), "action": action.value})
    return RecordEvent(ports.ids.new(), EventKind.INJECTION_DETECTED, payload, run_id, message_id, agent_id=agent_id)


def _withhold(names: str) -> str:
    return (
        f"[Withheld: this text looks like a prompt injection ({names}). The user can read it in the transcript and may "
        "tell you what matters in it; the setting input_guard decides.]"
    )


def _log_detection(
    action: GuardAction, source: str, item_id: str, conversation_id: str, found: tuple[str, ...]
) -> None:
    """Log names and ids, never the text."""
    level = logging.INFO if action is GuardAction.LOG else logging.WARNING
    names = ", ".join(found)
    log.log(
        level,
        "security.injection_detected: %s in %s %s of conversation %s (%s)",
        names,
        source,
        item_id,
        conversation_id,
        action.value,
    )
