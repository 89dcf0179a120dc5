"""/diff: the changes of a conversation, file by file and turn by turn."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from msgspec.structs import replace

from engine.ports.files import FileChange
from engine.rewind.rewind import ChangedFile
from phoenix_tui.widgets.diff_view import DiffView
from tests.support.fake_rewinding import FILE, FakeRewinding, change, point
from tests.support.plain_runner import PlainRunner
from tests.support.shell import Shell
from tools.contract import Command, DiffDisplay

OpenShell = Callable[..., AbstractAsyncContextManager[Shell]]
LONG = "".join(f" line {number}\n" for number in range(60))
TWO_CHANGES = f"--- a\n+++ b\n@@ -1,124 +1,124 @@\n-port = 80\n+port = 8080\n{LONG}-host = 1\n+host = 2\n{LONG}"
FILES = (
    ChangedFile(change("server.py", 2, 2)),
    ChangedFile(change("new.py", 9, kind="+"), "changed since then by someone else"),
    ChangedFile(FileChange(b"logo.png", FILE, replace(FILE, content=b"another"))),
    ChangedFile(FileChange(b"run.sh", FILE, replace(FILE, mode=0o755))),
)


class Rewinding(FakeRewinding):
    """Shows a long change of one file, a short one of the next, and none of what is no text."""

    async def diff(self, change: FileChange) -> DiffDisplay | None:
        match change.name:
            case "server.py":
                return DiffDisplay("server.py", TWO_CHANGES, 2, 2)
            case "new.py":
                return DiffDisplay("new.py", "--- /dev/null\n+++ b\n@@ -0,0 +1 @@\n+begin = True\n", 1, 0, created=True)
            case _:
                return None


async def opened(shell: Shell, rewinding: FakeRewinding | None = None) -> None:
    found = (point(3, "Fix the port", change("server.py", 1, 1)), point(2, "Explain it"), point(1, "Make it", HERS))
    desk = shell.active
    desk.services = replace(desk.services, rewinding=rewinding or Rewinding(found, changes=FILES))
    await shell.open(shell.engine.seed("Relay", messages=4))
    await shell.pilot.pause()
    await shell.type("/diff")
    await shell.pilot.press("enter")


HERS = change("new.py", 9, kind="+")


async def test_diff_shows_all_files_and_the_first_change(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await opened(shell)
        await shell.until(lambda: "port = 8080" in shell.text)
        rows = shell.text.splitlines()
        assert [" ".join(row.split()) for row in rows if "files" in row] == [
            "all of this conversation › 4 files +11 -2"
        ]
        assert next(row.split() for row in rows if "server.py" in row) == ["~", "server.py", "+2", "-2"]
        assert [row.split() for row in rows if "new.py" in row] == [["+", "new.py", "+9", "*"]]


async def test_brackets_go_from_change_to_change_and_on_to_the_next_file(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await opened(shell)
        await shell.until(lambda: "port = 8080" in shell.text)
        view = shell.top.query_one(DiffView)
        assert "host = 2" not in shell.text
        await shell.pilot.press("]")
        await shell.until(lambda: "host = 2" in shell.text)
        await shell.pilot.press("]")
        await shell.until(lambda: "begin = True" in shell.text)
        assert "changed since then by someone else" in shell.text
        assert view.scroll_y == 0


async def test_a_file_without_lines_says_why(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await opened(shell)
        await shell.until(lambda: "port = 8080" in shell.text)
        await shell.pilot.press("n", "n")
        await shell.until(lambda: "This file is not text, or is too large to show." in shell.text)
        await shell.pilot.press("n")
        await shell.until(lambda: "The mode changed from 644 to 755." in shell.text)


async def test_left_and_right_go_through_the_turns_that_changed_files(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await opened(shell)
        await shell.until(lambda: "port = 8080" in shell.text)
        await shell.pilot.press("right")
        await shell.until(lambda: "Fix the port" in shell.text)
        await shell.pilot.press("right")
        await shell.until(lambda: "begin = True" in shell.text)
        assert "Make it" in shell.text
        assert "Explain it" not in shell.text
        await shell.pilot.press("left", "left")
        await shell.until(lambda: "all of this conversation" in shell.text)


async def test_the_change_is_copied_as_a_patch(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await opened(shell)
        await shell.until(lambda: "port = 8080" in shell.text)
        await shell.pilot.press("c")
        await shell.until(lambda: shell.toasts)
        assert shell.toasts[0].startswith(f"Copied {len(TWO_CHANGES):,} characters")


async def test_a_change_is_quoted_in_the_message_to_ask_about_it(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await opened(shell)
        await shell.until(lambda: "port = 8080" in shell.text)
        await shell.pilot.press("]")
        await shell.until(lambda: "host = 2" in shell.text)
        await shell.pilot.press("a")
        await shell.until(lambda: shell.composer.has_focus)
        assert shell.composer.content == "About server.py, line 62:\n```diff\n-host = 1\n+host = 2\n```\n"
        await shell.type("why?")
        await shell.until(lambda: shell.composer.content.endswith("```\nwhy?"))


async def test_a_conversation_that_changed_nothing_says_so(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        await opened(shell, FakeRewinding((point(1, "Explain it"),)))
        await shell.until(lambda: "No files changed." in shell.text)
        await shell.pilot.press("n", "]", "c", "o", "escape")
        await shell.until(lambda: "No files changed." not in shell.text)
        assert shell.toasts == []


async def test_without_a_conversation_it_shows_what_git_has_not_committed(open_shell: OpenShell) -> None:
    async with open_shell() as shell:
        folder = shell.active.folder
        await PlainRunner().run(Command(("git", "init", "-q"), folder))
        (folder / "draft.py").write_text("begin = 1\n")
        desk = shell.active
        desk.services = replace(desk.services, runner=PlainRunner())
        await shell.type("/diff")
        await shell.pilot.press("enter")
        await shell.until(lambda: "begin = 1" in shell.text)
        assert "not committed in git" in shell.text
        await shell.pilot.press("left")
        await shell.until(lambda: "No files changed." in shell.text)
