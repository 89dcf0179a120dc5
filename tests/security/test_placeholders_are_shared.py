"""SECURITY V5: placeholders keep paths closed with several Phoenix processes, and after one of them was killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.outside import folder_outside_temp
from tests.support.sandboxes import sandbox
from tests.support.waiting import poll
from tools.process.placeholders import Journal, Placeholders, is_left_over

CHILD = """
import sys, time
from pathlib import Path
from tools.process.placeholders import Placeholders
mine = Placeholders(Path(sys.argv[1]))
for path in sys.argv[2:]:
    assert mine.claim(Path(path), is_file=not path.endswith(".git"))
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def place() -> Iterator[Path]:
    with folder_outside_temp() as folder:
        (folder / "main").mkdir()
        (folder / "state").mkdir()
        yield folder


async def test_the_end_of_one_phoenix_opens_nothing_to_a_command_of_another(place: Path) -> None:
    """A mount on a removed file is unmounted everywhere: the path would be free for the other command."""
    main, journals = place / "main", place / "state" / "placeholders"
    for name in ("objects", "refs"):
        (main / ".git" / name).mkdir(parents=True)
    (main / ".git/HEAD").write_text("ref: refs/heads/main\n", "ascii")
    async with sandbox(main, journals=journals) as one, sandbox(main, journals=journals) as two:
        waits = "touch began; until [ -e go ]; do sleep 0.02; done"
        job = asyncio.create_task(
            one.sh(f"{waits}; rm -rf .git/hooks; mkdir .git/hooks; echo x > .git/hooks/pre-commit")
        )
        await poll((main / "began").exists)
        await two.sh("true")
        (main / "go").touch()
        await job
    assert sorted(path.name for path in main.iterdir()) == [".git", "began", "go"]
    assert not (main / ".git/hooks").exists()


def test_what_a_killed_phoenix_left_goes_with_the_next_start(place: Path) -> None:
    main, journals = place / "main", place / "state" / "placeholders"
    paths = [main / name for name in (".vscode", ".git", ".mcp.json")]
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(journals), *map(str, paths)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == b"ready\n"
    assert all(map(is_left_over, paths))
    living = Placeholders(journals)
    living.clear()
    assert all(map(is_left_over, paths)), "its process lives"
    assert living.claim(paths[0], is_file=True) == paths[0]
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    after = Placeholders(journals)
    after.clear()
    assert [path.exists() for path in paths] == [True, False, False], "one of them is needed"
    living.release([paths[0]])
    assert not paths[0].exists()
    for placeholders in (living, after):
        placeholders.close()
    assert [path.name for path in journals.iterdir()] == ["lock"]


@pytest.mark.parametrize("text", [b"+/etc/passwd\0", b"+" + b"x" * 10_000, b"\0\0-\0+", b"+relative\0", b"+/\0\xff\0"])
def test_no_journal_makes_phoenix_remove_what_is_no_placeholder(text: bytes, place: Path) -> None:
    journals = place / "state" / "placeholders"
    journals.mkdir()
    (journals / "1-x.claims").write_bytes(text)
    (place / "main" / "kept").write_text("x", "ascii")
    (journals / "2-x.claims").write_bytes(b"+" + os.fsencode(place / "main" / "kept") + b"\0")
    Placeholders(journals).clear()
    assert (place / "main" / "kept").exists()
    assert Path("/etc/passwd").exists()


@pytest.mark.parametrize("kind", ["pipe", "link", "file", "read-only"])
def test_a_folder_of_journals_that_is_none_holds_nothing_up(kind: str, place: Path) -> None:
    journals = place / "state" / "placeholders"
    if kind == "file":
        journals.write_text("x", "ascii")
    else:
        journals.mkdir()
    if kind == "pipe":
        os.mkfifo(journals / "lock")
        os.mkfifo(journals / "1-x.claims")
    if kind == "link":
        (journals / "lock").symlink_to(place / "elsewhere")
    if kind == "read-only":
        journals.chmod(0o500)
    placeholders = Placeholders(journals)
    placeholders.clear()
    path = place / "main" / ".vscode"
    assert placeholders.claim(path, is_file=True) == path
    placeholders.release([path])
    assert not path.exists()
    assert not (place / "elsewhere").exists()
    placeholders.close()


def test_a_process_without_a_state_folder_shares_nothing_and_makes_none(place: Path) -> None:
    journal = Journal(place / "nowhere" / "placeholders")
    with journal.alone():
        journal.add(place / "x")
    assert not (place / "nowhere").exists()
