"""The model of the conversation in view, and of new ones."""

from __future__ import annotations

from engine.executor.requests import EngineError
from engine.ports import ConversationChanges, ModelInfo
from phoenix_tui.features.front_end import FrontEnd, Option
from phoenix_tui.text.labels import tokens


async def choose_model(front: FrontEnd, reference: str) -> None:
    """Use this model, or ask for one."""
    if not reference:
        now = front.model
        offered = await front.services.system.models()
        options = {one.reference: Option(one.reference, one.reference, _facts(one)) for one in offered}
        present = options.pop(now, Option(now, now, ("in use",)))
        rows = [present, *options.values()]
        reference = await front.pick("Model of this conversation", rows, current=now, free=True)
    if reference:
        await use_model(front, reference)


async def use_model(front: FrontEnd, reference: str) -> None:
    """Use this model here and for new conversations of this session."""
    front.prefer(model=reference)
    try:
        await front.services.onboarding.accept_server(reference)
    except EngineError as error:
        front.tell(str(error), bad=True)
    if reference.startswith("local/"):
        front.tell("This is a small local model; check its work.")
    if front.conversation is not None:
        await front.conversation.change(ConversationChanges(model=reference))
    front.confirm_change(f"Model {reference}.")


def _facts(one: ModelInfo) -> tuple[str, ...]:
    window = f"{tokens(one.context_window)} window" if one.context_window else ""
    return tuple(part for part in ("on this machine" if one.local else "", window, one.note) if part)
