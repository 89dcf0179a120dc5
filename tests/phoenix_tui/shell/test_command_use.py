"""The order of slash commands by use, and the file that keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from phoenix_tui.features.catalogue import LISTED, matching
from phoenix_tui.features.use_log import FILE, MOST_USES, UseLog, command_key
from phoenix_tui.modals.help_sheet import HelpSheet
from phoenix_tui.widgets.completion_popup import Token
from phoenix_tui.widgets.completions import command_completions
from tests.support.shell import Shell


def log_of(folder: Path, *names: str) -> UseLog:
    log = UseLog(folder)
    for name in names:
        log.add(command_key(name))
    return log


def test_the_last_used_comes_first_and_then_the_most_used(tmp_path: Path) -> None:
    log = log_of(tmp_path, *["cost"] * 2, *["diff"] * 3, "model", "theme")
    assert log.commands == ["theme", "diff", "cost", "model"]
    again = UseLog(tmp_path)
    assert again.commands == []
    again.read()
    assert again.commands == log.commands


def test_a_tab_counts_for_the_command_that_lists_it_and_another_hidden_name_for_none() -> None:
    assert [command_key(name) for name in ("skills", "help", "copy", "nothing")] == [
        "command:extensions",
        "command:help",
        "",
        "",
    ]


@pytest.mark.parametrize("text", ["", "{}", '[["command:help"]]', '[["command:help", "many"]]', "\0", '[["a", 1'])
def test_a_damaged_file_counts_as_empty_and_is_written_again(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    log = log_of(tmp_path, "help")
    assert log.commands == ["help"]
    assert UseLog(tmp_path).commands == []


def test_the_file_is_bounded_and_names_that_are_gone_are_left_out(tmp_path: Path) -> None:
    log = UseLog(tmp_path)
    for number in range(MOST_USES + 20):
        log.add(f"command:gone{number}")
    assert len(log.recent) == MOST_USES
    assert matching("", log.commands) == list(LISTED)


def test_a_folder_that_cannot_be_written_forgets_with_the_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = log_of(tmp_path / "file", "diff")
    assert log.commands == ["diff"]


def test_a_slash_lists_what_is_in_use_and_then_named_groups() -> None:
    rows = command_completions(Token("/", 0, 0, 1), ["theme", "diff", "cost", "model", "plan", "quit"])
    assert [(one.text, one.section) for one in rows[:7]] == [
        ("/theme", "Used"),
        ("/diff", "Used"),
        ("/cost", "Used"),
        ("/model", "Used"),
        ("/plan", "Used"),
        ("/new", "Conversations"),
        ("/resume", "Conversations"),
    ]
    assert len(rows) == len(LISTED)
    assert [one.section for one in rows[5:]] == sorted((one.section for one in rows[5:]), key=list(ORDER).index)


ORDER = ("Conversations", "Changes", "Context", "Models and agents", "Work", "Phoenix")


def test_letters_find_what_is_in_use_first_among_those_that_begin_with_them() -> None:
    assert [one.name for one in matching("co")][:4] == ["context", "compact", "cost", "config"]
    assert [one.name for one in matching("co", ["diff", "config", "cost"])][:4] == [
        "config",
        "cost",
        "context",
        "compact",
    ]


async def test_a_command_that_was_typed_is_at_the_top_of_the_next_list(shell: Shell) -> None:
    await shell.enter("/doctor", shows="everything works")
    await shell.press("escape", until=lambda: shell.top is shell.screen)
    await shell.press("f1", until=lambda: isinstance(shell.top, HelpSheet))  # a key is not counted
    await shell.press("escape", until=lambda: shell.top is shell.screen)
    await shell.type("/", shows="Used")
    rows = [row.split() for row in shell.dock.popup.render().plain.splitlines()]
    assert [(row[0], row[-1]) for row in rows[:2]] == [("/doctor", "Used"), ("/new", "Conversations")]
