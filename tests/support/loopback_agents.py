"""A loopback Claude whose answers go by what was said last, so that parent and sub-agents may ask in any order."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.support.journeys import calls, says
from tests.support.loopback import Answer, Talk
from tests.support.loopback_anthropic import recording, start, text

UNEXPECTED = "Nothing was scripted for this."


def by_last_message(answers: Mapping[str, Answer]) -> Answer:
    """The first answer whose words are in the last message of a request."""

    async def answer(talk: Talk) -> None:
        last = json.dumps(json.loads(talk.seen.body)["messages"][-1], ensure_ascii=False)
        found = next((one for words, one in answers.items() if words in last), says(UNEXPECTED))
        await found(talk)

    return answer


def spawns(*tasks: str, call_id: str = "toolu_spawn", **more: object) -> Answer:
    """A reply that starts sub-agents and waits for them."""
    return calls("spawn_agents", call_id, tasks=[{"task": task} for task in tasks], **more)


def begins(task: str, call_id: str = "toolu_begin") -> Answer:
    """A reply that starts a sub-agent in the background."""
    return calls("spawn_task", call_id, task_description=task, initial_prompt=task)


def submits(result: str) -> Answer:
    """A reply that hands in a result."""
    return calls("submit_result", "toolu_submit", result=result)


async def never_ends(talk: Talk) -> None:
    """A reply that begins and never ends."""
    await talk.begin()
    await talk.send(*recording(start(), text(0, "Once")))
    await talk.stall()
