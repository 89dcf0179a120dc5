"""Hooks at the end of an answer, and of a sub-agent's work: each can let the run go on, with its reason as the next
message.
"""

from __future__ import annotations

from typing import Final

from engine.context.message_cap import MOST
from engine.executor.background_fields import background_tasks
from engine.executor.hooking import ask_hooks
from engine.executor.prompt_hooks import AGENTS, profile_of
from engine.executor.session import Session
from engine.machine.effects import AskStopHooks
from engine.machine.events import StopDecided
from engine.machine.messages import NewMessage, Origin, Role, TextBlock
from engine.ports.hooks import HookEvent
from tools.contract import JsonObject

MOST_TIMES: Final = 8
"""Times in a row that hooks let one run go on."""
SAYS: Final = "[From a hook at the end of your answer]"
TOO_OFTEN: Final = f"Hooks let this run go on {MOST_TIMES} times; it ends now."


async def decide_stop(session: Session, act: AskStopHooks) -> None:
    """Perform one AskStopHooks; cancelling ends the hooks and answers nothing."""
    run = session.run
    fields: JsonObject = {
        "stop_hook_active": run.stop_hooks > 0,
        "last_assistant_message": act.text,
        "background_tasks": background_tasks(session),
    }
    event, subjects = HookEvent.STOP, tuple[str, ...]()
    if session.record.agent is not None:
        event, subjects = HookEvent.SUBAGENT_STOP, (profile_of(session),)
        fields[AGENTS] = ""
    asked = await ask_hooks(session, event, subjects, fields)
    verdict, rows = asked.verdict, list(asked.rows)
    reason = verdict.reason or "Go on."
    goes_on = verdict.blocks and not verdict.stops
    if goes_on and run.stop_hooks >= MOST_TIMES:
        rows.append(TOO_OFTEN)
        goes_on = False
    message, run.heard_of_end = None, not goes_on
    if goes_on:
        run.stop_hooks += 1
        words = TextBlock(f"{SAYS} {reason}"[:MOST])
        message = NewMessage(session.ports.ids.new(), Role.USER, Origin.NOTICE, (words,))
    session.post(lambda: StopDecided(act.gen, message, "\n".join(rows)))
