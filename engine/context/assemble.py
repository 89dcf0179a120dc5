"""Assembles one model request from the store: messages, prompt, images, within the request limits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from engine.context.growing import GrowingView
from engine.context.prompt import PromptFacts, dynamic_section, iterations_left, plans, static_prompt
from engine.machine.agent_rules import FIELDS
from engine.machine.agent_texts import GRACE
from engine.machine.effects import RequestLlm
from engine.machine.views import ContextView
from engine.ports import ImageBytes, ModelRequest
from engine.records import StoredMessage
from engine.run_options import Effort
from tools.files.own_files import read_own

if TYPE_CHECKING:
    from engine.store.store import Store


CONTINUE_TEXT = "[Your reply was cut off by the output limit. Continue exactly where it ended.]"
TRUNCATED_TEXT = (
    "[Tool call was truncated by the output limit and was not executed. Make it again, smaller, or in several steps.]"
)


class Assembly(Struct, frozen=True):
    """Inputs of a request that are not in the store."""

    prompt: PromptFacts
    model: str
    """The part of the reference after the provider's name."""
    now: float
    view: ContextView = ContextView()
    note: str = ""
    """Last text of every request of this turn, contained in no message."""
    effort: Effort = Effort.DEFAULT


async def assemble(
    store: Store, rows: Sequence[StoredMessage], growing: GrowingView, ask: RequestLlm, assembly: Assembly
) -> ModelRequest:
    """The request for one model call over the stored messages `rows`; `growing` knows those of the last request."""
    facts = assembly.prompt
    messages = growing.build(rows, assembly.view, ask.partial, _transient(ask, assembly.note), facts.history_turns)
    return ModelRequest(
        model=assembly.model,
        system=(
            static_prompt(facts),
            dynamic_section(assembly.now, facts.permission_mode, facts.sandbox, plans=plans(facts)).text,
        ),
        messages=messages,
        tools=tuple(tool for tool in facts.tools if not ask.only_submit or tool.name in FIELDS),
        images=await _load_images(store, list(dict.fromkeys(chain.from_iterable(growing.images.of(messages))))),
        effort=assembly.effort,
    )


def _transient(ask: RequestLlm, note: str) -> str:
    if ask.only_submit:
        return GRACE
    if ask.truncated_call:
        return TRUNCATED_TEXT
    if ask.partial:
        return CONTINUE_TEXT
    return "\n".join(filter(None, (note, iterations_left(ask.iteration, ask.max_iterations))))


async def _load_images(store: Store, ids: list[str]) -> dict[str, ImageBytes]:
    if not ids:
        return {}
    attachments = await store.attachments(ids)
    loaded: dict[str, ImageBytes] = {}
    for key, attachment in attachments.items():
        try:
            data = await asyncio.to_thread(read_own, attachment.path)
        except OSError:
            continue  # a lost file becomes "[image omitted]" on the wire, never a failed request
        loaded[key] = ImageBytes(attachment.media_type, data)
    return loaded
