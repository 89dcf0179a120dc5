"""Front matter as people and other agents write it; anything else is one written error, in bounded time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.config.front_matter import LARGEST, FrontMatterError, FrontMatterValue, read_front_matter


def values(inner: str) -> dict[str, FrontMatterValue]:
    return dict(read_front_matter(f"---\n{inner}\n---\nbody").values)


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("a: x", {"a": "x"}),
        ("a:", {"a": ""}),
        ("a: x # comment", {"a": "x"}),
        ("a: x#y", {"a": "x#y"}),
        ("# comment\n\na: x", {"a": "x"}),
        ('a: "x: \\"y\\" \\u00e9"', {"a": 'x: "y" é'}),
        ("a: 'it''s' # c", {"a": "it's"}),
        ("a: |\n  one\n    two\n\n  three\nb: y", {"a": "one\n  two\n\nthree\n", "b": "y"}),
        ("a: |-\n  one\n\n", {"a": "one"}),
        ("a: >\n  one\n  two\n\n  three", {"a": "one two\nthree\n"}),
        ("a: >-\n  one\n  two: x", {"a": "one two: x"}),
        ("a: [x, 'y, z', \"w\"]", {"a": ("x", "y, z", "w")}),
        ("a: [\n  x,\n  y,\n]\nb: z", {"a": ("x", "y"), "b": "z"}),
        ("a: []", {"a": ()}),
        ("a:\n  - x\n  - 'y: z'\nb: w", {"a": ("x", "y: z"), "b": "w"}),
        ("a:\n- x\n- y", {"a": ("x", "y")}),
        ("a: {x: 1, y: two}", {"a": {"x": "1", "y": "two"}}),
        ("a:\n  x: 1\n  y: 'two'\nb: z", {"a": {"x": "1", "y": "two"}, "b": "z"}),
        ("a: one\n  two", {"a": "one two"}),
        ("allowed-tools: Bash(git log:*), Read", {"allowed-tools": "Bash(git log:*), Read"}),
        ("description: Use this: always", {"description": "Use this: always"}),
        ("description: *bold* start\nb: [x", {"description": "*bold* start", "b": "[x"}),
        ('a: "open', {"a": '"open'}),
        ("a:\n- x: y\n- @z", {"a": ("x: y", "@z")}),
        ("true: yes\nn: 1.0\nd: 2026-01-01\nz: null", {"true": "yes", "n": "1.0", "d": "2026-01-01", "z": "null"}),
    ],
)
def test_what_people_write_is_read(inner: str, expected: dict[str, FrontMatterValue]) -> None:
    assert values(inner) == expected
    assert values(inner.replace("\n", "\r\n")) == expected


@pytest.mark.parametrize(
    ("inner", "line", "said"),
    [
        ("a: x\na: y", 3, "a second time"),
        ("a: x\n  b", 0, ""),
        ("  a: x", 2, "is indented"),
        ("a: x\nnonsense", 3, "is not 'key: value'"),
        ("a:\n  b:\n    c: x", 3, "more deeply than one level"),
        ("a:\n  - x\n  y", 4, "is not '- item'"),
        ("a:\n  - x\n  y: z", 4, "is not '- item'"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(inner: str, line: int, said: str) -> None:
    if not line:
        assert values(inner) == {"a": "x b"}
        return
    fault = next(iter(read_front_matter(f"---\n{inner}\n---\nbody").left_out.values()))
    assert fault.line == line
    assert re.search(said, fault.sentence)


def test_the_body_begins_behind_the_fence_and_a_file_without_one_is_all_body() -> None:
    found = read_front_matter("\ufeff---\r\na: x\r\n---\r\n\r\nHello\r\n")
    assert (found.values, found.lines, found.body) == ({"a": "x"}, {"a": 2}, "\nHello\n")
    assert read_front_matter("Hello\n---\na: x\n---").values == {}
    assert read_front_matter("").body == ""
    assert read_front_matter("---\n---\nx").body == "x"
    with pytest.raises(FrontMatterError, match="no closing '---'"):
        read_front_matter("---\na: x")


def test_front_matter_is_bounded() -> None:
    with pytest.raises(FrontMatterError, match="larger than 64 KB"):
        read_front_matter("---\na: " + "x" * LARGEST + "\n---\n")
    keys = read_front_matter("---\n" + "\n".join(f"k{n}: x" for n in range(201)) + "\n---\n")
    assert (len(keys.values), list(keys.left_out)) == (200, ["k200"])
    assert "at most 200" in keys.left_out["k200"].sentence
    items = read_front_matter("---\na:\n" + "- x\n" * 2_001 + "b: y\n---\n")
    assert (dict(items.values), list(items.left_out)) == ({"b": "y"}, ["a"])
    assert "at most 2,000" in items.left_out["a"].sentence
    for unit in (
        "[",
        "{",
        "- ",
        '"',
        "'",
        "a: [",
        "a:\n ",
        ": ",
        "\\",
        '"\\',
        "''",
        "#",
        "|\n",
        "a: >\n",
        "\n",
        ",",
        "[,",
    ):
        for start in ("", "a: ", "a:\n  ", "a: [", 'a: "', "a: '", "a: {"):
            text = f"---\n{start}{unit * (60_000 // len(unit))}\n---\n"
            try:
                read_front_matter(text)
            except FrontMatterError as error:
                assert len(error.sentence) < 300


SOUP = st.lists(
    st.sampled_from(["a", "b", ":", ": ", " ", "  ", "\n", "\n  ", "- ", "[", "]", "{", "}", ",", "'", '"', "#", " #",
                     "|", ">", "|-\n", "\\", "---", "\r\n", "\t", "é", "\x00", "&", "*", "!"]),
    max_size=30,
).map("".join)  # fmt: skip


@given(SOUP | st.text(max_size=200))
def test_any_text_gives_values_or_the_written_error(inner: str) -> None:
    for text in (f"---\n{inner}\n---\n", inner):
        try:
            found = read_front_matter(text)
        except FrontMatterError as error:
            assert 1 <= error.line <= text.count("\n") + text.count("\r") + 1
        else:
            assert set(found.lines) == set(found.values)


@given(st.dictionaries(st.from_regex(r"[a-z][a-z_-]{0,8}", fullmatch=True), st.text(max_size=40), max_size=5))
def test_a_quoted_text_comes_back_whole(pairs: dict[str, str]) -> None:
    clean = {key: text.replace("\r", "").replace("\n", " ").replace("'", "").strip() for key, text in pairs.items()}
    assert values("\n".join(f"{key}: '{text}'" for key, text in clean.items())) == clean


def test_a_value_that_cannot_be_read_costs_its_key_alone() -> None:
    text = """---
name: deploy
hooks:
  PreToolUse:
    - matcher: Bash
      hooks:
        - type: command
          command: "./check.sh"
metadata:
  author: me
  nested:
    deep: [1, {a: b}]
allowed-tools: [
  Read,
  Bash(git *)
]
steps:
- name: one
  run: a
- name: two
description: Ships: it
---
body
"""
    found = read_front_matter(text)
    assert dict(found.values) == {
        "name": "deploy",
        "allowed-tools": ("Read", "Bash(git *)"),
        "description": "Ships: it",
    }
    assert set(found.left_out) == {"hooks", "metadata", "steps"}
    assert found.body == "body\n"
    assert {key: found.lines[key] for key in found.values} == {"name": 2, "allowed-tools": 13, "description": 21}
