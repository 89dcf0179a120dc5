"""The sandbox in lines: what holds for the open conversation, and another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.ports import ConversationChanges
from engine.ports.profiles import SANDBOX_FREEDOM
from phoenix_tui.linear.command import LinearCommand
from phoenix_tui.text.labels import SANDBOX_MEANINGS, sandbox_set, widening
from tools.contract import Enforcement, SandboxMode

if TYPE_CHECKING:
    from phoenix_tui.linear.front import LinearFront


async def _sandbox(front: LinearFront, word: str) -> None:
    conversation = front.talk.conversation
    now = conversation.record.sandbox if conversation is not None else front.talk.sandbox or front.talk.launch.sandbox
    modes = list(SandboxMode)
    if not word:
        heading = f"Sandbox, now {now.value}:"
        chosen = await front.choose(heading, [f"{one.value}: {SANDBOX_MEANINGS[one]}" for one in modes])
        word = modes[chosen].value if chosen is not None else ""
    if not word:
        return
    if word not in set(SandboxMode):
        front.say(f"Sandboxes: {', '.join(SandboxMode)}.")
        return
    await _change(front, now, SandboxMode(word))


async def _change(front: LinearFront, now: SandboxMode, wanted: SandboxMode) -> None:
    if SANDBOX_FREEDOM[wanted] > SANDBOX_FREEDOM[now]:
        chosen = await front.choose(widening(now, wanted), ["keep it", "change it"])
        if chosen != 1:
            front.say(f"The sandbox stays {now.value}.")
            return
    conversation = front.talk.conversation
    if conversation is None:
        front.talk.sandbox = wanted
    elif not await front.talk.attempt(conversation.change(ConversationChanges(sandbox=wanted))):
        return
    enforced = wanted is SandboxMode.OFF or await front.services.enforcement() is not Enforcement.NONE
    front.say(sandbox_set(wanted, enforced=enforced))


COMMANDS: Final = {"sandbox": LinearCommand("limits of commands and edits of this conversation", _sandbox)}
