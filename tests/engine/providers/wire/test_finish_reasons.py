"""Every way a reply can end, in the words of both protocols and of the gateways that speak them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.machine.messages import StopReason, ToolUseBlock, text_in
from engine.ports import ModelReply, ProviderError, TextDelta
from engine.providers.anthropic import from_wire as claude
from engine.providers.failures import Service
from engine.providers.openai_compatible import from_wire as openai
from tests.support.loopback_anthropic import start, stop, text, tool
from tests.support.loopback_openai import call

SERVICE = Service("https://gateway.example", "KEY")


def openai_reply(*choices: dict[str, Any]) -> tuple[ModelReply, str]:
    """Reply read from these choices, and the text shown meanwhile."""
    builder, shown = openai.OpenAiReplyBuilder(SERVICE, "m", set(), 100), ""
    for choice in choices:
        for item in builder.feed(json.dumps({"id": "c", "choices": [choice]}).encode()):
            shown += item.text if isinstance(item, TextDelta) else ""
    return builder.reply(), shown


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [
        ("stop", StopReason.END_TURN),
        ("STOP", StopReason.END_TURN),
        ("eos", StopReason.END_TURN),
        ("length", StopReason.MAX_TOKENS),
        ("MAX_TOKENS", StopReason.MAX_TOKENS),
        ("content_filter", StopReason.CONTENT_FILTER),
        ("SAFETY", StopReason.CONTENT_FILTER),
        ("RECITATION", StopReason.CONTENT_FILTER),
        ("PROHIBITED_CONTENT", StopReason.CONTENT_FILTER),
        ("sensitive", StopReason.CONTENT_FILTER),
        ("refusal", StopReason.REFUSAL),
    ],
)
def test_a_finish_reason_is_what_it_says_and_keeps_the_text(reason: str, stop_reason: StopReason) -> None:
    reply, shown = openai_reply({"delta": {"content": "Half of"}}, {"delta": {}, "finish_reason": reason})
    assert (reply.stop, text_in(reply.blocks), shown) == (stop_reason, "Half of", "Half of")


@pytest.mark.parametrize("reason", ["error", "ERROR", "network_error", "insufficient_system_resource", "abort"])
def test_a_reply_that_ends_with_an_error_is_a_failure_of_the_server_to_try_again(reason: str) -> None:
    with pytest.raises(ProviderError) as caught:
        openai_reply({"delta": {"content": "Half"}, "finish_reason": reason})
    assert (caught.value.kind, caught.value.retryable) == ("server", True)
    assert caught.value.message == (f"gateway.example failed with an error: the reply ended with `{reason.lower()}`")


def test_the_error_inside_a_choice_is_told_in_its_own_words() -> None:
    odd = {"delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "Upstream is gone"}}
    with pytest.raises(ProviderError, match="Upstream is gone"):
        openai_reply({"delta": {"content": "Half"}}, odd)


@pytest.mark.parametrize("field", ["delta", "message"])
def test_words_that_decline_are_text_and_a_refusal_whatever_the_finish_reason(field: str) -> None:
    pieces = ({field: {"content": None, "refusal": "I can"}}, {field: {"refusal": "not."}, "finish_reason": "stop"})
    reply, shown = openai_reply(*pieces)
    assert (reply.stop, text_in(reply.blocks), shown) == (StopReason.REFUSAL, "I cannot.", "I cannot.")
    reply, _ = openai_reply({field: {"content": "Well. ", "refusal": "No."}, "finish_reason": "stop"})
    assert (reply.stop, text_in(reply.blocks)) == (StopReason.REFUSAL, "Well. No.")


@pytest.mark.parametrize("ending", [{"finish_reason": "content_filter"}, {"delta": {"refusal": "No."}}])
def test_what_was_declined_runs_no_call(ending: dict[str, Any]) -> None:
    reply, _ = openai_reply({"delta": call(0, "bash", "{}", "t1")}, {"delta": {}, **ending})
    assert not any(isinstance(block, ToolUseBlock) for block in reply.blocks)


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_refusal_is_none(empty: str | None) -> None:
    reply, _ = openai_reply({"delta": {"content": "Hi", "refusal": empty}, "finish_reason": "stop"})
    assert reply.stop is StopReason.END_TURN


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [
        ("refusal", StopReason.REFUSAL),
        ("content_filter", StopReason.CONTENT_FILTER),
        ("guardrail_intervened", StopReason.CONTENT_FILTER),
        ("length", StopReason.MAX_TOKENS),
        ("something new", StopReason.END_TURN),
    ],
)
def test_the_other_protocol_tells_them_apart_too(reason: str, stop_reason: StopReason) -> None:
    builder = claude.AnthropicReplyBuilder(SERVICE, "m", set())
    for event in [start(), *text(0, "Half"), *stop(reason)]:
        builder.feed(json.dumps(event).encode())
    assert (builder.reply().stop, text_in(builder.reply().blocks)) == (stop_reason, "Half")


def test_a_call_before_a_refusal_stays_a_matter_of_the_machine() -> None:
    builder = claude.AnthropicReplyBuilder(SERVICE, "m", set())
    for event in [start(), *tool(0, "bash", "{}"), *stop("refusal")]:
        builder.feed(json.dumps(event).encode())
    assert builder.reply().stop is StopReason.REFUSAL
