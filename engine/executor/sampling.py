"""Sampling of MCP servers: the user agrees to one request, then a model answers it without tools.

The call belongs to the run that called the server, and nothing of the conversation is sent with it.
"""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct

from engine.context.estimate import blocks_tokens, text_tokens
from engine.executor.asking import ask_aside, check_budget, run_model
from engine.executor.call_questions import ServerQuestions
from engine.executor.session import Session
from engine.machine.messages import Block, ImageBlock, Role, StopReason, TextBlock, Usage, text_in
from engine.machine.states import run_of
from engine.ports import ImageBytes, ModelMessage, ModelReply, ModelRequest, ProviderError, StorageError
from engine.records.runs import CallPurpose
from engine.updates import Noticed
from tools.clean import clean_line
from tools.images.contract import ImageRejected
from tools.mcp_form import FormAnswer
from tools.mcp_sampling import (
    DECLINED,
    INTERNAL,
    NOT_CALLED,
    YES,
    SampleAnswer,
    SampleForm,
    SampleImage,
    SampleRefused,
    SampleRequest,
)

PATIENCE: Final = 120.0
"""Seconds that an answer may take."""
MOST_SAMPLES: Final = 10
"""Requests about which the user is asked in one run."""
LONGEST_ANSWER: Final = 100_000
"""Characters."""
LEAST_SHOWN: Final = 0.0001
"""US dollars."""
STOPS: Final = {
    StopReason.MAX_TOKENS: "maxTokens",
    StopReason.STOP_SEQUENCE: "stopSequence",
    StopReason.REFUSAL: "refusal",
    StopReason.CONTENT_FILTER: "contentFilter",
}
"""Reasons as MCP names them; all others are `endTurn`."""
TOO_MANY: Final = f"At most {MOST_SAMPLES} sampling requests are answered in one run."
SAID_NO: Final = "The user declined the sampling request."
NO_MODEL: Final = "No model can answer the sampling request."
NO_ANSWER: Final = "The model gave no answer to the sampling request."


class ServerSampling(Struct, frozen=True):
    """Answers requests of servers in the run of `calling`; `asking` is the conversation of its user."""

    asking: Session
    calling: Session

    async def answer(self, server: str, request: SampleRequest) -> SampleAnswer:
        """The answer of a model, after a yes. Cancelling withdraws the question, or ends the model's call.

        Raises:
            SampleRefused: there is none.
        """
        asking = self.asking
        if asking.read_only or run_of(self.calling.state) is None:
            raise SampleRefused(NOT_CALLED, DECLINED)
        if asking.run.samples >= MOST_SAMPLES:
            raise SampleRefused(TOO_MANY, DECLINED)
        asking.run.samples += 1
        model = self.calling.settings.cheap_model or run_model(self.calling)
        prepared = await self._build_request(model, request)
        tokens = _count_input(prepared)
        usage = Usage(input_tokens=tokens, output_tokens=prepared.max_tokens or 0)
        price = await asyncio.to_thread(self.calling.ports.providers.price, model, usage)
        bound = "price unknown" if price is None else "free of charge"
        if price:
            bound = f"about ${max(price, LEAST_SHOWN):.4f} at most"
        form = SampleForm(request, model, f"~{tokens:,} to read, {bound}")
        if await ServerQuestions(asking).ask(server, form) != FormAnswer(((YES,),)):
            raise SampleRefused(SAID_NO, DECLINED)
        reply = await self._ask_model(server, model, prepared)
        return _answer(reply, request.stops)

    async def _build_request(self, model: str, request: SampleRequest) -> ModelRequest:
        """The request to the model: texts and images of the server, and nothing else."""
        try:
            provider, name = self.calling.ports.providers.resolve(model)
        except ProviderError as error:
            raise SampleRefused(NO_MODEL, INTERNAL, error.message) from error
        info = provider.describe(name)
        if not info.summarizes:
            raise SampleRefused(NO_MODEL, INTERNAL, f"{model} does not answer questions")
        images: dict[str, ImageBytes] = {}
        messages = [
            ModelMessage(Role(one.role), tuple([await self._build_block(part, images) for part in one.parts]))
            for one in request.messages
        ]
        if images and info.vision is False:
            raise SampleRefused("The model reads no images.")
        made = ModelRequest(
            name,
            (request.system,) if request.system else (),
            tuple(messages),
            images=images,
            max_tokens=request.max_tokens,
        )
        if 0 < info.context_window < _count_input(made) + request.max_tokens:
            raise SampleRefused("The sampling request is longer than the window of the model.")
        return made

    async def _build_block(self, part: str | SampleImage, images: dict[str, ImageBytes]) -> Block:
        if isinstance(part, str):
            return TextBlock(part)
        try:
            image = await self.calling.ports.images.prepare(part.data)
        except ImageRejected as error:
            raise SampleRefused("An image of the sampling request cannot be read.", why=str(error)) from error
        key = self.calling.ports.ids.new()
        images[key] = ImageBytes(image.media_type, image.data)
        return ImageBlock(key, image.width, image.height)

    async def _ask_model(self, server: str, model: str, request: ModelRequest) -> ModelReply:
        session = self.calling
        try:
            check_budget(session)
            async with asyncio.timeout(PATIENCE):
                reply, _ = await ask_aside(session, CallPurpose.SAMPLING, model, request)
        except (ProviderError, StorageError) as error:
            why = str(error)
        except TimeoutError:
            why = f"{model} did not answer within {PATIENCE:.0f} s."
        else:
            return reply
        self.asking.publisher.publish(Noticed(f"MCP server {clean_line(server)} got no answer: {why}"))
        raise SampleRefused(NO_ANSWER, INTERNAL, why)


def _count_input(request: ModelRequest) -> int:
    return sum(map(text_tokens, request.system)) + sum(blocks_tokens(one.blocks) for one in request.messages)


def _answer(reply: ModelReply, stops: tuple[str, ...]) -> SampleAnswer:
    """The answer up to the first of `stops`."""
    text, stop = text_in(reply.blocks)[:LONGEST_ANSWER], STOPS.get(reply.stop, "endTurn")
    places = [place for one in stops if (place := text.find(one)) >= 0]
    if places:
        text, stop = text[: min(places)], "stopSequence"
    return SampleAnswer(text, reply.model, stop)
