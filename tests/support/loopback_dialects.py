"""Strict servers of single services: each refuses what its service refuses, with a body of the same form."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeAlias

from tests.support.loopback import Talk
from tests.support.loopback_openai import violations

Rule: TypeAlias = Callable[[Any], tuple[int, Any] | None]
"""Reads the body of a request; gives status and body of its refusal."""
MISSING_SIGNATURE: Final = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
    "and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:bash` , position 2."
)


def strict(rule: Rule, pieces: Iterable[bytes]) -> Callable[[Talk], Awaitable[None]]:
    """An answer for requests that the service takes; others get its refusal."""
    sent = list(pieces)

    async def answer(talk: Talk) -> None:
        body = json.loads(talk.seen.body)
        refusal = rule(body)
        if faults := violations(body):
            refusal = (400, {"error": {"message": "; ".join(faults)}})
        if refusal is not None:
            await talk.plain(refusal[0], json.dumps(refusal[1]).encode())
            return
        await talk.begin()
        await talk.send(*sent)
        await talk.end()

    return answer


def mistral(body: Any) -> tuple[int, Any] | None:
    """Ids of calls have nine letters and digits."""
    for message in body["messages"]:
        for call_id in [one["id"] for one in message.get("tool_calls") or ()] + [message.get("tool_call_id")]:
            if call_id is not None and not re.fullmatch(r"[a-zA-Z0-9]{9}", call_id):
                said = f"Tool call id was {call_id} but must be a-z, A-Z, 0-9, with a length of 9."
                return 400, {"object": "error", "message": said, "type": "invalid_function_call", "code": 3280}
    return None


def deepseek(body: Any) -> tuple[int, Any] | None:
    """Each earlier answer has its reasoning; a forced tool, and a limit under OpenAI's newer name, are refused."""
    for place, message in enumerate(body["messages"]):
        if message["role"] == "assistant" and "reasoning_content" not in message:
            said = f"Missing `reasoning_content` field in the assistant message at message index {place}."
            return 400, {"error": {"message": said, "type": "invalid_request_error", "code": "invalid_request_error"}}
    if "max_completion_tokens" in body or body.get("tool_choice", "auto") not in {"auto", "none"}:
        return 400, {"error": {"message": "Unsupported parameter.", "type": "invalid_request_error"}}
    return None


def moonshot(body: Any) -> tuple[int, Any] | None:
    """Answers with calls have their reasoning, and no tool is strict or forced."""
    for place, message in enumerate(body["messages"]):
        if message.get("tool_calls") and not message.get("reasoning_content"):
            said = (
                f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {place}"
            )
            return 400, {"error": {"message": said, "type": "invalid_request_error"}}
    if "tool_choice" in body or any("strict" in tool["function"] for tool in body.get("tools", ())):
        return 400, {"error": {"message": "tool_choice is incompatible with thinking", "type": "invalid_request_error"}}
    return None


def gemini(body: Any) -> tuple[int, Any] | None:
    """The first call of an answer has its signature, and schemas are of a subset; errors are a list."""
    for message in body["messages"]:
        calls = message.get("tool_calls") or ()
        if calls and "thought_signature" not in json.dumps(calls[0].get("extra_content")):
            return 400, [{"error": {"code": 400, "message": MISSING_SIGNATURE, "status": "INVALID_ARGUMENT"}}]
    text = json.dumps(body.get("tools", []))
    for name in ("$ref", "$defs", "const", "exclusiveMinimum", "additionalProperties"):
        if f'"{name}"' in text:
            said = (
                f'Invalid JSON payload received. Unknown name "{name}" at '
                "'tools[0].function_declarations[0].parameters': Cannot find field."
            )
            return 400, [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}]
    return None


def openrouter(details: Any) -> Rule:
    """The reasoning of the answer comes back as the whole entries that it was."""

    def rule(body: Any) -> tuple[int, Any] | None:
        back = [one.get("reasoning_details") for one in body["messages"] if one["role"] == "assistant"]
        if any(one != details for one in back) or "reasoning_effort" in body:
            raw = "messages.1.content.0: Invalid `signature` in `thinking` block"
            metadata = {"raw": raw, "provider_name": "Anthropic"}
            return 400, {"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}}
        return None

    return rule
