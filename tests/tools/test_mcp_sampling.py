"""Sampling requests of servers: what is read, what is refused, and what the user sees."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from tools.mcp_host.protocol import raw
from tools.mcp_sampling import SampleForm, SampleImage, SampleMessage, SampleRefused, read_sample

PIXEL = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/\x1b[31mpng"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def message(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "content": parts[0] if len(parts) == 1 else list(parts)}


def request(*messages: Any, **more: Any) -> Raw:
    return raw({"messages": list(messages) or [message("user", text("hi"))], "maxTokens": 100, **more})


def why_not(params: Raw) -> str:
    with pytest.raises(SampleRefused) as refused:
        read_sample(params)
    assert json.loads(bytes(refused.value.result)) == {"refused": refused.value.sentence, "code": refused.value.code}
    return refused.value.sentence


def test_texts_are_cleaned_images_named_and_messages_of_one_role_joined() -> None:
    read = read_sample(
        request(
            message("user", text("one\x1b]0;title\x07"), PIXEL),
            message("user", text("two\u202e")),
            message("assistant", text("three")),
            message("user", text("four\r\n"), text("")),
            systemPrompt="Be \x1b[2Jbrief.",
            includeContext="allServers",
            temperature=0.5,
            modelPreferences={"hints": [{"name": "big"}]},
        )
    )
    assert read.messages == (
        SampleMessage("user", ("one", SampleImage("image/png", b"hello"), "two")),
        SampleMessage("assistant", ("three",)),
        SampleMessage("user", ("four",)),
    )
    assert read.shown == (
        "System prompt:\nBe brief.\n\nUser:\none\n[image, image/png, 5 bytes]\ntwo\n\nAssistant:\nthree\n\nUser:\nfour"
    )


@pytest.mark.parametrize(("asked", "given"), [(1, 1), (4_096, 4_096), (10**30, 4_096), (1.5, 1)])
def test_the_tokens_of_an_answer_are_bounded(asked: float, given: int) -> None:
    assert read_sample(request(maxTokens=asked)).max_tokens == given


@pytest.mark.parametrize("asked", [0, -1, -(10**30), None, "9", True, 0.5])
def test_an_answer_of_no_tokens_is_refused(asked: object) -> None:
    assert why_not(request(maxTokens=asked)) == "maxTokens of a sampling request must be at least 1."


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        (request(tools=[{"name": "x"}]), "Sampling with tools is not supported."),
        (request(message("user", {"type": "tool_result"})), "Sampling with tools is not supported."),
        (request(message("user", {"type": "audio", "data": ""})), "Audio in a sampling request is not supported."),
        (request(message("user", {"type": "odd"})), "The sampling request has a part of an unknown kind."),
        (request(message("user", text("a" * 64_001))), "A sampling request has at most 64,000 characters."),
        (request(systemPrompt="a" * 63_999), "A sampling request has at most 64,000 characters."),
        (request(message("user", text("a\n" * 4_001 + "a"))), "A sampling request has at most 4,000 lines."),
        (request(systemPrompt=7), "The sampling request has a text that is none."),
        (request(message("user", *[PIXEL] * 5)), "A sampling request has at most 4 images."),
        (request(message("user", {**PIXEL, "data": "%"})), "An image of the sampling request is not base64."),
        (
            request(message("assistant", text("a"))),
            "The first and the last message of a sampling request must be the user's.",
        ),
        (request(message("system", text("a"))), "A message of a sampling request has the role user or assistant."),
        (
            request(message("user", text("\x1b[2J"))),
            "A message of a sampling request needs 1 to 100 parts that are not empty.",
        ),
        (request(*[message("user", text("a"))] * 101), "A sampling request needs 1 to 100 messages."),
        (raw({"messages": {}, "maxTokens": 1}), "A sampling request needs 1 to 100 messages."),
        (
            request(stopSequences=["a", ""]),
            "A sampling request has at most 16 stopSequences of 1 to 200 characters.",
        ),
        (raw([]), "The sampling request cannot be read."),
        (Raw(b'{"messages":' + b"[" * 100_000), "The sampling request cannot be read."),
        (Raw(b'{"a":' * 5_000 + b"1" + b"}" * 5_000), "The sampling request cannot be read."),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_sentence(params: Raw, sentence: str) -> None:
    assert why_not(params) == sentence


def test_the_question_has_model_bound_and_price_above_its_options_and_the_request_below() -> None:
    form = SampleForm(read_sample(request()), "anthropic/small", "~2 to read, price unknown")
    (asked,) = form.questions
    assert asked.question == (
        "May a model answer a request of this server?\n"
        "anthropic/small: at most 100 tokens, ~2 to read, price unknown\n"
        "Only the text below goes to the model, and only its answer to the server."
    )
    assert asked.details == "User:\nhi"
    assert [form.why_not(((one,),)) for one in ("Yes, once", "No", "maybe")] == ["", "", "Choose Yes, once or No."]
