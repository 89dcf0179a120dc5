"""Window of a conversation: its prompt, size and fill level, and the pruning of old tool results (SPEC CLAW-21)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine.context import omissions
from engine.context.assemble import Assembly, GrowingView, assemble
from engine.context.measure import measure
from engine.context.prompt import (
    BOTH,
    SUBMISSIONS,
    PromptFacts,
    PromptMode,
    PromptSection,
    agent_sections,
    section,
    wrap_in_tags,
)
from engine.executor.asking import run_model
from engine.executor.equipment import extension_prompts, tools_of
from engine.executor.model_limits import dollars
from engine.executor.session import Session
from engine.machine.effects import RequestLlm
from engine.machine.states import is_busy
from engine.machine.views import (
    CompactionCause,
    CompactionDraft,
    CompactionFacts,
    CompactionKind,
    ContextView,
    Omission,
)
from engine.ports import ConversationChanges, ProviderError
from engine.ports.extensions import PromptFile
from engine.ports.profiles import MEMORY_TOOLS
from engine.records import ConversationRecord, PermissionMode, StoredMessage
from tools.contract import ToolSpec
from tools.planning import EXIT_PLAN
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.ports.extensions import Invocable


HEADING: Final = "Skills of this agent"
LEAD: Final = "These skills are loaded; follow them where they fit the task."
MOST_CHARACTERS: Final = 60_000
"""Characters of all their texts; what does not fit is left out whole."""


def build_skill_sections(session: Session) -> tuple[PromptSection, ...]:
    """One section with the skills that the profile names, as far as a model may load them; none where it names none.

    A skill with shell lines is left out: they run only where someone may be asked about them.
    """
    profile, invocables = session.equipment.profile, session.ports.invocables
    if profile is None or not profile.skills or invocables is None:
        return ()
    texts, room = list[str](), MOST_CHARACTERS
    for text in _read_skills(session):
        if len(text) <= room:
            texts.append(text)
            room -= len(text)
    if not texts:
        return ()
    return tuple(section(HEADING, "\n\n".join((LEAD, *texts)), f"skills of {profile.source}", BOTH))


def _read_skills(session: Session) -> Iterator[str]:
    assert session.equipment.profile is not None, "the caller has looked"
    assert session.ports.invocables is not None, "the caller has looked"
    catalogue, seen = session.ports.invocables.catalogue(session.record.cwd), set[str]()
    for name in session.equipment.profile.skills:
        skill = catalogue.skill(name)
        if skill is not None and skill.for_models and skill.name not in seen:
            seen.add(skill.name)
            yield from _read_skill(session, skill)


def _read_skill(session: Session, skill: Invocable) -> Iterator[str]:
    from engine.extensions.skills import body_of, wrap_body  # noqa: PLC0415 - only where a profile names skills

    body = body_of(skill, "", session.record.id)
    if not body.lines:
        yield wrap_body(body, "".join(part for part in body.parts if isinstance(part, str)))


def prompt_facts(session: Session) -> PromptFacts:
    """Facts for the present system prompt of this conversation."""
    record = session.record
    return PromptFacts(
        cwd=record.cwd,
        conversation_id=record.id,
        model=run_model(session) if is_busy(session.state) else record.model,
        permission_mode=record.permission_mode.value,
        tools=(*_offer_tools(session), *(SUBMISSIONS if record.agent else ())),
        sandbox=record.sandbox,
        mode=PromptMode.MINIMAL if record.agent is not None else PromptMode.FULL,
        files=_read_files(session),
        replacement=record.system_prompt,
        keeps_instructions=session.settings.keeps_instructions,
        extra=_build_extra(session),
        history_turns=session.settings.history_turns,
        extensions=extension_prompts(session),
    )


def _offer_tools(session: Session) -> list[ToolSpec]:
    """The tools that its model is offered; a model that works by rules searches no notes."""
    rules_only = not _summarizes(session)
    # Behind an accepted plan too: taking the tool away then would cost the cached request.
    plans = session.record.permission_mode is PermissionMode.PLAN or bool(session.record.plan)
    left_out = {*(MEMORY_TOOLS if rules_only else ()), *(() if plans else (EXIT_PLAN,))}
    return [tool.spec for name, tool in tools_of(session).items() if name not in left_out]


def _summarizes(session: Session) -> bool:
    try:
        provider, name = session.ports.providers.resolve(session.record.model)
    except ProviderError:
        return True
    return provider.describe(name).summarizes


def _read_files(session: Session) -> tuple[PromptFile, ...]:
    """Files of the prompt, read once for a run (SPEC UNI-30): no provider caches a system prompt that changes."""
    record = session.record
    if not is_busy(session.state):
        return session.settings.instructions.of(record.cwd, record.context_window)
    if session.run.prompt_files is None:
        session.run.prompt_files = session.settings.instructions.of(record.cwd, record.context_window)
    return session.run.prompt_files


def _build_extra(session: Session) -> tuple[PromptSection, ...]:
    record = session.record
    if record.agent is not None:
        return (*agent_sections(record.agent, session.equipment.profile), *build_skill_sections(session))
    origin = f"profile {record.profile}, append_system_prompt" if record.profile else "append_system_prompt"
    extra = section("Extra context", wrap_in_tags("extra_context", record.append_system_prompt), origin)
    return (*extra, *build_skill_sections(session))


def estimate_tokens(session: Session, rows: Sequence[StoredMessage], after: ContextView, known: int = 0) -> int:
    """Future tokens of the window: the present count, less the reduction of the estimate, in the same measure.

    The present count is `known`, by default the one of the last reply.
    """
    facts, record = prompt_facts(session), session.record
    before = measure(facts, [row for row in rows if row.seq >= record.context_start_seq], record.view).total
    then = measure(facts, [row for row in rows if row.seq >= after.start_seq], after).total
    known = known or record.context_tokens or round(before * session.model_use.calibration.ratio(record.model))
    return max(round(known * then / before), 1) if before else then


def window_of(session: Session, model: str) -> int:
    """The context window of a model reference, 0 while unknown."""
    try:
        provider, name = session.ports.providers.resolve(model)
    except ProviderError:
        return 0
    return provider.describe(name).context_window


PATIENCE: Final = 5.0
"""Seconds that a provider has to count."""
FIRST_CALL: Final = RequestLlm(0, "", 1, 1_000)
"""The call whose request is counted."""


async def count_window(session: Session, between_moves: asyncio.Lock) -> bool:
    """Ask the provider to count the window where only an estimate is known; True when it did.

    Does nothing during a run, whose next reply brings the count.
    """
    record = session.record
    known = record.context_tokens and not record.context_estimated
    if known or not record.message_count or session.read_only or is_busy(session.state):
        return False
    tokens: int | None = None
    with suppress(TimeoutError, ProviderError):
        async with asyncio.timeout(PATIENCE):
            tokens = await _count_request(session, record)
    return tokens is not None and await _store_count(session, between_moves, record, tokens)


async def _count_request(session: Session, record: ConversationRecord) -> int | None:
    provider, name = session.ports.providers.resolve(record.model)
    store = session.ports.store
    rows = await store.messages(record.id, first_seq=max(1, record.context_start_seq))
    assembly = Assembly(prompt_facts(session), name, session.ports.clock.now(), record.view, effort=record.effort)
    return await provider.count_tokens(await assemble(store, rows, GrowingView(), FIRST_CALL, assembly))


async def _store_count(session: Session, between_moves: asyncio.Lock, counted: ConversationRecord, tokens: int) -> bool:
    """Store the count unless the window has changed meanwhile."""
    async with between_moves:
        now = session.record
        same = (now.view, now.message_count, now.model) == (counted.view, counted.message_count, counted.model)
        if not same or is_busy(session.state):
            return False
        changes = ConversationChanges(context_tokens=tokens, context_counted=True)
        await session.ports.store.change(now.id, changes, session.ports.clock.now())
        session.change_record(context_tokens=tokens, context_estimated=False)
    session.tell_context()
    return True


WORTH = 0.1
"""Share of the window that pruning must free: each one costs the prompt cache everything behind its first change."""


async def prune_results(session: Session, tokens: int) -> CompactionDraft | None:
    """The view with old results shortened, for a window that now holds `tokens`; None while that is not worth it.

    The parts are chosen when a threshold is crossed and then stored, so that requests between two prunings stay the
    same from their beginning on.
    """
    record, rule = session.record, session.settings.pruning
    if not rule.enabled or record.context_window <= 0 or tokens < session.window.prune_above:
        return None
    if tokens / record.context_window < rule.shorten_from:
        return None
    rows = await session.rows()
    draft = await asyncio.to_thread(_choose_pruning, session, rows, tokens)
    reached = tokens if draft is None else draft.tokens
    session.window.prune_above = reached + int(record.context_window * WORTH)
    return draft


def _choose_pruning(session: Session, rows: Sequence[StoredMessage], tokens: int) -> CompactionDraft | None:
    record, rule = session.record, session.settings.pruning
    shown = omissions.apply(rows, record.omitted)
    more = omissions.prune(shown, tokens, record.context_window, rule, clear_to=rule.clear_from - WORTH)
    if omissions.estimate_savings(shown, more) < record.context_window * WORTH:
        return None
    return shorten_parts(session, rows, more, CompactionCause.LONG_RESULTS, "old tool result", tokens)


def shorten_parts(
    session: Session,
    rows: Sequence[StoredMessage],
    more: tuple[Omission, ...],
    cause: CompactionCause,
    label: str,
    known: int = 0,
) -> CompactionDraft:
    """The draft that leaves out `more`; `known` are the tokens in the window, by default those of the last reply."""
    record = session.record
    after = replace(record.view, omitted=omissions.join_omissions(record.omitted, more))
    tokens = estimate_tokens(session, rows, after, known)
    note = f"Shortened {pluralize(len(more), label)} for the model · {sizes_text(session, rows, tokens, 0.0, known)}"
    facts = describe_change(session, cause, CompactionKind.SHORTENED, after, tokens, len(more))
    return CompactionDraft(after, tokens, note, replace(facts, tokens_before=known or facts.tokens_before))


def describe_failure(session: Session, cause: CompactionCause, problem: str) -> CompactionFacts:
    """Facts of an attempt that changed nothing."""
    record = session.record
    return CompactionFacts(
        cause,
        CompactionKind.NONE,
        record.message_count,
        record.context_start_seq,
        record.context_start_seq,
        tokens_before=record.context_tokens,
        tokens_after=record.context_tokens,
        problem=problem,
    )


def describe_change(
    session: Session, cause: CompactionCause, kind: CompactionKind, after: ContextView, tokens: int, count: int
) -> CompactionFacts:
    """Facts of a change of the view that takes effect."""
    record = session.record
    return CompactionFacts(
        cause,
        kind,
        record.message_count,
        record.context_start_seq,
        after.start_seq,
        count,
        record.context_tokens,
        tokens,
    )


def sizes_text(
    session: Session, rows: Sequence[StoredMessage], tokens: int, cost_usd: float | None, known: int = 0
) -> str:
    """Tokens before and after, and the cost; `known` are those before, by default the ones of the last reply."""
    record = session.record
    sign = "" if known or (record.context_tokens and not record.context_estimated) else "~"
    known = known or record.context_tokens
    if not known:
        ratio = session.model_use.calibration.ratio(record.model)
        known = round(measure(prompt_facts(session), rows, record.view).total * ratio)
    cost = f" · {dollars(cost_usd)}" if cost_usd else ""
    return f"{sign}{_format_tokens(known)} → ~{_format_tokens(tokens)} tokens{cost}"


def _format_tokens(tokens: int) -> str:
    return f"{tokens / 1000:.0f}k" if tokens >= 10_000 else f"{tokens:,}"
