"""The model of the conversation in view, and of new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.executor.requests import EngineError
from engine.ports import ConversationChanges
from phoenix_tui.features.effort import choose_effort
from phoenix_tui.features.front_end import FrontEnd, Option
from phoenix_tui.features.model_rows import KEY, STAR, ModelRow, model_rows, narrowed
from phoenix_tui.models.offers import ProviderOffer

MOST_OPTIONS: Final = 40
DEFAULT: Final = "default"


async def choose_model(front: FrontEnd, words: str) -> None:
    """Use this model, or ask for one of those with these words; `default` or `*` behind a model: what to do with it."""
    reference, _, action = words.partition(" ")
    if "/" in reference and action.strip() in {DEFAULT, STAR}:
        await do(front, "mark" if action.strip() == STAR else DEFAULT, reference)
        return
    if not words or "/" not in words:
        rows = narrowed(rows_in(front, await front.services.system.offers()), words)
        options = [Option(one.key, one.words, (one.facts, one.note)) for one in _few(rows)]
        if not options:
            front.tell(f"No model has {words}.", bad=True)
            return
        if len(rows) > MOST_OPTIONS:
            front.tell(f"The first {MOST_OPTIONS} of {len(rows)}; /model WORDS shows those with these words.")
        words = await front.pick("Model of this conversation", options, current=front.model, free=True)
    if words.startswith(KEY):
        front.tell(next(one.facts for one in rows if one.key == words).capitalize() + ".", bad=True)
    elif words:
        await use_model(front, words)


async def do(front: FrontEnd, action: str, reference: str) -> None:
    """Use a model here, also with an effort or as the default, or mark it."""
    if action == "mark":
        marked = mark(front, reference)
        front.tell(f"{reference} is {'a favourite now' if marked else 'no favourite any more'}.")
        return
    await use_model(front, reference)
    if action == DEFAULT:
        try:
            front.services.settings.save("model", reference)
            front.tell(f"New conversations use {reference}.")
        except EngineError as error:
            front.tell(str(error), bad=True)
    elif action == "effort":
        await choose_effort(front, "")


def rows_in(front: FrontEnd, offers: Sequence[ProviderOffer]) -> list[ModelRow]:
    """Rows of the list, the model in use first."""
    shelf = front.services.system.shelf
    return model_rows(offers, shelf.favourites(), shelf.recent(), front.model)


def mark(front: FrontEnd, reference: str) -> bool:
    """Mark a model, or take the mark away; True when it is a favourite now."""
    try:
        return front.services.system.shelf.toggle(reference)
    except OSError as error:
        front.tell(f"Favourites cannot be saved: {error.strerror}.", bad=True)
        return False


async def use_model(front: FrontEnd, reference: str) -> None:
    """Use this model here and for new conversations of this session."""
    front.prefer(model=reference)
    try:
        await front.services.onboarding.accept_server(reference)
        front.services.system.shelf.used(reference)
    except EngineError as error:
        front.tell(str(error), bad=True)
    except OSError as error:
        front.tell(f"Recent models cannot be saved: {error.strerror}.", bad=True)
    if reference.startswith("local/"):
        front.tell("This is a small local model; check its work.")
    if front.conversation is not None:
        await front.conversation.change(ConversationChanges(model=reference))
    front.confirm_change(f"Model {reference}.")


def _few(rows: Sequence[ModelRow]) -> list[ModelRow]:
    """Rows for a numbered list; each model once."""
    return list({row.key: row for row in reversed(rows)}.values())[::-1][:MOST_OPTIONS]
