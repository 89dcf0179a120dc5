"""Questions of MCP servers while their calls run: shown like those of `ask_user`, without a state of the machine.

A question about a tool goes first; a server's stays open behind it and is shown again.
"""

from __future__ import annotations

import asyncio

from msgspec import Struct

from engine.executor.guarding import refusal
from engine.executor.prompt_hooks import notify
from engine.executor.requests import Accepted, ApprovalAnswer, ApprovalChoice, Receipt, Refused
from engine.executor.session import ServerQuestion, Session
from engine.machine.messages import ToolCall
from engine.updates import ApprovalAsked, Question
from tools.asked_questions import cleaned_answers, why_no_answers
from tools.clean import clean_line
from tools.contract import ToolClass, ToolRequest
from tools.mcp_form import LEFT, FormAnswer, ServerForm

GONE = "The server's question is no longer open."
ASKER = "MCP server {name}"
NOTE = "The MCP server {name} asks you"


class ServerQuestions(Struct, frozen=True):
    """Asks the user for servers in one conversation."""

    session: Session

    async def ask(self, server: str, form: ServerForm) -> FormAnswer:
        """The user's answer; left where another process owns the conversation. Cancelling withdraws the question."""
        name = clean_line(server)
        return await self.put(ASKER.format(name=name), NOTE.format(name=name), name, form)

    async def put(self, asker: str, note: str, server: str, form: ServerForm) -> FormAnswer:
        """The user's answer to a question of `asker` while a call runs; `server` names it in lists."""
        session = self.session
        if session.read_only:
            return LEFT
        question = Question(
            ToolCall(f"ask-{session.ports.ids.new()}", f"mcp__{server}", "{}"),
            ToolRequest(note, questions=form.questions),
            "",
            "",
            asker,
            ToolClass.READ,
            session.ports.clock.monotonic(),
            server=server,
        )
        one = ServerQuestion(form, question, asyncio.get_running_loop().create_future())
        session.server_questions.append(one)
        if session.ports.hooks:
            notify(session, "elicitation_dialog", question.request.summary)
        _show_next(session)
        try:
            return await one.answer
        finally:
            session.server_questions.remove(one)
            if session.question is question:
                session.question = None
                session.publisher.publish(ApprovalAsked(None))
            _show_next(session)

    def announce(self, server: str) -> None:
        """Tell hooks that a host is asked in place of the user."""
        if self.session.ports.hooks:
            notify(self.session, "elicitation_dialog", NOTE.format(name=clean_line(server)))


def take_answer(session: Session, call_id: str, answer: ApprovalAnswer) -> Receipt:
    """Give the server an answer, or refuse one that does not fit: the question stays open."""
    one = next((one for one in session.server_questions if one.question.call.id == call_id), None)
    if one is None or one.answer.done():
        return Refused(GONE)
    if answer.choice is ApprovalChoice.DENY:
        one.answer.set_result(LEFT if answer.is_left else FormAnswer())
    else:
        given = cleaned_answers(answer.answers)
        asked = one.form.questions
        own = (
            text
            for question, chosen in zip(asked, given, strict=False)
            for text in chosen
            if text not in question.labels
        )
        why = why_no_answers(asked, given) or one.form.why_not(given)
        why = why or next((why for text in own if (why := refusal(session, text))), "")
        if why:
            return Refused(why)
        one.answer.set_result(FormAnswer(given))
    return Accepted()


def end_question(session: Session) -> None:
    """Close the open question, unless it is a server's, which ends with its call."""
    if session.question is not None and session.question.server:
        return
    session.question = None
    session.publisher.publish(ApprovalAsked(None))
    _show_next(session)


def _show_next(session: Session) -> None:
    if session.question is None and session.server_questions:
        session.question = session.server_questions[0].question
        session.publisher.publish(ApprovalAsked(session.question))
