"""Questions to the user, asked of the client: permissions, plans and questions of the agent."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, cast

from acp.exceptions import RequestError
from acp.schema import ElicitationSchema, PermissionOption, ToolCallUpdate

from engine.executor.approving import answer_note
from engine.executor.requests import ENGINE_ERRORS, ApprovalAnswer, ApprovalChoice, NeedsYes, Refused
from engine.updates import Question
from phoenix_tui.acp.connection import Client
from phoenix_tui.acp.tool_calls import (
    CallContent,
    build_content,
    code_part,
    file_of,
    input_of,
    kind_of,
    locations_of,
    make_edit,
    text_part,
    title_of,
)
from phoenix_tui.acp.translator import UpdatePump, progress
from phoenix_tui.features.agents import run_behind
from phoenix_tui.features.custom_commands import question as question_of
from phoenix_tui.text.request_text import Answer, LineFor, list_answers, odd_in
from tools.clean import clean, clean_line, reveal
from tools.contract import DiffDisplay
from tools.displays import AskedQuestion, question_lines

if TYPE_CHECKING:
    from engine.conversation import Conversation

DECLINE: Final = "decline"
OTHER: Final = "other"


async def answers_by_options(client: Client, session_id: str, question: Question) -> ApprovalAnswer | None:
    """Ask each question as a choice of one of its options; None cancels. Raises as `Client.permit`."""
    answers: list[tuple[str, ...]] = []
    for place, asked in enumerate(question.request.questions):
        call = ToolCallUpdate(
            tool_call_id=question.call.id,
            title=asked.question,
            kind="other",
            status="pending",
            content=[text_part("\n".join(question_lines([asked])))],
        )
        options = [
            PermissionOption(option_id=f"{place}.{number}", name=option.label, kind="allow_once")
            for number, option in enumerate(asked.options)
        ]
        decline = PermissionOption(option_id=DECLINE, name="Decline to answer", kind="reject_once")
        chosen = await client.permit(session_id, call, [*options, decline])
        if chosen is None:
            return None
        labels = {one.option_id: one.name for one in options}
        if chosen not in labels:
            return ApprovalAnswer(ApprovalChoice.DENY)
        answers.append((labels[chosen],))
    return ApprovalAnswer(ApprovalChoice.ONCE, answers=tuple(answers))


def form_of(asked: tuple[AskedQuestion, ...]) -> ElicitationSchema:
    """A form with a choice, and a line for own words, for each question."""
    fields: dict[str, Any] = {}
    for number, one in enumerate(asked, 1):
        choices = [
            {"const": option.label, "title": ": ".join(filter(None, (option.label, option.description)))}
            for option in one.options
        ]
        facts = {"title": one.header, "description": one.question}
        if one.multi:
            fields[f"q{number}"] = facts | {"type": "array", "items": {"anyOf": choices}}
        else:
            fields[f"q{number}"] = facts | {"type": "string", "oneOf": choices}
        own = {"type": "string", "title": f"{one.header}: in your own words"}
        fields[f"q{number}_{OTHER}"] = own
    return ElicitationSchema.model_validate({"type": "object", "properties": fields})


def answers_in(asked: tuple[AskedQuestion, ...], content: dict[str, Any]) -> tuple[tuple[str, ...], ...]:
    """The answers of a form; own words count where there are any, with several choices beside them."""
    answers: list[tuple[str, ...]] = []
    for number, one in enumerate(asked, 1):
        given = content.get(f"q{number}")
        chosen = cast("list[object]", given) if isinstance(given, list) else [given]
        labels = tuple(label for label in one.labels if label in chosen)
        own = content.get(f"q{number}_{OTHER}")
        words = (clean(own).strip(),) if isinstance(own, str) and own.strip() else ()
        answers.append((*labels, *words) if one.multi else words or labels[:1])
    return tuple(answers)


log = logging.getLogger(__name__)

IDS: Final = {"y": "allow_once", "s": "allow_conversation", "a": "allow_project", "n": "reject_once"}
"""Options by the letters of their answers; those of a plan are the letters."""
WITHOUT_LINE: Final = frozenset({LineFor.NOTHING, LineFor.RULE})
"""Answers that an option can give: it takes no text, and the rule that is kept is the one of the question."""
NO_ANSWER: Final = "the editor could not ask the user"


class Approvals:
    """Open questions of a session and its sub-agents, each asked by a task."""

    def __init__(self, client: Client, root: Conversation, pump: UpdatePump, known: set[str]) -> None:
        self._client = client
        self._root = root
        """The conversation of the session."""
        self._session_id = root.id
        self._pump = pump
        self._known = known
        """Notes about answers that the client gave itself."""
        self._asking: dict[str, asyncio.Task[None]] = {}

    def follow(self, conversation: Conversation, question: Question | None) -> None:
        """Ask a new question; drop the one that is closed."""
        self._drop(conversation.id)
        if question is not None and not question.left_open:
            task = asyncio.get_running_loop().create_task(self._ask(conversation, question))
            self._asking[conversation.id] = task

    async def agrees(self, needs: NeedsYes) -> bool:
        """Ask whether a skill or command may run its lines and count its rules. Raises as `Client.permit`."""
        await self._pump.flush()
        call = ToolCallUpdate(
            tool_call_id=f"command-{needs.key[:40]}",
            title="Run this command?",
            kind="execute" if needs.lines else "other",
            status="pending",
            content=[code_part(question_of(needs))],
        )
        options = [
            PermissionOption(option_id=IDS["y"], name="Yes", kind="allow_once"),
            PermissionOption(option_id=IDS["n"], name="No", kind="reject_once"),
        ]
        return await self._client.permit(self._session_id, call, options) == IDS["y"]

    def close(self) -> None:
        """Ask no longer."""
        for conversation_id in tuple(self._asking):
            self._drop(conversation_id)

    def _drop(self, conversation_id: str) -> None:
        if (task := self._asking.pop(conversation_id, None)) is not None:
            task.cancel()

    async def _ask(self, conversation: Conversation, question: Question) -> None:
        try:
            await self._pump.flush()
            answer = await self._answer(conversation, question)
        except (RequestError, ValueError):
            answer = ApprovalAnswer(ApprovalChoice.DENY, reason=NO_ANSWER)
        except ConnectionError:
            answer = None
        try:
            if answer is None:
                run_behind(conversation, self._root).cancel()
            else:
                call_id = question.call.id
                if answer.choice is not ApprovalChoice.DENY and conversation.record.agent is None:
                    self._pump.put(progress(call_id, status="in_progress"))
                self._known.add(answer_note(question, answer))
                outcome = await conversation.answer(call_id, answer)
                if isinstance(outcome, Refused):
                    log.warning("an answer was refused: %s", outcome.reason)
                    await conversation.answer(call_id, ApprovalAnswer(ApprovalChoice.DENY, reason=outcome.reason))
        except ENGINE_ERRORS as error:
            log.warning("an answer was not stored: %s", error)

    async def _answer(self, conversation: Conversation, question: Question) -> ApprovalAnswer | None:
        """The user's answer; None cancels the run."""
        if question.request.questions:
            if self._client.elicits:
                asked = question.request.questions
                message = "\n".join(one.question for one in asked)
                content = await self._client.elicit(self._session_id, question.call.id, message, form_of(asked))
                if content is None:
                    return ApprovalAnswer(ApprovalChoice.DENY)
                return ApprovalAnswer(ApprovalChoice.ONCE, answers=answers_in(asked, content))
            return await answers_by_options(self._client, self._session_id, question)
        offered = offer(question)
        options = [option for option, _ in offered]
        chosen = await self._client.permit(self._session_id, await _call(conversation, question), options)
        if chosen is None:
            return None
        found = (answer.effect for option, answer in offered if option.option_id == chosen)
        return next(found, offered[-1][1].effect)


async def _call(conversation: Conversation, question: Question) -> ToolCallUpdate:
    """The call with all that the user must see to decide."""
    request, call, record = question.request, question.call, conversation.record
    given = input_of(call.input_json)
    content: list[CallContent] = []
    if request.plan:
        content.append(text_part(request.plan))
    elif request.command:
        content.append(code_part(reveal(request.command)))
    elif isinstance(request.preview, DiffDisplay):
        path = file_of(request.preview, request.paths, record.cwd)
        content.append(await make_edit(path, request.preview, is_done=False))
    else:
        content += build_content(request.preview, request.summary)
    content += [text_part(f"It {words}.") for words in odd_in(question)]
    if question.reason and not request.plan:
        content.append(text_part(clean_line(question.reason)))
    agent = record.agent
    return ToolCallUpdate(
        tool_call_id=call.id if agent is None else f"{record.id}:{call.id}",
        title=title_of(call.name, request) if agent is None else f"Sub-agent: {title_of(call.name, request)}",
        kind=kind_of(call.name),
        status="pending",
        content=content,
        locations=locations_of(request, given),
        raw_input=given,
    )


def offer(question: Question) -> list[tuple[PermissionOption, Answer]]:
    """An option for each answer that needs no text; the last one is no."""
    answers = [answer for answer in list_answers(question) if answer.line in WITHOUT_LINE]
    return [(_option(answer, plans=bool(question.request.plan)), answer) for answer in answers]


def _option(answer: Answer, *, plans: bool) -> PermissionOption:
    effect = answer.effect
    kind = "reject_once" if effect.choice is ApprovalChoice.DENY else "allow_once"
    if effect.choice in {ApprovalChoice.CONVERSATION, ApprovalChoice.ALWAYS} or answer.letter == "a":
        kind = "allow_always"
    option_id = answer.letter if plans else IDS[answer.letter]
    return PermissionOption.model_validate({"option_id": option_id, "name": answer.words, "kind": kind})
