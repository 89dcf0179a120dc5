"""Weakness: proposals of a model, and other texts that are not the user's, that would act with Tab or Enter."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.executor.side_questions import clean_suggestion
from phoenix_tui.features.catalogue import as_message, is_command, is_shell_line
from phoenix_tui.text.shell_words import quote_change
from phoenix_tui.widgets.completion_popup import Completion, drop_disguised
from phoenix_tui.widgets.completions import FileIndex
from tools.contract import DiffDisplay

MARKS = ("!", "/", "@", "#", "！", "／")


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("around", ["{}", " {}", "\n\n{}", '"{}"', "“{}”", '" {}"', '\t"{}', "''{}"[2:]])
def test_a_proposal_that_would_be_a_command_is_none(mark: str, around: str) -> None:
    assert clean_suggestion(around.format(f"{mark}rm -rf ~")) == ""


@pytest.mark.parametrize(
    "letter", ["\x1b", "\x00", "\x7f", "\x9b", "\u202e", "\u200b", "\u2066", "\ufeff", "\U000e0041"]
)
def test_a_proposal_with_what_is_not_seen_is_none(letter: str) -> None:
    assert clean_suggestion(f"Run the {letter}tests") == ""
    assert clean_suggestion(f"{letter}!ls") == ""


@given(st.text(max_size=80))
def test_no_text_of_a_model_becomes_a_command_or_two_lines(text: str) -> None:
    line = clean_suggestion(text)
    assert not line.startswith(MARKS)
    assert line == line.strip()
    assert len(line.splitlines()) <= 1


def test_an_honest_proposal_is_offered() -> None:
    assert clean_suggestion('"Now run the tests in tests/ and fix #12!"') == "Now run the tests in tests/ and fix #12!"


@given(st.text(max_size=80) | st.sampled_from(["/delete", "!rm -rf ~", "!!ls", "/q", "/compact now", "! ls", "/a b"]))
def test_a_text_from_elsewhere_is_sent_and_never_run(text: str) -> None:
    put = as_message(text)
    assert not is_command(put)
    assert not is_shell_line(put)
    assert put.strip() == text.strip()
    assert as_message(put) == put


def test_what_the_user_types_runs_as_before() -> None:
    assert is_command("/delete")
    assert is_shell_line("!ls")
    assert not is_command(" /delete")


@pytest.mark.parametrize("selected", ["!rm -rf ~", "/delete", "\n!ls", "```\n!ls", "\x1b]52;c;eA==\x07!ls\r/delete"])
@pytest.mark.parametrize("name", ["!run", "/delete", "a\n!rm -rf ~", "a\r/delete", "\u202e!x"])
def test_a_quoted_change_is_a_message(name: str, selected: str) -> None:
    diff = f"@@ -1 +1 @@\n-{selected}\n+/delete\n"
    for text in (
        quote_change(DiffDisplay(name, diff, 1, 1), 0),
        quote_change(DiffDisplay(name, diff, 1, 1), 0, selected),
    ):
        assert text.startswith("About ")
        assert not is_command(text)
        assert not is_shell_line(text)
        assert "\x1b" not in text
        assert "\r" not in text


NAMES = ("!rm -rf ~", "a\n!ls", "b\rdelete", "c\x1b[2K", "d\u202e", 'e" !ls "', "f\u200b", "g\x85h", "i\u2028quit")


async def test_names_of_files_put_only_what_they_show_into_the_text(tmp_path: Path) -> None:
    for name in (*NAMES, "plain name.py"):
        (tmp_path / name).write_text("")
    index = FileIndex(tmp_path)
    await index.refresh()
    offered = [one.text for one in await index.completions("")]
    assert sorted(offered) == ['@"!rm -rf ~"', '@"plain name.py"']
    for text in offered:
        assert not is_command(text)
        assert not is_shell_line(text)


@pytest.mark.parametrize("hidden", ["\n", "\r", "\x1b", "\u202e", "\u200b", "\x85", "\u2028"])
def test_no_completion_holds_what_its_row_does_not_show(hidden: str) -> None:
    """A model's name comes from its server, a profile's from the repository."""
    plain = Completion("server/model")
    assert drop_disguised([Completion(f"server/model{hidden}!rm -rf ~", runs=True), plain]) == [plain]
