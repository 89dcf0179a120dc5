"""Bodies of skills and command files with their variables and shell lines."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.extensions.skills import MOST_SHELL_LINES, BodyShellLine, Values, parts_of, render_body


@pytest.mark.parametrize(
    ("body", "arguments", "text"),
    [
        ("Fix $ARGUMENTS now", "12 high", "Fix 12 high now"),
        ("Fix $0 as $1, not $2", "12 high", "Fix 12 as high, not $2"),
        ("Fix $ARGUMENTS[1]", '12 "very high"', "Fix very high"),
        ("Fix it.", "12 high", "Fix it.\n\nARGUMENTS: 12 high"),
        ("Fix it.", "  ", "Fix it."),
        ("$0 $1", "$1 x", "$1 x"),
        ("$ARGUMENTSX costs $12000", "a", "$ARGUMENTSX costs $12000\n\nARGUMENTS: a"),
        ("Look in ${CLAUDE_SKILL_DIR}/a and ${PHOENIX_SKILL_DIR}/b, ${HOME}", "", "Look in /s/a and /s/b, ${HOME}"),
        ("It's $0", "it's", "It's it's"),
    ],
)
def test_variables_are_replaced_once(body: str, arguments: str, text: str) -> None:
    assert render_body(body, Values(arguments, {"SKILL_DIR": "/s"})) == (text,)


def test_shell_lines_are_told_from_text_and_from_other_code() -> None:
    body = "State: !`git status`\n```!\nls\npwd\n```\n```sh\n!`rm -rf /`\n```\nx!`no`\n~~~!\nls"
    assert parts_of(body) == (
        "State: ",
        BodyShellLine("git status"),
        "\n",
        BodyShellLine("ls\npwd"),
        "\n```sh\n!`rm -rf /`\n```\nx!`no`\n~~~!\nls",
    )


def test_an_argument_reaches_a_shell_line_as_one_word_only() -> None:
    hostile = "'; touch /tmp/x; $(id) `id`\" | cat"
    (_, line) = render_body("Run !`echo $ARGUMENTS`", Values(shlex.quote(hostile)))
    assert isinstance(line, BodyShellLine)
    shell = subprocess.run(["bash", "-c", line.command], capture_output=True, text=True, check=True)
    assert shell.stdout == f"{hostile}\n"


@given(words=st.lists(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=20)))
def test_any_words_come_through_a_shell_unchanged(words: list[str]) -> None:
    (line,) = render_body("```!\nprintf '%s\\0' $ARGUMENTS\n```", Values(shlex.join(words)))[:1]
    assert isinstance(line, BodyShellLine)
    assert shlex.split(line.command)[2:] == words


def test_a_shell_line_from_an_argument_is_text() -> None:
    assert render_body("Say $0", Values("'!`id`'")) == ("Say !`id`",)


def test_shell_lines_beyond_the_limit_stay_text() -> None:
    parts = parts_of(" !`a`" * (MOST_SHELL_LINES + 5))
    assert sum(isinstance(part, BodyShellLine) for part in parts) == MOST_SHELL_LINES
    assert parts[-1] == " !`a`" * 5


@given(body=st.text(st.sampled_from("!`$~\n ARGUMENTS[0]{}_x\\'\""), max_size=300), arguments=st.text(max_size=60))
def test_any_body_and_any_arguments_are_rendered(body: str, arguments: str) -> None:
    plain = "".join(part if isinstance(part, str) else part.command for part in parts_of(body))
    assert len(plain) <= len(body) + 3
    assert all(part for part in render_body(body, Values(arguments)))


def test_a_hostile_body_takes_no_time_that_grows_with_its_square() -> None:
    for piece in ("!`", "$ARGUMENTS[", "```!\n", "$", "~~~", "${A"):
        assert parts_of(piece * (64 * 1024 // len(piece)))


def test_named_arguments_are_those_that_the_file_names() -> None:
    values = Values("1.2 'next week'", argument_names=("version", "time"))
    assert render_body("Tag $version at $time, $other and $versions.\n!`tag $time`", values) == (
        "Tag 1.2 at next week, $other and $versions.\n",
        BodyShellLine("tag 'next week'"),
    )
