"""write_file and patch: exact, all or nothing (FAULTS 32), never over what was not seen; diffs and formatters."""

from __future__ import annotations

import asyncio
import os
import random
import re
import select
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, field

from tests.support.tools import context_in, use
from tools.arguments import ToolFailure
from tools.contract import DiffDisplay, JsonObject, ToolContext, ToolInputError, ToolRequest
from tools.file_tools import Patch, ReadFile, WriteFile
from tools.files.content import FileEdit, Operation, apply_edits, diff_display
from tools.files.writing import CHANGED_SINCE, Formatted, ReadLedger


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def replace(old: str, new: str) -> JsonObject:
    return {"op": "replace", "old": old, "new": new}


async def patched(folder: Path, content: bytes, *edits: Mapping[str, object]) -> tuple[bytes, str]:
    """The bytes of a file after edits, and the text for the model."""
    path = folder / "a.txt"
    path.write_bytes(content)
    ledger = ReadLedger()
    await use(ReadFile(ledger), folder, path="a.txt")
    output = await use(Patch(ledger), folder, path="a.txt", edits=list(edits))
    return path.read_bytes(), output.text


@pytest.mark.parametrize(
    ("content", "edit", "after"),
    [
        (b"a\nb\nc\n", replace("b", "B"), b"a\nB\nc\n"),
        (b"a\nb\nc", replace("b\nc", "x"), b"a\nx"),
        (b"a\r\nb\r\n", replace("a\nb", "x\ny"), b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", replace("a\r\nb", "x\r\ny"), b"x\r\ny\r\n"),
        (b"a\r\nb\nc\n", replace("b", "B"), b"a\r\nB\nc\n"),
        (b"\xef\xbb\xbfa\n", replace("a", "b"), b"\xef\xbb\xbfb\n"),
        (b"caf\xe9 a\n", replace("a\n", "b\n"), b"caf\xe9 b\n"),
        (b"a", {"op": "append", "new": "b"}, b"a\nb"),
        (b"a\n", {"op": "append", "new": "b\n"}, b"a\nb\n"),
        (b"a\n", {"op": "prepend", "new": "b"}, b"b\na\n"),
        (b"\xef\xbb\xbfa\r\n", {"op": "prepend", "new": "b\n"}, b"\xef\xbb\xbfb\r\na\r\n"),
        (b"a\r\n", {"op": "overwrite", "new": "x\ny"}, b"x\r\ny"),
        (b"", {"op": "append", "new": "x"}, b"x"),
        # Blanks at line ends, and a common indentation, may differ when the exact text is not there.
        (b"if x:  \n\tgo()\n", replace("if x:\n\tgo()", "if y:\n\tgo()"), b"if y:\n\tgo()\n"),
        (b"class A:\n    def f():\n        pass\n", replace("def f():\n    pass", "def f():\n    go()\n\n    x"),
         b"class A:\n    def f():\n        go()\n\n        x\n"),
        (b"    a\n    b\n", replace("        a\n        b\n", "        c\n"), b"    c\n"),
        (b"a \nb\n", replace("a\nb\n", ""), b""),
        (b"x:  \ny\n", replace("x:\ny\n", "x:\n\ny\n\n"), b"x:\n\ny\n\n"),
    ],
)  # fmt: skip
async def test_an_edit_changes_what_it_says_and_nothing_else(
    tmp_path: Path, content: bytes, edit: dict[str, str], after: bytes
) -> None:
    assert (await patched(tmp_path, content, edit))[0] == after


@pytest.mark.parametrize(
    ("content", "edit", "sentence"),
    [
        (b"x\ny\nx\n", replace("x", "z"), "old occurs 2 times (lines 1, 3); add lines around it until it is unique."),
        (b"a \nb\na\t\nb\n", replace("a\nb\n", "z"),
         "old is not in the file exactly; apart from blanks it occurs 2 times (lines 1, 3). "
         "Copy the lines exactly as read_file shows them."),
        (b"def total(a):\n    return a\n", replace("def totals(b):\n", "z"),
         "old is not in the file. The closest lines start at 1:\ndef total(a):"),
        (b"abc\n", replace("something else", "z"),
         "old is not in the file. Nothing in it is similar; read it again with read_file."),
    ],
)  # fmt: skip
async def test_a_replacement_that_fits_not_exactly_one_place_is_refused(
    tmp_path: Path, content: bytes, edit: dict[str, str], sentence: str
) -> None:
    assert await patched(tmp_path, content, edit) == (content, sentence)


async def test_edits_build_on_each_other_and_count_as_one_change(tmp_path: Path) -> None:
    after, text = await patched(
        tmp_path, b"a\nb\n", replace("a", "x"), replace("x\nb", "y"), {"op": "append", "new": "z\n"}
    )
    assert (after, text) == (b"y\nz\n", "Changed a.txt: +2 -2 lines.")


async def test_one_failing_edit_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    after, text = await patched(tmp_path, b"a\nb\n", replace("a", "x"), replace("nowhere", "y"))
    assert after == b"a\nb\n"
    assert text.startswith("Edit 2 of 2: old is not in the file.")


async def test_a_new_file_comes_with_its_folders_and_a_diff(tmp_path: Path) -> None:
    output = await use(WriteFile(ReadLedger()), tmp_path, path="x/y/z.txt", content="one\ntwo\n")
    diff = "--- /dev/null\n+++ x/y/z.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    assert output.text == "Created x/y/z.txt: +2 lines."
    assert output.display == DiffDisplay("x/y/z.txt", diff, 2, 0, created=True)
    assert (tmp_path / "x/y/z.txt").read_text() == "one\ntwo\n"


async def test_the_request_shows_the_whole_diff_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    request = await WriteFile(ReadLedger()).request({"path": "a", "content": "two\n"}, tmp_path)
    diff = DiffDisplay("a", "--- a\n+++ a\n@@ -1 +1 @@\n-one\n+two\n", 1, 1)
    assert request == ToolRequest("a", (tmp_path / "a",), diff)
    await Patch(ReadLedger()).request({"path": "new/b", "edits": [{"op": "append", "new": "x"}]}, tmp_path)
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "one\n"


async def test_the_request_for_a_change_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    request = await Patch(ReadLedger()).request({"path": "a", "edits": [replace("zzz", "y")]}, tmp_path)
    assert "old is not in the file" in request.trouble
    request = await Patch(ReadLedger()).request({"path": "b", "edits": [replace("zzz", "y")]}, tmp_path)
    assert (request.trouble, request.preview) == ("b does not exist; create it with write_file.", None)


async def test_an_existing_file_must_be_read_first(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("precious\n")
    sentence = "a exists and was not read in this conversation; read it with read_file first."
    ledger = ReadLedger()
    assert (await use(WriteFile(ledger), tmp_path, path="a", content="x")).text == sentence
    assert (await use(Patch(ledger), tmp_path, path="a", edits=[{"op": "append", "new": "x"}])).text == sentence
    await use(ReadFile(ledger), tmp_path, path="a")
    assert (await use(WriteFile(ledger), tmp_path, "other", path="a", content="x")).text == sentence
    assert (tmp_path / "a").read_text() == "precious\n"


async def test_nobody_is_asked_to_allow_a_change_of_what_was_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("precious\n")
    ledger = ReadLedger()
    context = context_in(tmp_path)
    with pytest.raises(ToolInputError, match="a exists and was not read"):
        await WriteFile(ledger).foresee({"path": "a", "content": "x"}, context)
    with pytest.raises(ToolInputError, match="a exists and was not read"):
        await Patch(ledger).foresee({"path": "a", "edits": [{"op": "append", "new": "x"}]}, context)
    await use(ReadFile(ledger), tmp_path, path="a")
    await WriteFile(ledger).foresee({"path": "a", "content": "x"}, context)
    await WriteFile(ledger).foresee({"path": "new", "content": "x"}, context)
    (tmp_path / "a").write_text("changed by somebody\n")
    with pytest.raises(ToolInputError, match="a was changed by a command or another program"):
        await WriteFile(ledger).foresee({"path": "a", "content": "x"}, context)


async def test_what_another_conversation_changed_is_not_overwritten_and_it_is_named(tmp_path: Path) -> None:
    ledger = ReadLedger()
    (tmp_path / "a").write_text("one\n")
    await use(ReadFile(ledger), tmp_path, "first", path="a")
    await use(ReadFile(ledger), tmp_path, "second", path="a")
    assert not (await use(WriteFile(ledger), tmp_path, "second", path="a", content="two\n")).is_error
    output = await use(WriteFile(ledger), tmp_path, "first", path="a", content="three\n")
    assert output.text == "a was changed by conversation second since it was last read; read it again."
    assert (tmp_path / "a").read_text() == "two\n"
    await use(ReadFile(ledger), tmp_path, "first", path="a")
    assert not (await use(WriteFile(ledger), tmp_path, "first", path="a", content="three\n")).is_error


async def test_a_change_from_outside_is_noticed_and_a_mere_touch_is_not(tmp_path: Path) -> None:
    ledger = ReadLedger()
    path = tmp_path / "a"
    path.write_text("one\n")
    await use(ReadFile(ledger), tmp_path, path="a")
    os.utime(path, (1, 1))
    assert not (await use(WriteFile(ledger), tmp_path, path="a", content="two\n")).is_error
    path.write_text("2wo\n")
    output = await use(Patch(ledger), tmp_path, path="a", edits=[{"op": "append", "new": "x"}])
    assert output.text == "a was changed by a command or another program since it was last read; read it again."


async def test_a_conversation_may_change_what_it_wrote_until_it_is_forgotten(tmp_path: Path) -> None:
    ledger = ReadLedger()
    await use(WriteFile(ledger), tmp_path, path="a", content="one\n")
    assert not (await use(Patch(ledger), tmp_path, path="a", edits=[replace("one", "two")])).is_error
    ledger.forget("one")
    assert (await use(Patch(ledger), tmp_path, path="a", edits=[replace("two", "three")])).is_error


async def test_conversations_take_turns_on_one_file(tmp_path: Path) -> None:
    ledger = ReadLedger()
    (tmp_path / "a").write_text("start\n")
    conversations = [f"c{number}" for number in range(8)]

    async def add(name: str) -> None:
        for _ in range(50):
            await use(ReadFile(ledger), tmp_path, name, path="a")
            output = await use(Patch(ledger), tmp_path, name, path="a", edits=[{"op": "append", "new": f"{name}\n"}])
            if not output.is_error:
                return
        raise AssertionError(output.text)

    await asyncio.gather(*map(add, conversations))
    assert sorted((tmp_path / "a").read_text().split()) == [*conversations, "start"]


async def test_a_cancelled_write_ends_whole_before_the_lock_is_free(tmp_path: Path) -> None:
    ledger = ReadLedger()
    writing = asyncio.create_task(
        WriteFile(ledger).run({"path": "a", "content": "x" * 5_000_000}, context_in(tmp_path))
    )
    for _ in range(1000):
        if ledger.lock(tmp_path / "a").locked():
            break
        await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert not ledger.lock(tmp_path / "a").locked()
    assert set(names(tmp_path)) <= {"a"}


async def test_a_whole_rewrite_keeps_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    path, ledger = tmp_path / "a", ReadLedger()
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    await use(ReadFile(ledger), tmp_path, path="a")
    output = await use(WriteFile(ledger), tmp_path, path="a", content="one\r\n2\n")
    assert output.text == "Changed a: +1 -1 lines."
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\n2\r\n"


async def test_the_same_content_is_not_written_again(tmp_path: Path) -> None:
    ledger = ReadLedger()
    await use(WriteFile(ledger), tmp_path, path="a", content="x")
    before = (tmp_path / "a").stat()
    output = await use(WriteFile(ledger), tmp_path, path="a", content="x")
    assert output.text == "a already has this content; nothing was written."
    assert (tmp_path / "a").stat().st_ino == before.st_ino


async def test_what_is_no_text_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "bin").write_bytes(b"a\0b")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    write = WriteFile(ReadLedger())
    assert (await use(write, tmp_path, path="bin", content="x")).text == (
        "bin is a binary file (3 bytes); it can only be changed with bash."
    )
    assert (await use(write, tmp_path, path="folder", content="x")).text == (
        "folder is a folder, not a file; use list_files."
    )
    assert (await use(write, tmp_path, path="pipe", content="x")).text == (
        "pipe is not a regular file but a pipe, device or socket."
    )
    assert (await use(write, tmp_path, path="bin/x", content="x")).text == ("A part of the path bin/x is not a folder.")


async def test_many_that_change_one_file_at_once_lose_nothing_and_the_losers_hear_who_wrote(tmp_path: Path) -> None:
    ledger, path = ReadLedger(), tmp_path / "list"
    told: list[str] = []
    path.write_text("begin\n")

    async def adds(name: str) -> None:
        edits = [{"op": "append", "new": f"{name}\n"}]
        while True:
            await use(ReadFile(ledger), tmp_path, name, path="list")
            output = await use(Patch(ledger), tmp_path, name, f"sub-agent '{name}'", path="list", edits=edits)
            if not output.is_error:
                return
            told.append(output.text)

    agents = [f"agent{number}" for number in range(10)]
    await asyncio.gather(*map(adds, agents))
    assert sorted(path.read_text().split()) == sorted(["begin", *agents])
    assert told, "they met"
    words = re.compile(r"list was changed by sub-agent 'agent\d' since it was last read; read it again\.")
    assert [text for text in told if not words.fullmatch(text)] == []


async def test_a_file_that_another_agent_made_is_not_written_over_and_it_is_named(tmp_path: Path) -> None:
    ledger = ReadLedger()
    await use(WriteFile(ledger), tmp_path, "a", "sub-agent 'docs'", path="new.md", content="mine")
    output = await use(WriteFile(ledger), tmp_path, "b", path="new.md", content="yours")
    assert output.text == (
        "new.md exists, written by sub-agent 'docs', and was not read in this conversation; "
        "read it with read_file first."
    )
    assert (tmp_path / "new.md").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        ("x\xa0= 1  # \u201cone\u201d\n", 'x = 1  # "one"', 'x = 2  # "one"', "x\xa0= 2  # \u201cone\u201d\n"),
        ("It\u2019s fine\u2026 now\n", "It's fine... now", "It's good... now", "It\u2019s good\u2026 now\n"),
        ("a \u2013 b\n", "a - b", "a - c", "a \u2013 c\n"),
        ("cafe\u0301 bar\n", "caf\xe9 bar", "caf\xe9 baz", "cafe\u0301 baz\n"),
        ("caf\xe9 bar\n", "cafe\u0301 bar", "cafe\u0301 baz", "caf\xe9 baz\n"),
        ("a\u200bb = 1\nc\xa0d\n", "ab = 1\nc d", "ab = 2\nc d", "a\u200bb = 2\nc\xa0d\n"),
        ("x = 1\n", "x\xa0= 1", "x = 2", "x = 2\n"),
    ],
)
def test_signs_that_look_alike_are_matched_and_those_of_the_file_stay(
    text: str, old: str, new: str, after: str
) -> None:
    assert apply_edits(text, [FileEdit(Operation.REPLACE, new, old)]) == after


def test_two_places_that_look_alike_are_named_with_their_signs() -> None:
    with pytest.raises(ToolFailure, match=r"no-break space \(U\+00A0\).*more than once \(lines 1, 2\)"):
        apply_edits("x\xa0= 1\nx\u2009= 1\n", [FileEdit(Operation.REPLACE, "x = 2", "x = 1")])


def test_repeated_lines_are_looked_for_as_one_text() -> None:
    lines, wanted = "\n" * 200_000, "\n".join([" "] * 50_000 + ["end"])
    with pytest.raises(ToolFailure, match="old is not in the file"):
        apply_edits(lines, [FileEdit(Operation.REPLACE, "x", wanted)])
    with pytest.raises(ToolFailure, match=r"more than 5 times \(lines 1, 2, 3, 4, 5\)"):
        apply_edits("a  \n" * 50, [FileEdit(Operation.REPLACE, "x", " a")])


SIZE = 300_000
WRITER = """
import sys
from pathlib import Path
from tools.files.writing import replace_file
from tools.files.location import Location
location = Location(Path(sys.argv[1]), ("target",), "target")
print("ready", flush=True)
while True:
    for letter in b"ab":
        replace_file(location, bytes([letter]) * int(sys.argv[2]))
"""


@pytest.mark.slow
def test_kill_9_leaves_old_or_new_never_a_mixture(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"a" * SIZE)
    target.chmod(0o754)
    link.symlink_to("target")
    chance = random.Random(7)
    seen: set[bytes] = set()
    for _ in range(25):
        _write_until_killed(tmp_path, chance.uniform(0, 0.03))
        content = target.read_bytes()
        assert content in {b"a" * SIZE, b"b" * SIZE}
        assert stat.S_IMODE(target.stat().st_mode) == 0o754
        assert link.is_symlink()
        seen.add(content[:1])
    assert seen == {b"a", b"b"}


def _write_until_killed(folder: Path, seconds: float) -> None:
    argv = [sys.executable, "-c", WRITER, str(folder), str(SIZE)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(argv, cwd=root, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        # Nothing more is printed, so this waits as long as the writer is to live.
        select.select([writer.stdout], [], [], seconds)
        writer.kill()


TEXT = st.lists(st.sampled_from(["a", "b", "c", "", "dd"]), max_size=14).map("\n".join)


@given(TEXT, TEXT)
def test_added_and_removed_are_the_marked_lines(old: str, new: str) -> None:
    display = diff_display("x", old, new)
    lines = display.diff.split("\n")[2:]
    assert display.added == sum(line.startswith("+") for line in lines)
    assert display.removed == sum(line.startswith("-") for line in lines)
    assert (display.added == display.removed == 0) == (old == new)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git apply to check against")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("a\n", "a"),
        ("a", "a\nb"),
        ("\n" * 30, "x" + "\n" * 30 + "y\n"),
        ("".join(f"{n}\n" for n in range(100)), "".join(f"{n}\n" for n in range(100) if n not in {3, 9, 50, 99})),
        ("".join(f"{n}\n" for n in range(9000)), "".join(f"{n * 2}\n" for n in range(9000))),
    ],
)
def test_git_can_apply_a_diff(tmp_path: Path, old: str, new: str) -> None:
    (tmp_path / "x").write_text(old)
    patch = diff_display("x", old, new).diff
    subprocess.run(["git", "apply", "-p0", "-"], cwd=tmp_path, input=patch.encode(), check=True, capture_output=True)
    assert (tmp_path / "x").read_text() == new


def test_a_small_change_in_a_large_file_is_found_quickly() -> None:
    old = "".join(f"line {number}\n" for number in range(200_000))
    start = time.process_time()
    display = diff_display("x", old, old.replace("line 777\n", "changed\n"))
    assert (display.added, display.removed) == (1, 1)
    assert time.process_time() - start < 2.0


def test_bytes_that_are_no_text_show_as_replacement_characters() -> None:
    assert diff_display("x", "a\udcff\n", "b\n").diff == "--- x\n+++ x\n@@ -1 +1 @@\n-a\ufffd\n+b\n"


class Scripted(Struct):
    """A formatter that knows its answer."""

    answer: Formatted | None
    writes: str = ""
    """Text that another program writes meanwhile."""
    asked: list[str] = field(default_factory=list[str])

    async def format(self, path: Path, text: str, context: ToolContext) -> Formatted | None:
        self.asked.append(text)
        if self.writes:
            await asyncio.to_thread(path.write_text, self.writes)
        return self.answer


async def test_the_change_of_a_formatter_is_a_part_of_the_edit_and_is_shown_to_the_model(tmp_path: Path) -> None:
    ledger, formatter = ReadLedger(), Scripted(Formatted("neat", "a = 1\nb = 2\n"))
    output = await use(WriteFile(ledger, formatter), tmp_path, path="a.py", content="a=1\nb = 2\n")
    assert (tmp_path / "a.py").read_text() == "a = 1\nb = 2\n"
    assert output.text == (
        "Created a.py: +2 lines.\n[Formatter neat changed it after your edit:\n@@ -1,2 +1,2 @@\n-a=1\n+a = 1\n b = 2\n]"
    )
    assert isinstance(output.display, DiffDisplay)
    assert (output.display.added, output.display.removed, output.display.created) == (2, 0, True)
    assert "+a = 1" in output.display.diff
    assert "a=1" not in output.display.diff
    formatter.answer = Formatted("neat", "a = 1\nb = 3\n")
    edits = [{"op": "replace", "old": "b = 2", "new": "b = 3"}]
    again = await use(Patch(ledger, formatter), tmp_path, path="a.py", edits=edits)  # the conversation knows the file
    assert (again.is_error, again.text) == (False, "Changed a.py: +1 -1 lines.")
    assert formatter.asked == ["a=1\nb = 2\n", "a = 1\nb = 3\n"]


async def test_line_ends_of_the_file_stay(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"old\r\n")
    ledger = ReadLedger()
    await use(ReadFile(ledger), tmp_path, path="a.py")
    formatter = Scripted(Formatted("neat", "b\r\nc\r\n"))
    await use(WriteFile(ledger, formatter), tmp_path, path="a.py", content="b\nc")
    assert formatter.asked == ["b\nc"]
    assert (tmp_path / "a.py").read_bytes() == b"b\r\nc\r\n"


async def test_a_formatter_that_fails_leaves_the_edit_and_says_why(tmp_path: Path) -> None:
    formatter = Scripted(Formatted("neat", trouble="exit code 2: bad syntax"))
    output = await use(WriteFile(ReadLedger(), formatter), tmp_path, path="a.py", content="a=(\n")
    assert (tmp_path / "a.py").read_text() == "a=(\n"
    assert not output.is_error
    assert output.text.endswith("\n[Formatter neat: exit code 2: bad syntax; the file is as you wrote it.]")


async def test_what_another_program_wrote_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    formatter = Scripted(Formatted("neat", "a = 1\n"), writes="theirs\n")
    output = await use(WriteFile(ReadLedger(), formatter), tmp_path, path="a.py", content="a=1\n")
    assert (tmp_path / "a.py").read_text() == "theirs\n"
    assert CHANGED_SINCE in output.text or "was changed by" in output.text


async def test_without_a_change_or_a_fitting_formatter_nothing_is_added(tmp_path: Path) -> None:
    ledger, formatter = ReadLedger(), Scripted(None)
    output = await use(WriteFile(ledger, formatter), tmp_path, path="a.py", content="a = 1\n")
    assert output.text == "Created a.py: +1 lines."
    output = await use(WriteFile(ledger, formatter), tmp_path, path="a.py", content="a = 1\n")
    assert output.text == "a.py already has this content; nothing was written."
    assert len(formatter.asked) == 1


async def test_of_a_large_change_the_model_reads_a_part(tmp_path: Path) -> None:
    text = "".join(f"x{number}=1\n" for number in range(2_000))
    formatter = Scripted(Formatted("neat", text.replace("=", " = ")))
    output = await use(WriteFile(ReadLedger(), formatter), tmp_path, path="a.py", content=text)
    assert len(output.text) < 4_000
    assert output.text.endswith("… the rest is left out; read the file\n]")
