"""Lines of the user after `!`: in a terminal, each in the folder that the one before ended in."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Struct, field

from tools.bash import Bash, folder_script
from tools.contract import Progress, TerminalDisplay, ToolContext, ToolOutput
from tools.process.start import Processes
from tools.terminal.values import ShellTerminal, TerminalRows, TerminalSize, TextRun

SIZE = TerminalSize(12, 60)


class Lines(Struct):
    """Runs one line after the other, as a conversation does."""

    tool: Bash
    home: Path
    folder: str = ""
    seen: list[Progress] = field(default_factory=list[Progress])

    async def run(self, line: str) -> ToolOutput:
        shell = ShellTerminal(SIZE, self.folder)
        context = ToolContext("one", "shell_1", self.home, False, self.seen.append, shell=shell)
        output = await self.tool.run({"command": line}, context)
        self.folder = self.folder if output.folder is None else output.folder
        return output

    async def shown(self, line: str) -> TerminalDisplay:
        display = (await self.run(line)).display
        assert isinstance(display, TerminalDisplay)
        return display


@pytest.fixture
def lines(processes: Processes, tmp_path: Path) -> Lines:
    home = tmp_path / "home"
    home.mkdir()
    return Lines(Bash(processes.jobs, tmp_path / "spills"), home)


async def test_a_folder_is_kept_from_line_to_line_and_shown(lines: Lines) -> None:
    (lines.home / "sub" / "deep").mkdir(parents=True)
    assert (await lines.shown("cd sub")).folder == ""
    display = await lines.shown("pwd; cd deep")
    assert (display.output, display.folder) == (f"{lines.home}/sub", f"{lines.home}/sub")
    output = await lines.run("cd ../..")
    assert output.text == f"[no output]\n[exit code 0]\n[in {lines.home}/sub/deep]"
    assert lines.folder == ""
    assert (await lines.shown("pwd")).folder == ""


@pytest.mark.parametrize(
    "name",
    ["with blanks ", 'it\'s "quoted"', "a\nb", "$(touch x)", "-n", "日本", "\udcff\udcfe", "tab\there", "\x1b[31m"],
)
async def test_a_folder_of_any_name_is_kept(lines: Lines, name: str) -> None:
    place = lines.home / name
    place.mkdir()
    (place / "here").touch()
    lines.folder = str(lines.home)
    await lines.run("cd -- */")
    assert lines.folder == str(place)
    display = await lines.shown("ls")
    assert display.output == "here"
    assert "\n" not in display.folder
    assert "\x1b" not in display.folder
    assert not (lines.home / "x").exists()


async def test_links_are_resolved_and_their_conversation_is_known(lines: Lines, tmp_path: Path) -> None:
    (lines.home / "real").mkdir()
    (lines.home / "link").symlink_to("real")
    await lines.run("cd link")
    assert lines.folder == str(lines.home / "real")
    (tmp_path / "other").symlink_to(lines.home)
    lines.folder, lines.home = "", tmp_path / "other"
    await lines.run("cd .")
    assert lines.folder == ""


async def test_a_folder_that_is_gone_runs_nothing_and_the_next_line_runs_in_the_conversations(lines: Lines) -> None:
    await lines.run("mkdir gone; cd gone")
    (lines.home / "gone").rmdir()
    output = await lines.run("touch made; rm -rf made")
    assert output.is_error
    assert output.text.startswith(f"Nothing was run: the folder {lines.home}/gone of your last line cannot be entered")
    assert list(lines.home.iterdir()) == []
    assert (await lines.shown("pwd")).output == str(lines.home)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("false", 1), ("exit 7", 7), ("(exit 3)", 3), ("nope-not-there", 127), ("kill -TERM $$", None),
        ("}", 2), ("if true", 2), ("set -e; false; echo not reached", 1), ("cat <<X\nin a document\nX", 0),
        ("# a remark", 0), ("echo 'it'\"'\"'s'", 0),
    ],
)  # fmt: skip
async def test_the_line_ends_as_it_would_by_itself(lines: Lines, line: str, code: int | None) -> None:
    (lines.home / "sub").mkdir()
    lines.folder = str(lines.home / "sub")
    assert (await lines.shown(line)).exit_code == code
    assert lines.folder == str(lines.home / "sub")


@pytest.mark.parametrize("line", ["cd /; exec true", "cd /; trap - EXIT", "cd /; kill -9 $$", "cd /; exec >&- 2>&-"])
async def test_a_line_that_tells_no_folder_changes_none(lines: Lines, line: str) -> None:
    (lines.home / "sub").mkdir()
    lines.folder = str(lines.home / "sub")
    await lines.run(line)
    assert lines.folder in {str(lines.home / "sub"), "/"}


async def test_messages_of_bash_name_the_line_as_it_was_typed(lines: Lines) -> None:
    assert (await lines.shown("nope")).output.endswith("line 1: nope: command not found")
    assert "line 3: nope" in (await lines.shown("true\ntrue\nnope")).output


async def test_a_program_cannot_forge_a_folder_without_the_word_of_this_line(lines: Lines) -> None:
    mark = folder_script("true", "").mark
    await lines.run(f"printf '\\033]{mark}2f657463\\007\\033]7;;2f657463\\007\\033]7;file:///etc\\007'")
    assert lines.folder == ""
    assert folder_script("true", "").mark != mark


async def test_a_folder_reported_by_a_forger_counts_for_the_next_line_alone_and_is_shown(lines: Lines) -> None:
    """A program can read the word from the command line of its parent: what it wins is one visible folder."""
    word = "$(tr '\\0' '\\n' </proc/$$/cmdline | grep -o '7;[0-9a-f]*;' | head -1)"
    await lines.run(f"trap - EXIT; printf '\\033]%s2f\\007' \"{word}\"")
    assert lines.folder == "/"
    assert (await lines.shown("pwd")).folder == "/"


async def test_colours_are_stored_beside_the_text(lines: Lines) -> None:
    display = await lines.shown("printf 'a \\033[1;32mgood\\033[m one\\n'")
    assert (display.output, display.runs) == ("a good one", (TextRun(0, 2, 6, "1;32"),))
    assert next(one.text for one in lines.seen if isinstance(one, TerminalRows)) == ""


async def test_colours_of_a_long_output_stay_with_their_lines(lines: Lines) -> None:
    display = await lines.shown("seq 50000 | sed 's/.*/plain \\x1b[31m&\\x1b[m/'")
    rows = display.output.split("\n")
    assert display.lines == 50_000
    assert any(row.startswith("[… ") for row in rows)
    assert all(rows[run.row][run.start : run.end] == rows[run.row].removeprefix("plain ") for run in display.runs)
    assert {run.row for run in display.runs} >= {0, len(rows) - 1}


async def test_a_line_has_no_time_limit_and_may_ask_in_its_terminal(lines: Lines) -> None:
    display = await lines.shown("test -t 0 && test -t 2 && echo $TERM ${NO_COLOR-none} $GIT_TERMINAL_PROMPT")
    assert display.output == "xterm-256color none 1"
