"""The model of the conversation in view, and of new ones."""

from __future__ import annotations

import asyncio
from typing import Final

from engine.executor.requests import EngineError
from engine.ports import ConversationChanges
from phoenix_tui.features.effort import choose_effort
from phoenix_tui.features.front_end import FrontEnd, Option
from phoenix_tui.features.model_change import change_sentence
from phoenix_tui.features.model_list import ModelList
from phoenix_tui.features.model_rows import ModelRow, once
from phoenix_tui.models.offers import ProviderState
from phoenix_tui.models.preferred import can_be_kept
from phoenix_tui.text.model_text import facts_line
from tools.wording import counted

DEFAULT: Final = "default"
BEFORE: Final = "-"
"""Argument of /model for the model used before this one."""
NONE_BEFORE: Final = "No other model was chosen before. /model lists all."
CANNOT_MARK: Final = "A model with such a name cannot be a favourite."


async def choose_model(front: FrontEnd, words: str) -> None:
    """Use or mark the model that is named, else ask for one of a numbered list, of those with these words."""
    if await do_named(front, words):
        return
    models = ModelList(await front.services.models.known(), front, words)
    async for _ in models.refresh():
        pass  # the list is read out once
    models.narrow(words)
    if not models.found:
        front.tell(f"No model has “{words}”. /model lists all; /model PROVIDER/MODEL uses one as typed.", bad=True)
        return
    options = [Option(one.key, _words(models, one), _facts(one)) for one in once(models.found) if one.key]
    if len(options) > front.most_options:
        front.tell(f"The first {front.most_options} of {counted(len(options), 'model')}; /model WORD finds others.")
    _tell_closed(front, models)
    shown = options[: front.most_options]
    if shown and (reference := await front.pick("Model of this conversation", shown, current=front.model)):
        await use_model(front, reference)


async def do_named(front: FrontEnd, words: str) -> bool:
    """Do what an argument of /model says by itself; False where it asks for a list."""
    reference, _, action = words.strip().partition(" ")
    if words.strip() == BEFORE:
        await use_model_before(front)
        return True
    provider, slash, name = reference.partition("/")
    if not (slash and name and front.services.models.has_provider(provider)):
        return False
    match action.strip():
        case "":
            await use_model(front, reference)
        case "default":
            await use_by_default(front, reference)
        case "*":
            await tell_mark(front, reference)
        case _:
            return False
    return True


async def use_model(front: FrontEnd, reference: str) -> None:
    """Use this model here and for new conversations of this session; says what the change costs."""
    before, conversation = front.model, front.conversation
    front.prefer(model=reference)
    await _remember(front, reference, before)
    if reference.startswith("local/"):
        front.tell("This is a small local model; check its work.")
    if conversation is not None:
        await conversation.change(ConversationChanges(model=reference))
        if reference != before and (said := await change_sentence(front, conversation)):
            front.tell(said)
    front.confirm_change(f"Model {reference}.")


async def use_by_default(front: FrontEnd, reference: str) -> None:
    """Use it here, and keep it as the model of new conversations."""
    await use_model(front, reference)
    try:
        front.services.settings.save("model", reference)
    except EngineError as error:
        front.tell(str(error), bad=True)
    else:
        front.tell(f"New conversations use {reference}.")


async def use_with_effort(front: FrontEnd, reference: str) -> None:
    """Use it here, then choose its effort."""
    if reference != front.model:
        await use_model(front, reference)
    await choose_effort(front, "")


async def use_model_before(front: FrontEnd) -> None:
    """Go back to the model that was chosen before the present one; a second time returns."""
    recent = front.services.models.preferred.read().recent
    before = next((one for one in recent if one != front.model), "")
    if before:
        await use_model(front, before)
    else:
        front.tell(NONE_BEFORE)


async def tell_mark(front: FrontEnd, reference: str) -> None:
    """Mark a model as a favourite, or take the mark away, and say so."""
    is_marked, why = await mark(front, reference)
    done = "is a favourite now" if is_marked else "is no favourite any more"
    front.tell(why or f"{reference} {done}.", bad=bool(why))


async def mark(front: FrontEnd, reference: str) -> tuple[bool, str]:
    """Mark a model or take the mark away: True when it is a favourite now, and the reason where it cannot be kept."""
    if not can_be_kept(reference):
        return False, CANNOT_MARK
    try:
        return await asyncio.to_thread(front.services.models.preferred.toggle, reference), ""
    except OSError as error:
        return False, f"Favourites cannot be saved: {error.strerror}."


async def _remember(front: FrontEnd, reference: str, before: str) -> None:
    """Keep the choice for lists, and consent to a server of this machine."""
    try:
        await front.services.onboarding.accept_server(reference)
    except EngineError as error:
        front.tell(str(error), bad=True)
    try:
        await asyncio.to_thread(front.services.models.preferred.used, reference, before)
    except OSError as error:
        front.tell(f"Recent models cannot be saved: {error.strerror}.", bad=True)


def _words(models: ModelList, row: ModelRow) -> str:
    return f"{row.key} *" if row.key in models.preferred.favourites else row.key


def _facts(row: ModelRow) -> tuple[str, ...]:
    return facts_line(row.info) if row.info is not None else ("not in a list",)


def _tell_closed(front: FrontEnd, models: ModelList) -> None:
    """Say of providers without models why they have none; without words only how many lack a key."""
    closed = [row.offer for row in models.found if row.offer is not None]
    keyless = [one for one in closed if one.state is ProviderState.NO_KEY]
    for one in closed:
        if models.query.strip() or one not in keyless:
            front.tell(f"{one.name}: {one.state.value}. {one.words}".strip())
    if keyless and not models.query.strip():
        front.tell(f"{counted(len(keyless), 'provider')} without a key: /model PROVIDER names its variable.")
