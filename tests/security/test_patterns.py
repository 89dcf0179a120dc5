"""SECURITY V4: globs such as `*a*a*a…` froze the program forever; they are matched without backtracking now."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.contract import ToolInputError
from tools.files.walking import matcher

HOSTILE = (
    "*a" * 40,
    "**/a" * 40 + "b",
    "{a,}" * 80 + "b",
    "a*" * 300 + "b",
    "[a-z]*" * 100 + "1",
    "{" * 300 + "}" * 300,
)
DEADLINE = 10
"""Seconds for each on any machine; a backtracking matcher takes longer than the universe is old."""


def test_no_glob_takes_for_ever() -> None:
    program = (
        "import sys; from tools.files.walking import matcher\n"
        f"for glob in {HOSTILE!r}:\n"
        "    matcher(glob)('a' * 250 + '!'); matcher('x/' + glob)('x/' + 'a/' * 120 + '!')"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=DEADLINE)


def plainly(glob: str, text: str) -> bool:
    """The same meaning, written down naively: one star at a time."""
    if not glob:
        return not text
    if glob.startswith("**/"):
        return plainly(glob[3:], text) or any(
            character == "/" and plainly(glob[3:], text[place + 1 :]) for place, character in enumerate(text)
        )
    if glob.startswith("**"):
        return any(plainly(glob[2:], text[place:]) for place in range(len(text) + 1))
    if glob[0] == "*":
        room = len(text.partition("/")[0])
        return any(plainly(glob[1:], text[place:]) for place in range(room + 1))
    if not text:
        return False
    return (glob[0] == text[0] or (glob[0] == "?" and text[0] != "/")) and plainly(glob[1:], text[1:])


@given(st.text("aab*?/.", min_size=1, max_size=8), st.text("aab/.", max_size=7))
def test_a_glob_means_what_it_meant(glob: str, text: str) -> None:
    wanted = glob.removeprefix("./").removeprefix("/")
    assert matcher(glob)(text) is plainly(wanted, text if "/" in glob else text.rpartition("/")[2])


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.{py,pyi}", "a.pyi", "a.pyc"),
        ("{a,b{c,d}}*", "bdx", "be"),
        ("[a-c!]?", "!x", "dx"),
        ("[!a-c]", "d", "a"),
        ("a,b", "a,b", "a"),
        ("[]a]", "]", "b"),
    ],
)
def test_sets_and_choices(glob: str, yes: str, no: str) -> None:
    assert matcher(glob)(yes)
    assert not matcher(glob)(no)


@pytest.mark.parametrize("glob", ["{a", "a}", "[z-a]", "x" * 1_001])
def test_a_malformed_or_endless_glob_is_refused_in_words(glob: str) -> None:
    with pytest.raises(ToolInputError, match=r"malformed|at most 1,000"):
        matcher(glob)
