"""One call of a model: assemble, stream to subscribers, answer with the whole reply or a sorted failure."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from engine.codec import storable
from engine.context import omissions
from engine.context.assemble import Assembly, assemble, distinct_call_id
from engine.context.measure import measure
from engine.context.prompt import with_plan
from engine.context.reply_sanitizer import is_no_reply, sanitize
from engine.executor.asking import (
    Pacing,
    build_cut_error,
    check_budget,
    check_caps,
    cost_of,
    note_failure,
    note_reply,
    pace_call,
    record_call,
    record_reply,
    run_effort,
    run_model,
)
from engine.executor.batch_hooks import run_batch_hooks
from engine.executor.equipment import prepare_extensions, tools_of
from engine.executor.event_hooks import ensure_hooks, tell_prompt_files, wants_hooks
from engine.executor.ready_calls import find_offered_name, translate_calls
from engine.executor.session import Session
from engine.executor.session_parts import OpenCall
from engine.executor.todo_lists import describe_list
from engine.executor.window import estimate_tokens, prompt_facts, prune_results, window_of
from engine.machine.broken import merge
from engine.machine.effects import RequestLlm
from engine.machine.events import LlmFailed, LlmReplied
from engine.machine.messages import Block, Role, StopReason, TextBlock, ToolUseBlock, Usage, text_in
from engine.machine.views import CompactionDraft
from engine.ports import (
    BeforeReply,
    ConversationChanges,
    LimitsTold,
    ModelReply,
    ModelRequest,
    PromptRead,
    Provider,
    ProviderError,
    ProviderNotice,
    StorageError,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageTold,
)
from engine.ports.extensions import HookEvent
from engine.records import PermissionMode, StoredMessage
from engine.records.runs import CallPurpose
from engine.rewind.rewind import describe_restored_files
from engine.updates import LiveTextDropped, Noticed, PromptProgressed, TextArrived, ThinkingArrived, ToolDrafted
from tools.contract import SandboxMode, ToolClass
from tools.files.protected import find_home_links

log = logging.getLogger(__name__)

LONG: Final = 50_000
"""Characters from which a reply is read in a thread: a megabyte takes up to a second."""


class StoredReply(Struct, frozen=True):
    """All blocks of a reply as they are stored."""

    blocks: tuple[Block, ...]
    silent: bool = False
    """The model has nothing to say: the row is kept, and neither shown nor sent."""


async def prepare_reply(
    session: Session, partial: tuple[Block, ...], blocks: tuple[Block, ...], message_id: str
) -> StoredReply:
    """The whole of a reply that continues `partial`. Thinking stays as it is; a text that becomes empty is dropped."""
    whole = merge(partial, blocks)
    if session.settings.sanitize_replies:
        long = sum(len(block.text) for block in whole if isinstance(block, TextBlock)) > LONG
        whole, removed = await asyncio.to_thread(_sanitize_blocks, whole) if long else _sanitize_blocks(whole)
        if removed:
            log.info("reply %s: removed characters of %s", message_id, dict(removed))
    calls = any(isinstance(block, ToolUseBlock) for block in whole)
    silent = session.record.agent is None and not calls and is_no_reply(text_in(whole))
    return StoredReply(whole, silent)


def _sanitize_blocks(blocks: tuple[Block, ...]) -> tuple[tuple[Block, ...], Counter[str]]:
    kept: list[Block] = []
    removed = Counter[str]()
    for block in blocks:
        if not isinstance(block, TextBlock) or not block.text.strip():
            kept.append(block)
            continue
        found = sanitize(block.text)
        removed.update(found.removed)
        if found.text:
            kept.append(replace(block, text=found.text))
    return tuple(kept), removed


REFUSED_IMAGE: Final = "refused_image"
"""Kind of the failure of a request whose image the model refused."""
LEFT_OUT: Final = "{what} left out from now on; Enter retries without, /context restores"


NAMELESS = "call"
"""Id of a call that came without one."""


class ToolDraft(Struct, eq=False):
    """The tool call that is being written."""

    name: str = ""
    characters: int = 0

    def grow(self, delta: ToolCallDelta) -> ToolDrafted:
        """Add a piece; a new name begins a new call."""
        if delta.name:
            self.name, self.characters = delta.name, 0
        self.characters += len(delta.json)
        return ToolDrafted(self.name, self.characters)


async def call_model(session: Session, ask: RequestLlm) -> None:
    """Perform one RequestLlm; cancelling closes the connection and answers nothing."""
    clock, model, calls = session.ports.clock, run_model(session), session.model_use.calls
    request: ModelRequest | None = None
    message_id, written = session.ports.ids.new(), list[str]()
    try:
        check_budget(session)
        await check_caps(session, for_first_request=ask.iteration == 1 and not ask.attempt)
        provider, name = session.ports.providers.resolve(model)
        rows = await session.rows()
        await prepare_extensions(session)
        await ensure_hooks(session)
        await run_batch_hooks(session, rows, ask)
        assembly = await _prepare_assembly(session, name, rows, ask)
        request = await assemble(session.ports.store, rows, session.window.view, ask, assembly)
        cached, known = calls.estimate_cached(model, clock.monotonic()), session.window.view.tokens
        pace = pace_call(session, provider, request, cached=cached, is_retry=ask.attempt > 0, known=known)
        async with pace as pacing:
            started = clock.monotonic()
            with record_call(session, CallPurpose.REPLY, model, request, ask) as call:
                call.message_id, call.written = message_id, written
                try:
                    reply = await _stream(session, provider, request, call, ask, pacing)
                finally:
                    # The server may have named the model.
                    session.change_record(context_window=window_of(session, session.record.model))
                cost_usd = await cost_of(session, model, reply)
                record_reply(session, call, reply, cost_usd, message_id)
            pacing.note_usage(reply.usage)
            calls.note_reply(model, reply.usage, clock.monotonic())
        blocks = await _rename_repeated_calls(
            session, translate_calls(reply.blocks, session.equipment.tools, session.record.cwd)
        )
    except ProviderError as error:
        if request is not None:
            note_failure(session, request, error)
        await _fail(session, ask, error, message_id, "".join(written))
        return
    except StorageError as error:
        _post_failure(session, ask, ProviderError(str(error), kind="storage", retryable=False), message_id)
        return
    duration_ms = int((clock.monotonic() - started) * 1000)
    note_reply(session, request, reply, duration_ms)
    reply = replace(reply, blocks=blocks)
    answer = await prepare_reply(session, ask.partial, reply.blocks, message_id)
    counted = not reply.usage_estimated and reply.usage.context_tokens > 0
    if counted and reply.stop is not StopReason.TOOL_USE:
        session.background.start(_calibrate(session, list(rows), reply.usage))
    draft = await prune_results(session, session.context_of(reply.usage, counted=counted))
    _post_reply(session, ask, reply, answer, message_id, duration_ms, cost_usd, draft)


async def _stream(
    session: Session, provider: Provider, request: ModelRequest, call: OpenCall, ask: RequestLlm, pacing: Pacing
) -> ModelReply:
    draft, begun = ToolDraft(), ask.attempt == 0
    async with aclosing(provider.stream(request)) as stream:
        async for item in stream:
            call.streamed = call.streamed or not isinstance(item, BeforeReply)
            if not begun and not isinstance(item, UsageTold | BeforeReply):
                begun = True
                publisher = session.publisher
                if publisher.text or publisher.thinking:
                    publisher.publish(LiveTextDropped(cancelled=False))
                    publisher.publish(TextArrived(text_in(ask.partial)))
            match item:
                case UsageTold(usage, cost_usd):
                    call.usage, call.cost_usd = usage, cost_usd
                case LimitsTold():
                    pacing.note_limits(item)
                case ModelReply():
                    call.usage = item.usage
                    return item
                case _:
                    _show(session, call, draft, item)
    raise build_cut_error(retryable=True)


def _show(
    session: Session,
    call: OpenCall,
    draft: ToolDraft,
    item: TextDelta | ThinkingDelta | ToolCallDelta | ProviderNotice | PromptRead,
) -> None:
    """Pass one item of a reply under way on to the subscribers."""
    publish = session.publisher.publish
    match item:
        case TextDelta(text):
            call.written.append(text)
            publish(TextArrived(text))
        case ThinkingDelta(text):
            publish(ThinkingArrived(text))
        case ToolCallDelta():
            item = replace(item, name=find_offered_name(item.name, session.equipment.tools))
            publish(draft.grow(item))
            if item.name:
                _look_ahead(session, item.name)
        case ProviderNotice(text):
            publish(Noticed(text))
        case PromptRead(percent):
            publish(PromptProgressed(percent))
        case _:
            assert_never(item)


def _look_ahead(session: Session, name: str) -> None:
    """A call is being written that may change files: what is known of them by then saves its decision a wait."""
    tool, rewinding = tools_of(session).get(name), session.rewinding
    if tool is not None and tool.spec.tool_class is ToolClass.EDIT:
        asyncio.get_running_loop().run_in_executor(None, find_home_links, session.record.cwd, Path.home())
    refused = session.record.permission_mode in {PermissionMode.PLAN, PermissionMode.DENY}
    read_only = session.record.sandbox is SandboxMode.READ_ONLY
    if rewinding is None or tool is None or tool.spec.tool_class is not ToolClass.RUN or refused or read_only:
        return
    rewinding.recorder.command_drafted(session.record)


async def _rename_repeated_calls(session: Session, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The reply with new ids for calls whose id the conversation has seen, in messages a model no longer reads too."""
    ids = [block.id or NAMELESS for block in blocks if isinstance(block, ToolUseBlock)]
    taken = await session.ports.library.find_call_ids(session.record.id, ids) if ids else frozenset[str]()
    return rename_repeated_ids(blocks, taken)


def rename_repeated_ids(blocks: tuple[Block, ...], taken: Iterable[str]) -> tuple[Block, ...]:
    """The reply with every tool id that is `taken` or repeated rewritten (SPEC DOM-02)."""
    used = set(taken)
    fresh: list[Block] = []
    for block in blocks:
        if isinstance(block, ToolUseBlock):
            given = storable(block.id)
            name = distinct_call_id(given or NAMELESS, used if given else {NAMELESS, *used})
            used.add(name)
            fresh.append(replace(block, id=name))
        else:
            fresh.append(block)
    return tuple(fresh)


async def _prepare_assembly(session: Session, name: str, rows: Sequence[StoredMessage], ask: RequestLlm) -> Assembly:
    run, record = session.run, session.record
    if run.files_note is None:
        run.files_note = await _read_files_note(session, rows)
    run.effort = run.effort or run_effort(session)
    note = "\n".join(filter(None, (run.files_note, describe_list(session, rows, ask.iteration), run.batch_note)))
    view = with_plan(record.view, record.plan, record.plan_at)
    facts = prompt_facts(session)
    tell_prompt_files(session, facts.files)
    return Assembly(facts, name, session.ports.clock.now(), view, note, run.effort)


async def _read_files_note(session: Session, rows: Sequence[StoredMessage]) -> str:
    """Note about restored files. The store is read once and then only after a restore: a wait would let frames be drawn
    before the request.
    """
    rewinding = session.rewinding
    if rewinding is None or session.window.restores_known == rewinding.log.restores:
        return ""
    known = rewinding.log.restores
    note = await describe_restored_files(rewinding.log, session.record.id, rows)
    if not note:
        session.window.restores_known = known
    return note


async def _calibrate(session: Session, rows: Sequence[StoredMessage], usage: Usage) -> None:
    """Learn once a run how far the estimate of its last request is from what the provider counted."""
    facts, record = prompt_facts(session), session.record
    estimated = await asyncio.to_thread(measure, facts, rows, record.view)
    session.model_use.calibration.learn(record.model, estimated.total, usage.context_tokens - usage.output_tokens)


async def _fail(session: Session, ask: RequestLlm, error: ProviderError, message_id: str, written: str) -> None:
    if error.kind == REFUSED_IMAGE:
        with suppress(StorageError):  # the failure itself is reported
            error = await _leave_out_images(session, error)
    _post_failure(session, ask, error, message_id, written)


async def _leave_out_images(session: Session, error: ProviderError) -> ProviderError:
    """Leave the newest images out of every later request, or all where none are new; returns the error that says so.

    Raises:
        StorageError: it cannot be stored.
    """
    view, rows = session.record.view, await session.rows()
    shown = omissions.apply(rows, view.omitted)
    answered = max((row.seq for row in rows if row.role is Role.ASSISTANT), default=0)
    newest = omissions.images([row for row in shown if row.seq > answered])
    refused = newest or omissions.images(shown)
    if not refused:
        return error
    after = replace(view, omitted=omissions.join_omissions(view.omitted, refused))
    tokens = estimate_tokens(session, rows, after)
    changes = ConversationChanges(view=after, context_tokens=tokens)
    await session.ports.store.change(session.record.id, changes, session.ports.clock.now())
    session.set_view(after, tokens)
    what = "It is" if len(refused) == 1 else f"Its {len(refused)} images are"
    message = f"{error.message.rstrip('.')}. {LEFT_OUT.format(what=what)}."
    return ProviderError(message, kind=error.kind, retryable=error.retryable, status=error.status)


def _post_failure(session: Session, ask: RequestLlm, error: ProviderError, message_id: str, written: str = "") -> None:
    event = LlmFailed(
        ask.gen,
        error.kind,
        error.message,
        error.retryable,
        error.retry_after,
        error.context_overflow,
        message_id,
        written,
        error.status,
    )
    session.post(lambda: event)


def _post_reply(
    session: Session,
    ask: RequestLlm,
    reply: ModelReply,
    answer: StoredReply,
    message_id: str,
    duration_ms: int,
    cost_usd: float | None,
    draft: CompactionDraft | None,
) -> None:
    asks_hooks = wants_hooks(session, HookEvent.STOP if session.record.agent is None else HookEvent.SUBAGENT_STOP)
    answer_id, counted = session.ports.ids.new(), not reply.usage_estimated and reply.usage.context_tokens > 0
    session.post(
        lambda: LlmReplied(
            gen=ask.gen,
            message_id=message_id,
            answer_id=answer_id,
            blocks=reply.blocks,
            answer=answer.blocks,
            silent=answer.silent,
            stop=reply.stop,
            usage=reply.usage,
            model=reply.model,
            last=session.window.last,
            duration_ms=duration_ms,
            truncated_call=reply.truncated_call,
            context_tokens=session.context_of(reply.usage, counted=counted),
            estimated=not counted,
            cost_usd=cost_usd,
            compact_above=session.compact_above,
            pruned=draft,
            asks_hooks=asks_hooks,
        )
    )
