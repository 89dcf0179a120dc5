"""Rules for the text of a reply that never became whole: joined, kept until a retry succeeds, stored at the end."""

from __future__ import annotations

from msgspec.structs import replace

from engine.machine import texts
from engine.machine.effects import Save, SaveMessage, SaveNotice
from engine.machine.events import LlmFailed, UserCancelled
from engine.machine.messages import Block, NewMessage, Origin, Role, TextBlock, ThinkingBlock
from engine.machine.states import AwaitingLlm, BrokenText, RetryWait, StopCause


def has_content(blocks: tuple[Block, ...]) -> bool:
    """True for a reply that says anything: thinking alone does not."""
    return any(
        not isinstance(b, ThinkingBlock) and not (isinstance(b, TextBlock) and not b.text.strip()) for b in blocks
    )


def merge(partial: tuple[Block, ...], blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """One row of a reply and its continuations: texts that meet are joined, later thinking is dropped."""
    if not partial:
        return blocks
    merged = list(partial)
    for block in blocks:
        last = merged[-1]
        if isinstance(block, ThinkingBlock):
            continue
        if isinstance(block, TextBlock) and isinstance(last, TextBlock):
            merged[-1] = TextBlock(last.text + block.text)
        else:
            merged.append(block)
    return tuple(merged)


def longer(known: BrokenText | None, text: str, cause: str, message_id: str) -> BrokenText | None:
    """The text to keep after one more failure: the longest of all attempts, of equal ones the newest."""
    if not text.strip() or (known is not None and len(known.text) > len(text)):
        return known
    return BrokenText(text, cause, message_id)


def blocks_of(state: AwaitingLlm) -> tuple[Block, ...]:
    """All that is there of the reply that `state` waits for: finished parts and the text that broke off."""
    return merge(state.partial, (TextBlock(state.broken.text),)) if state.broken is not None else state.partial


def after_failure(state: AwaitingLlm, event: LlmFailed) -> tuple[Save, ...]:
    """Rows stored when a failure ends a run: the text so far, and the cause below it."""
    return _with_notice(_save_partial_reply(state, event.message, event.message_id))


def after_stop(state: AwaitingLlm, event: UserCancelled) -> tuple[Save, ...]:
    """Rows stored of the current reply when the user or a time limit stops it.

    Text that the user stops is not kept (SPEC BED-005). Text that a failure had ended before is, text that the time
    limit of the run ends, and where Phoenix ends all that a crash would leave (SPEC STM-10).
    """
    if isinstance(state.phase, RetryWait):
        return _with_notice(_save_partial_reply(state, state.phase.cause, event.message_id))
    if event.by is StopCause.ENDING:
        kept = _save_partial_reply(state, texts.ENDED_MIDWAY, event.message_id)
        return _with_notice(kept) if state.broken is not None else kept
    return _save_partial_reply(state, texts.TIME_LIMIT, event.message_id) if event.by is StopCause.TIME_LIMIT else ()


def with_text_of(state: AwaitingLlm, event: UserCancelled) -> AwaitingLlm:
    """`state` with the text of the current call when the run's time was up."""
    return replace(state, broken=longer(state.broken, event.written, texts.TIME_LIMIT, event.message_id))


def _save_partial_reply(state: AwaitingLlm, cause: str, message_id: str) -> tuple[SaveMessage, ...]:
    """The message with the existing part of the reply, marked with the reason of its end; none for an empty one."""
    blocks = blocks_of(state)
    if not has_content(blocks):
        return ()
    broken = state.broken or BrokenText("", cause, message_id)
    return (SaveMessage(NewMessage(broken.message_id, Role.ASSISTANT, Origin.LLM, blocks, cut=broken.cause)),)


def _with_notice(saves: tuple[SaveMessage, ...]) -> tuple[Save, ...]:
    return (*saves, *(SaveNotice(texts.broke_off(save.message.cut)) for save in saves))
