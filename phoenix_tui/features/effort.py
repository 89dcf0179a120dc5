"""The effort of the model of the conversation in view, and of new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from engine.machine.states import is_busy
from engine.ports import ConversationChanges
from engine.records import ConversationRecord
from engine.run_options import LEVELS, Effort, nearest
from phoenix_tui.features.front_end import FrontEnd, Option
from phoenix_tui.text.labels import short_model, tokens

MEANINGS: Final[dict[Effort, str]] = {
    Effort.DEFAULT: "the provider decides",
    Effort.OFF: "no reasoning: fast and cheap",
    Effort.LOW: "little reasoning",
    Effort.MEDIUM: "a balance of speed and care",
    Effort.HIGH: "much reasoning: slower, costs more",
    Effort.MAX: "as much as the model can",
}
STEPS: Final = {"higher": 1, "lower": -1}
NO_LEVELS: Final = "{model} has no levels of effort."
LATER: Final = " It counts from the next run on."
CLAUDE: Final = "anthropic/"
READ_ANEW: Final = " The next request reads {count} tokens anew: the cache is of one effort."


async def choose_effort(front: FrontEnd, word: str) -> None:
    """Use this effort or the next one, or ask for one that the model accepts."""
    known = front.services.system.efforts(front.model)
    if word and word not in {*Effort, *STEPS}:
        front.tell(f"Efforts: {', '.join(Effort)}; or {' or '.join(STEPS)}.", bad=True)
        return
    if word not in set(Effort) and not known and front.effort is Effort.DEFAULT:
        front.tell(NO_LEVELS.format(model=short_model(front.model)))
        return
    offered = [level for level in LEVELS if level in {Effort.DEFAULT, front.effort, *known}]
    if word in STEPS:
        word = offered[min(max(offered.index(front.effort) + STEPS[word], 0), len(offered) - 1)].value
    if not word:
        options = [Option(level.value, level.value, (MEANINGS[level],)) for level in offered]
        word = await front.pick(f"Effort of {short_model(front.model)}", options, current=front.effort.value)
    if word in set(Effort):
        await _use_effort(front, Effort(word), known)


async def _use_effort(front: FrontEnd, effort: Effort, known: Sequence[Effort]) -> None:
    """Use it here and for new conversations of this session."""
    front.prefer(launch=replace(front.launch, effort=effort))
    running, anew = False, ""
    if front.conversation is not None:
        running, anew = is_busy(front.conversation.state), _read_anew(front.conversation.record, effort)
        await front.conversation.change(ConversationChanges(effort=effort))
    said = _sentence(short_model(front.model), effort, known) + (LATER if running else "") + anew
    if running or anew or effort not in {Effort.DEFAULT, *known}:
        front.tell(said)
    else:
        front.confirm_change(said)


def _read_anew(record: ConversationRecord, effort: Effort) -> str:
    """The cost of a change to the prompt cache, which Claude keeps for one effort; empty where there is none."""
    if effort is record.effort or not record.context_tokens or not record.model.startswith(CLAUDE):
        return ""
    return READ_ANEW.format(count=tokens(record.context_tokens))


def _sentence(model: str, effort: Effort, known: Sequence[Effort]) -> str:
    if effort is Effort.DEFAULT or effort in known:
        return f"Effort {effort.value}: {MEANINGS[effort]}."
    if not known:
        return f"Effort {effort.value}: {model} has no levels and is sent none."
    return f"Effort {effort.value}: {model} is sent {nearest(effort, known).value}, its nearest."
