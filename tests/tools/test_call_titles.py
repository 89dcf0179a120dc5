"""Titles of calls: the tool once, whatever it is."""

from __future__ import annotations

import json

import pytest

from tools.call_titles import call_title, show_arguments, tool_label
from tools.contract import JsonObject


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("bash", "bash"),
        ("mcp__demo__echo", "demo: echo"),
        ("mcp__a__b__c", "a: b__c"),
        ("mcp__demo", "demo"),
        ("mcp__", "mcp__"),
        ("mcp____", "mcp____"),
        ("", ""),
    ],
)
def test_a_tool_of_a_server_is_named_by_server_and_tool(name: str, label: str) -> None:
    assert tool_label(name) == label


def test_a_title_has_the_tool_once() -> None:
    assert call_title("mcp__demo__echo", '{"text": "hi"}', 'demo: echo {"text": "hi"}') == "demo: echo hi"
    assert call_title("mcp__demo__echo", "{}") == "demo: echo"
    assert call_title("bash", '{"command": "make test"}', "make test", "  ") == "bash  make test"
    assert call_title("think", "{}", "think") == "think"


def test_arguments_that_are_no_object_are_shown_as_they_are_and_within_a_bound() -> None:
    assert call_title("mcp__a__b", "[1, 2") == "a: b [1, 2"
    assert call_title("mcp__a__b", '{"x": "\u001b[31m\nred"}').isprintable()
    assert len(call_title("mcp__a__b", json.dumps({"x": "y" * 100_000}))) < 420
    for depth in (900, 30_000):
        assert call_title("mcp__a__b", f'{{"x": {"[" * depth}{"]" * depth}}}').endswith("[[[…")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({}, ""),
        ({"text": "two words"}, "two words"),
        ({"count": 3}, "3"),
        ({"owner": "a", "title": "b c", "draft": True}, 'owner=a title="b c" draft=true'),
        ({"a": "x=1", "b": 'y"'}, 'a="x=1" b="y\\""'),
    ],
)
def test_arguments_of_a_server_are_on_one_line_and_cannot_pass_for_each_other(args: JsonObject, words: str) -> None:
    assert show_arguments(args) == words
