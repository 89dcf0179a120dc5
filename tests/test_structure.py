"""The structure of the source gets no worse: each figure keeps its limit in `structure_limits.toml`."""

from __future__ import annotations

import ast

import pytest

from tests.structure_figures import body_lines, figures, functions, is_participle, is_within, limits


def test_every_figure_keeps_its_limit() -> None:
    """A limit is raised only by `make structure ARGS=--raise`, in a commit that says why."""
    most, now = limits(), figures()
    assert most.keys() == now.keys()
    assert {name: value for name, value in now.items() if not is_within(name, value, most[name])} == {}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("told", True),
        ("_asked_by", True),
        ("wanted", True),
        ("need", False),
        ("is_told", False),
        ("red", False),
        ("read_settings", False),
        ("__getitem__", False),
    ],
)
def test_a_participle_is_known_by_the_first_word_of_a_name(name: str, found: bool) -> None:
    assert is_participle(name) is found


def test_a_body_is_counted_without_docstring_comments_and_blank_lines() -> None:
    text = 'def f(\n    a,\n):\n    """Text."""\n\n    # reason\n    b = [\n        a,\n    ]\n    return b\n'
    assert [body_lines(node, text.splitlines()) for node in functions(ast.parse(text))] == [4]
