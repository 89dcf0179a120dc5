"""An open question that is answered with another input for its call: that input runs, and nothing else of it."""

from __future__ import annotations

import json

from msgspec.structs import replace

from engine.executor.approving import limits_of
from engine.executor.ready_calls import prepare
from engine.executor.rewritten_calls import rewrite
from engine.executor.session import Session
from engine.updates import Question
from tools.contract import JsonObject, ToolInputError


async def run_as(session: Session, question: Question, args: JsonObject) -> str:
    """Let the call run with `args` once it is allowed; returns the reason where it cannot, and changes nothing then.

    The policy decides about it once more before it runs.
    """
    call = replace(question.call, input_json=json.dumps(args))
    try:
        ready = await prepare(session, call)
    except ToolInputError as error:
        return f"The changed input of {call.name} cannot be used: {error}"
    if session.asked is None or session.asked.call_id != call.id:
        return "The question is no longer open."
    rewrite(session, question.call, args)
    session.asked = replace(session.asked, request=ready.request, limits=await limits_of(session))
    return ""
