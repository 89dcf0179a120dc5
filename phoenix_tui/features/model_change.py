"""Cost of another model in the middle of a conversation, in words."""

from __future__ import annotations

from contextlib import suppress

from engine.api.conversation import ConversationApi
from engine.ports import ModelInfo, StorageError
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.text.labels import money, short_model, tokens

PER_MILLION = 1_000_000


async def change_sentence(front: FrontEnd, conversation: ConversationApi) -> str:
    """Costs of the next request to the model that is in use now; empty where nothing was sent yet."""
    record = conversation.record
    info = await front.services.models.facts(record.model)
    if info is None or not record.message_count or not record.context_tokens:
        return ""
    images = 0
    if info.vision is False:
        with suppress(StorageError):  # then images are not named
            images = (await conversation.context.report()).images
    words = change_text(info, record.context_tokens, images)
    return f"{short_model(record.model)}: {words[0].lower()}{words[1:]}"


def change_text(info: ModelInfo, context: int, images: int = 0) -> str:
    """Sentences about a request of `context` tokens to a model that has none of them in its cache.

    `images` is their number where the model cannot see them.
    """
    cost = "" if info.price_in is None else money(context * info.price_in / PER_MILLION)
    price = f", about {cost}" if cost else ", at an unknown price" if info.price_in is None else ""
    sentences = [f"Its cache lacks this conversation: it reads {tokens(context)} tokens anew{price}."]
    if 0 < info.context_window < context:
        sentences.append(f"Its window is smaller ({tokens(info.context_window)}): /compact first.")
    if images:
        sentences.append(f"It cannot see images: {images} here {'is' if images == 1 else 'are'} left out once refused.")
    return " ".join(sentences)
