"""Weakness: a pipe, device or endless file in the place of one that Phoenix reads costs a sentence, never a wait."""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.ports import StorageError
from engine.providers.local.server import Resources, objection_to
from engine.rewind.snapshots.snapshot_store import Contents
from engine.store import StorePaths, open_store
from engine.store.ownership import is_lock_held, remove_lock
from phoenix_tui.cli.conversations import read_document
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.export import write_new
from phoenix_tui.cli.headless import read_images
from phoenix_tui.config.credentials import load_credentials
from phoenix_tui.config.instructions import Instructions
from phoenix_tui.config.load import set_value, user_layer
from phoenix_tui.config.rules import RuleFile
from phoenix_tui.config.settings import ConfigError
from phoenix_tui.config.trust import TrustFile, find_project
from phoenix_tui.features.composing import PromptHistory, parse_dropped_images, read_image
from phoenix_tui.features.use_log import UseLog
from phoenix_tui.keys.keymap_file import KeymapError, read_keymap
from phoenix_tui.lifecycle.crash import find_left_open
from phoenix_tui.models.accepted import AcceptedServers
from phoenix_tui.models.fetch import file_digest
from phoenix_tui.panes import saved_panes
from phoenix_tui.styles.user_themes import ThemeError, read_theme
from phoenix_tui.terminal import background
from tests.support.bounded import within
from tests.support.cli import phoenix_in
from tests.support.program import program
from tools.contract import ImageRejected

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pipes and devices as Linux has them")
SECONDS = 20.0
"""Seconds for work of milliseconds; it once took until the pipe had a writer."""
ID = "0" * 32
SAID = (OSError, CommandError, ConfigError, KeymapError, ThemeError, StorageError, ImageRejected, sqlite3.Error)


def stores(path: Path) -> None:
    asyncio.run(opened(path))


async def opened(path: Path) -> None:
    paths = StorePaths(path, path.parent / "attachments", path.parent / "locks", path.parent / "backups")
    await (await open_store(paths, patience=0.0)).close()


def read_lock(path: Path) -> None:
    is_lock_held(path.parent, ID)
    remove_lock(path.parent, ID)


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "settings": ("config.toml", user_layer),
    "settings that change": ("config.toml", lambda path: set_value(path, "theme", "x")),
    "keys": ("credentials.toml", lambda path: load_credentials(path, {})),
    "keymap": ("keymap.toml", read_keymap),
    "theme": ("own.toml", read_theme),
    "rules": ("rules.toml", lambda path: (RuleFile(path).rules(), RuleFile(path).trouble())),
    "trust": ("trust.json", lambda path: TrustFile(path).may_be_trusted(path.parent)),
    "servers": ("servers.json", lambda path: AcceptedServers(path).split([])),
    "own instructions": ("AGENTS.md", lambda path: Instructions(path.parent, TrustFile(path)).of(path.parent)),
    "project's instructions": ("AGENTS.md", lambda path: find_project(path.parent)),
    "history": (
        "history/any.jsonl",
        lambda path: PromptHistory(path.parent.parent, Path("/w")).everywhere(),
    ),
    "open marks": ("open/1.json", lambda path: find_left_open(path.parent, path.parent)),
    "panes": ("panes.json", lambda path: saved_panes.recall(path.parent, path)),
    "choices": ("used.json", lambda path: UseLog(path.parent).read()),
    "background": ("background.txt", lambda path: background.recall_light(path.parent)),
    "image by path": ("image.png", read_image),
    "image with -i": ("image.png", lambda path: read_images((str(path),))),
    "image dropped": ("image.png", lambda path: parse_dropped_images(str(path))),
    "import": ("conversation.json", lambda path: read_document(str(path))),
    "lock": (f"{ID}.lock", read_lock),
    "model": ("own.gguf", lambda path: objection_to(path, Resources(2**40, 2, 0.0))),
    "digest of a model": ("own.gguf", lambda path: file_digest(path, lambda: True)),
    "checkpoints": ("contents.db", lambda path: Contents(path).close()),
    "database": ("phoenix.db", stores),
    "export into it": ("export.md", lambda path: write_new(path, "text")),
}


def plant(kind: str, path: Path) -> None:
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path.name)
        case "folder":
            path.mkdir()
        case "link to itself":
            path.symlink_to(path)
        case "endless device":
            path.symlink_to("/dev/zero")
        case _:
            with path.open("wb") as file:
                file.truncate(50 * 2**30)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "link to itself", "endless device", "endless file"])
def test_what_is_no_file_is_one_sentence(kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, read = READERS[name]
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    monkeypatch.chdir(path.parent)
    if kind == "endless file" and name in {"history", "digest of a model"}:
        pytest.skip("a file of Phoenix's own that has no bound")
    if kind == "endless device" and name == "export into it":
        pytest.skip("a device that the user names is written to")
    plant(kind, path)
    try:
        within(SECONDS, lambda: read(path))
    except SAID as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        assert said
        assert "Errno" not in said
        assert "Traceback" not in said
    assert kind != "pipe" or not path.exists() or stat.S_ISFIFO(path.lstat().st_mode) or name in REPLACED


REPLACED = {"settings that change", "open marks", "lock"}
EVERYWHERE = (
    "keymap.toml", "trust.json", "rules.toml", "servers.json", "background.txt", "panes.json", "used.json",
    "AGENTS.md", "SOUL.md", "themes/own.toml", "profiles/own.md", "logs/phoenix.jsonl", "open/1.json",
    "logs/last_messages.jsonl", "checkpoints/contents.db",
)  # fmt: skip


async def test_pipes_in_every_place_hold_up_neither_screen_nor_script(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    for place in EVERYWHERE:
        (phoenix.home / place).parent.mkdir(exist_ok=True)
        os.mkfifo(phoenix.home / place)
    for place in ("AGENTS.md", ".envrc", "notes.txt"):
        os.mkfifo(phoenix.cwd / place)
    ran = await phoenix.run("-p", "read @notes.txt")
    assert ran.code in {0, 1}, ran.err
    assert "Traceback" not in ran.err
    async with program(phoenix) as running:
        await running.ready()
        await running.send("hello @notes.txt")
        await running.until(lambda: "hello" in running.text)


@pytest.mark.parametrize("place", ["config.toml", "credentials.toml"])
async def test_a_pipe_that_must_be_read_is_named_at_once(place: str, tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    os.mkfifo(phoenix.home / place)
    ran = await phoenix.run("-p", "hello")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"phoenix: {phoenix.home / place} cannot be read: it is not a regular file.\n"


async def test_a_pipe_that_the_shell_opened_is_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"\x89PNG")
    os.close(writing)
    assert read_images((f"/dev/fd/{reading}",)) == [(Path(f"/dev/fd/{reading}"), b"\x89PNG")]
    os.close(reading)
