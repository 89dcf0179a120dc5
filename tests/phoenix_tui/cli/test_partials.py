"""Streamed pieces as events of the Messages API."""

from __future__ import annotations

from engine.machine.messages import Origin, Role, TextBlock, ThinkingBlock, ToolUseBlock, Usage
from engine.records import StoredMessage
from phoenix_tui.cli.blocks import encode
from phoenix_tui.cli.reporters import Partials

REPLY = StoredMessage(
    id="m1",
    seq=2,
    turn_number=1,
    message_number=2,
    role=Role.ASSISTANT,
    origin=Origin.LLM,
    blocks=(ThinkingBlock("hm", "sig"), TextBlock("Hi."), ToolUseBlock("t1", "bash", '{"command":"ls"}')),
    created_at=0.0,
    usage=Usage(1, 2),
)


def test_blocks_open_and_close_around_their_deltas() -> None:
    partials = Partials("a/b")
    events = [*partials.thinking("hm"), *partials.text("H"), *partials.text("i."), *partials.end_message(REPLY)]
    assert [(event["type"], event.get("index")) for event in events] == [
        ("message_start", None),
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
        ("content_block_delta", 1),
        ("content_block_stop", 1),
        ("content_block_start", 2),
        ("content_block_delta", 2),
        ("content_block_stop", 2),
        ("message_delta", None),
        ("message_stop", None),
    ]
    assert events[9]["delta"] == {"type": "input_json_delta", "partial_json": '{"command":"ls"}'}
    assert events[11]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}


def test_a_dropped_reply_closes_what_is_open_and_the_next_begins_anew() -> None:
    partials = Partials("a/b")
    dropped = [*partials.text("Once"), *partials.drop_message()]
    assert [event["type"] for event in dropped[-2:]] == ["content_block_stop", "message_stop"]
    assert list(partials.drop_message()) == []
    assert [event["type"] for event in partials.text("Again")][:2] == ["message_start", "content_block_start"]


def test_no_control_character_stands_as_itself_in_json() -> None:
    assert encode({"text": "a\x1b\x9b\u2028\u202eü😀\ud800"}) == ('{"text": "a\\u001b\\u009b\\u2028\\u202eü😀\\ud800"}')
