"""JSON that is always valid, ids that are unique, images that fit."""

from __future__ import annotations

import json

import pytest

from engine.machine.messages import ToolUseBlock
from engine.ports import ImageBytes
from engine.providers.wire import encode_json, media_type, parse_object, readable_json, tool_input, unique_tool_id
from tests.support.loopback_anthropic import TINY_PNG


def test_lone_surrogates_and_nul_leave_as_valid_json() -> None:
    encoded = encode_json({"a": ["x\ud800y", {"\udc00": "\x00"}], "n": 1, "b": None})
    assert json.loads(encoded) == {"a": ["x?y", {"?": "\x00"}], "n": 1, "b": None}


@pytest.mark.parametrize(
    "text",
    ['{"a": "trunc', "[1]", "7", "", '{"a": NaN}', '{"a": "\\ud800"}', '{"a":' * 100_000 + "1" + "}" * 100_000],
    ids=["truncated", "list", "number", "empty", "NaN", "surrogate", "deep"],
)
def test_text_that_is_no_object_is_none(text: str) -> None:
    assert parse_object(text) is None


def test_duplicate_keys_and_megabytes_are_an_object() -> None:
    assert parse_object('{"a": 1, "a": 2}') == {"a": 2}
    assert parse_object('{"a": "' + "x" * 5_000_000 + '"}') == {"a": "x" * 5_000_000}


def test_a_broken_input_is_quoted_back_to_the_model() -> None:
    assert tool_input(ToolUseBlock("a", "bash", '{"command": "l')) == {"invalid_json": '{"command": "l'}
    assert tool_input(ToolUseBlock("a", "bash", '{"command": "ls"}')) == {"command": "ls"}


def test_an_event_with_a_lone_surrogate_or_broken_utf8_is_still_read() -> None:
    assert json.loads(readable_json(b'{"text":"a\\ud800b"}')) == {"text": "a?b"}
    assert json.loads(readable_json(b'{"text":"a\xffb"}')) == {"text": "a\ufffdb"}
    with pytest.raises(ValueError, match="Expecting"):
        readable_json(b'{"text": tr')


def test_ids_are_unique_and_in_every_providers_alphabet() -> None:
    used = {"call_0"}
    ids = [unique_tool_id(given, used, "spare") for given in ("call_0", "call_0", "", "", "functions.bash:0", "x" * 99)]
    assert ids == ["call_0_2", "call_0_3", "spare", "spare_2", "functions_bash_0", "x" * 64]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (TINY_PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"????", "image/bmp"),
    ],
)
def test_the_media_type_fits_the_bytes(data: bytes, kind: str) -> None:
    assert media_type(ImageBytes("image/bmp", data)) == kind
