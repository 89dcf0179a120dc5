"""Size of a conversation's window, and its fill level now and with another view of its messages."""

from __future__ import annotations

from collections.abc import Sequence

from engine.context.agent_prompt import SUBMISSIONS, agent_sections
from engine.context.measure import measure
from engine.context.prompt import PromptFacts
from engine.context.prompt_section import PromptMode, PromptSection, section, tagged
from engine.executor.equipment import extension_prompts, tools_of
from engine.executor.profile_skills import profile_skills
from engine.executor.run_model import run_model
from engine.executor.session import Session
from engine.machine.states import is_busy
from engine.machine.views import ContextView
from engine.ports import ProviderError
from engine.ports.instructions import PromptFile
from engine.ports.profiles import MEMORY_TOOLS
from engine.records import PermissionMode, StoredMessage
from tools.contract import ToolSpec
from tools.exit_plan import NAME as EXIT_PLAN


def prompt_facts(session: Session) -> PromptFacts:
    """Facts for the present system prompt of this conversation."""
    record = session.record
    return PromptFacts(
        cwd=record.cwd,
        conversation_id=record.id,
        model=run_model(session) if is_busy(session.state) else record.model,
        permission_mode=record.permission_mode.value,
        tools=(*_tools(session), *(SUBMISSIONS if record.agent else ())),
        sandbox=record.sandbox,
        mode=PromptMode.MINIMAL if record.agent is not None else PromptMode.FULL,
        files=_files(session),
        replacement=record.system_prompt,
        keeps_instructions=session.settings.keeps_instructions,
        extra=_extra(session),
        history_turns=session.settings.history_turns,
        extensions=extension_prompts(session),
    )


def _tools(session: Session) -> list[ToolSpec]:
    """The tools that its model is offered; a model that works by rules searches no notes."""
    rules_only = not _summarizes(session)
    left_out = {*(MEMORY_TOOLS if rules_only else ()), *(() if _plans(session) else (EXIT_PLAN,))}
    return [tool.spec for name, tool in tools_of(session).items() if name not in left_out]


def _plans(session: Session) -> bool:
    """True in plan mode, and behind an accepted plan: taking the tool away then would cost the cached request."""
    record = session.record
    return record.permission_mode is PermissionMode.PLAN or bool(record.plan)


def _summarizes(session: Session) -> bool:
    try:
        provider, name = session.ports.providers.resolve(session.record.model)
    except ProviderError:
        return True
    return provider.describe(name).summarizes


def _files(session: Session) -> tuple[PromptFile, ...]:
    """Files of the prompt, read once for a run (SPEC UNI-30): no provider caches a system prompt that changes."""
    record = session.record
    if not is_busy(session.state):
        return session.settings.instructions.of(record.cwd, record.context_window)
    if session.run.prompt_files is None:
        session.run.prompt_files = session.settings.instructions.of(record.cwd, record.context_window)
    return session.run.prompt_files


def _extra(session: Session) -> tuple[PromptSection, ...]:
    record = session.record
    if record.agent is not None:
        return (*agent_sections(record.agent, session.profile), *profile_skills(session))
    origin = f"profile {record.profile}, append_system_prompt" if record.profile else "append_system_prompt"
    extra = section("Extra context", tagged("extra_context", record.append_system_prompt), origin)
    return (*extra, *profile_skills(session))


def tokens_after(session: Session, rows: Sequence[StoredMessage], after: ContextView, known: int = 0) -> int:
    """Future tokens of the window: the present count, less the reduction of the estimate, in the same measure.

    The present count is `known`, by default the one of the last reply.
    """
    facts, record = prompt_facts(session), session.record
    before = measure(facts, [row for row in rows if row.seq >= record.context_start_seq], record.view).total
    then = measure(facts, [row for row in rows if row.seq >= after.start_seq], after).total
    known = known or record.context_tokens or round(before * session.calibration.ratio(record.model))
    return max(round(known * then / before), 1) if before else then


def window_of(session: Session, model: str) -> int:
    """The context window of a model reference, 0 while unknown."""
    try:
        provider, name = session.ports.providers.resolve(model)
    except ProviderError:
        return 0
    return provider.describe(name).context_window
