"""The permission mode and the sandbox of the conversation in view."""

from __future__ import annotations

from typing import Final

from engine.ports import ConversationChanges
from engine.ports.profiles import SANDBOX_FREEDOM
from engine.records import PermissionMode
from phoenix_tui.features.front_end import FrontEnd, Option
from phoenix_tui.features.rules import rule_places
from phoenix_tui.text.labels import MODE_MEANINGS, SANDBOX_MEANINGS, ask_widening, sandbox_set
from tools.contract import Enforcement, SandboxMode
from tools.wording import counted

RULES: Final = "rules"
"""Offered beside the modes: the rules."""


async def choose_mode(front: FrontEnd, word: str) -> bool:
    """Use this mode, or ask for one; True where the user wants to see the rules instead."""
    modes = {mode.value: mode for mode in PermissionMode}
    if word and word not in {*modes, RULES}:
        front.tell(f"Modes: {', '.join(modes)}; {RULES} shows the rules.", bad=True)
        return False
    if not word:
        options = [Option(mode.value, mode.value, (MODE_MEANINGS[mode],)) for mode in PermissionMode]
        count = len(front.services.engine.rules.all(rule_places(front).folder))
        options.append(Option(RULES, RULES, (f"{counted(count, 'rule')}: list, edit, remove",)))
        word = await front.pick("What runs without asking", options, current=front.mode.value)
    if word in modes:
        await use_mode(front, modes[word])
    return word == RULES


async def use_mode(front: FrontEnd, mode: PermissionMode) -> None:
    """Use this mode here."""
    front.prefer(mode=mode)
    if front.conversation is not None:
        await front.conversation.change(ConversationChanges(permission_mode=mode))
    front.confirm_change(f"Mode {mode.value}: {MODE_MEANINGS[mode]}.")


async def choose_sandbox(front: FrontEnd, word: str) -> Enforcement | None:
    """Use this sandbox or ask for one, a wider one after a yes; returns its enforcement, None where none was set."""
    now = front.sandbox
    if not word:
        options = [Option(one.value, one.value, (SANDBOX_MEANINGS[one],)) for one in SandboxMode]
        word = await front.pick("Sandbox of this conversation", options, current=now.value)
    if word not in set(SandboxMode):
        if word:
            front.tell(f"Sandboxes: {', '.join(SandboxMode)}.", bad=True)
        return None
    wanted = SandboxMode(word)
    wider = SANDBOX_FREEDOM[wanted] > SANDBOX_FREEDOM[now]
    if wider and not await front.confirm(ask_widening(now, wanted), "change", "cancel"):
        return None
    front.prefer(sandbox=wanted)
    if front.conversation is not None:
        await front.conversation.change(ConversationChanges(sandbox=wanted))
    is_off = wanted is SandboxMode.OFF
    enforcement = Enforcement.FULL if is_off else await front.services.system.enforcement()
    front.tell(sandbox_set(wanted, enforcement))
    return enforcement
