"""Questions of MCP servers to the user, put to the host as `elicitation`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.engine import Engine
from engine.extensions.mcp.server_asks import NoAnswerError
from engine.server_asking import asked_conversation
from phoenix_tui.cli.blocks import encode
from phoenix_tui.cli.control.host import Host, HostError
from tools.clean import clean, clean_line
from tools.contract import JsonObject, JsonValue
from tools.mcp_form import LONGEST_MESSAGE, form_of
from tools.mcp_form_fields import BadForm
from tools.mcp_host.protocol import raw

ANSWER_WITHIN: Final = 3_600.0
"""Seconds for an answer; a host asks a person."""
LARGEST_ANSWER: Final = 64 * 1024
"""Bytes of the content of an answer, as JSON."""
LONGEST_ID: Final = 256
ACTIONS: Final = ("accept", "decline", "cancel")


class HostQuestions(Struct, frozen=True):
    """Implements `engine.extensions.mcp.server_asks.QuestionHost`."""

    host: Host
    engine: Engine
    says_waiting: Callable[[bool], None]
    """Callback for True while the host is asked."""

    async def ask(self, conversation_id: str, server: str, kind: str, params: JsonObject) -> JsonObject:
        """The host's answer, as MCP has it. Raises BadForm and NoAnswerError."""
        request = elicitation(server, kind, params)
        conversation = asked_conversation(self.engine, conversation_id)
        if conversation is not None:
            conversation.server_questions.announce(server)
        self.says_waiting(True)
        try:
            given = await self.host.ask(request, ANSWER_WITHIN)
        except HostError as error:
            raise NoAnswerError(f"the host gave no answer ({clean_line(str(error))[:200].rstrip('.')})") from error
        finally:
            self.says_waiting(False)
        return answer_of(kind, given)


def elicitation(server: str, kind: str, params: JsonObject) -> JsonObject:
    """The request about a question of kind `form` or `url`. The schema stays as the server wrote it.

    Raises:
        BadForm: it cannot be asked.
    """
    message = params.get("message")
    text = clean(message[: LONGEST_MESSAGE * 2])[:LONGEST_MESSAGE].strip() if isinstance(message, str) else ""
    request: JsonObject = {"subtype": "elicitation", "mcp_server_name": server, "message": text, "mode": kind}
    if kind == "url":
        form_of(kind, params)  # refuses addresses that no browser should open
        request["url"] = params.get("url")
    else:
        schema = params.get("requestedSchema")
        if not isinstance(schema, dict):
            raise BadForm("has no fields")
        request["requested_schema"] = schema
    own_id = params.get("elicitationId")
    if isinstance(own_id, str) and 0 < len(own_id) <= LONGEST_ID:
        request["elicitation_id"] = own_id
    try:
        encode(request)
    except RecursionError:
        raise BadForm("is nested too deeply") from None
    return request


def answer_of(kind: str, given: JsonObject) -> JsonObject:
    """The answer for the server; content counts with a form that was accepted. Whether it fits, the server checks.

    Raises:
        NoAnswerError: it is none.
    """
    action = given.get("action")
    if action not in ACTIONS:
        raise NoAnswerError(f"the host's answer needs an action: {', '.join(ACTIONS)}")
    if action != "accept" or kind == "url":
        return {"action": action}
    content = given.get("content")
    if content is None:
        content = {}
    if not isinstance(content, dict) or not all(map(_is_plain, content.values())):
        raise NoAnswerError("the host's content must be an object of texts, numbers, booleans and lists of texts")
    try:
        size = len(bytes(raw(content)))
    except UnicodeEncodeError:
        raise NoAnswerError("the host's content has a text that is no Unicode") from None
    if size > LARGEST_ANSWER:
        raise NoAnswerError(f"the host's content has more than {LARGEST_ANSWER:,} bytes")
    return {"action": action, "content": content}


def _is_plain(value: JsonValue) -> bool:
    if isinstance(value, list):
        return all(isinstance(one, str) for one in value)
    return value is None or isinstance(value, str | int | float)
