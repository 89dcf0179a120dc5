"""Ollama's own list of models, with any content."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ollama_tags import LONGEST_NAME, MOST, read_names
from phoenix_tui.models.servers import model_names

JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["models", "name", "x"]), inner),
    max_leaves=20,
)


def test_names_are_read_and_entries_that_are_none_are_left_out() -> None:
    entries = [{"name": "qwen:7b"}, None, 5, {"name": None}, {"name": ""}, {"model": "x"}, {"name": "y" * 301}]
    assert read_names(json.dumps({"models": [*entries, {"name": "tiny", "size": 5}]}).encode()) == ["qwen:7b", "tiny"]
    many = {"models": [{"name": "y" * LONGEST_NAME}] * (MOST + 1)}
    assert len(read_names(json.dumps(many).encode())) == MOST


@pytest.mark.parametrize("body", [b'{"models": null}', b'{"models": {}}', b"{}", b'{"models": "qwen"}'])
def test_a_list_without_models_is_empty(body: bytes) -> None:
    assert read_names(body) == []


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"5", b"<html>", b"\xff", b"[" * 100_000, b'{"models": [}'])
def test_what_is_no_such_list_is_an_error_here_and_no_server_there(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_names(body)
    assert model_names(b"HTTP/1.0 200 OK\r\n\r\n" + body) == ()


@given(JSON)
def test_any_json_gives_names_or_an_error(value: object) -> None:
    body = json.dumps(value)
    try:
        names: Sequence[object] = read_names(body.encode())
        assert all(isinstance(name, str) and name for name in names)
    except ValueError:
        assert not isinstance(value, dict)
