"""The arguments of a call as the list of what fills the window names them."""

from __future__ import annotations

import json

import pytest

from engine.context.measure import describe_arguments


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": "a.py", "edits": [{"op": "replace", "old": "x", "new": "y"}]}, "a.py replace x y"),
        ({"all": True, "limit": 3, "then": None}, "true 3 null"),
        ({"deep": {"a": [1, [2, "three"]]}}, "1 2 three"),
        ({}, ""),
    ],
)
def test_arguments_are_said_without_names_and_brackets_however_deep_they_are(arguments: object, words: str) -> None:
    assert describe_arguments(json.dumps(arguments)) == words


def test_arguments_that_are_no_object_are_said_as_they_are() -> None:
    assert describe_arguments("[1") == "[1"
