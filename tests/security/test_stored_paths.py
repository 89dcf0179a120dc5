"""Weakness: what a database, lock, draft or file of the state holds is a name there, never a way elsewhere."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.ports.files import FileChange, FileKind, FileState
from engine.records import ConversationQuery
from engine.rewind.snapshots.capture import Restoring
from engine.rewind.snapshots.snapshot_store import Contents
from engine.rewind.snapshots.walk import set_mode
from engine.store import StorePaths, open_store
from engine.store.ownership import is_lock_held, remove_lock
from phoenix_tui.config.profile_files import ProfileFiles
from phoenix_tui.config.trust import TrustFile
from phoenix_tui.features.composing import parse_draft
from phoenix_tui.lifecycle.crash import find_left_open
from phoenix_tui.models.fetch import ModelFileError
from phoenix_tui.models.files import ModelFiles
from phoenix_tui.panes import saved_panes
from phoenix_tui.styles.user_themes import find_theme
from phoenix_tui.wiring.boards import DefaultModel
from tests.support.cli import phoenix_in
from tests.support.plain_runner import PlainRunner
from tests.support.program import program
from tests.support.storage import move, new_conversation, say

HOSTILE = {
    "climbs": "../victim", "absolute": "{folder}/victim", "NUL": "vic\0tim", "long": "v" * 5_000,
    "deep": "v/" * 2_500, "newline": "../vic\ntim", "empty": "", "dot": ".", "dots": "..", "device": "/dev/zero",
    "escape": "\x1b[2J../victim", "surrogate": "\udcff", "home": "~/victim", "link between": "link/victim",
}  # fmt: skip
VICTIMS = ("victim", "victim.lock", "victim.toml", "victim.md", "victim.gguf", "victim.json")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A state folder with a link out of it, and victims beside it."""
    for folder in ("state", "state/locks", "state/attachments", "state/themes", "state/profiles", "state/models"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "link").symlink_to(tmp_path)
    for holder in (tmp_path, tmp_path / "state"):
        for name in VICTIMS:
            (holder / name).write_text("background = '#ff0000'")
    return tmp_path


def hostile(kind: str, place: Path) -> str:
    return HOSTILE[kind].format(folder=place) if kind == "absolute" else HOSTILE[kind]


def untouched(place: Path) -> bool:
    return all(
        (folder / name).read_text() == "background = '#ff0000'" and stat.S_ISREG((folder / name).lstat().st_mode)
        for folder in (place, place / "state")
        for name in VICTIMS
    )


def stands(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long
        return False


def write(database: Path, sql: str, *values: object) -> None:
    """Write as anyone with access to the file can, with triggers and keys out of the way."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DROP TRIGGER IF EXISTS conversations_cwd_stays")
        connection.execute(sql, values)


def storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


@pytest.mark.parametrize("kind", HOSTILE)
async def test_ids_of_processes_and_images_in_rows_reach_no_file(kind: str, place: Path) -> None:
    text = storable(hostile(kind, place))
    paths = StorePaths.under(place / "state")
    first = await open_store(paths)
    one, other = new_conversation("one"), new_conversation("other")
    for each in (one, other):
        await first.create(each, 1.0)
        await first.commit(move(each.id, say("hello")))
    await first.close()
    write(paths.database, "INSERT INTO instances (id, pid, boot_id, started_at) VALUES (?, 1, '', 1.0)", text)
    write(paths.database, "UPDATE conversations SET owner_instance = ? WHERE id = ?", text, one.id)
    write(
        paths.database,
        """INSERT INTO attachments (id, conversation_id, sha256, path, media_type, width, height, bytes, orig_width,
        orig_height, orig_bytes, created_at) VALUES ('image', ?, ?, ?, 'image/png', 1, 1, 1, 1, 1, 1, 1.0)""",
        one.id, text, text,
    )  # fmt: skip
    again = await open_store(paths)
    await again.recover_all()
    assert len(await again.conversations(ConversationQuery())) == 2
    assert await again.attachments(["image", text]) == {}
    await again.take(one.id)
    await again.library.purge(one.id)
    await again.close()
    assert untouched(place)


@pytest.mark.parametrize("kind", HOSTILE)
async def test_a_stored_folder_that_is_none_is_no_place_to_work_in(kind: str, place: Path) -> None:
    text = storable(hostile(kind, place))
    paths = StorePaths.under(place / "state")
    store = await open_store(paths)
    one = new_conversation("one")
    await store.create(one, 1.0)
    await store.close()
    write(paths.database, "UPDATE conversations SET cwd = ? WHERE id = ?", text, one.id)
    again = await open_store(paths)
    (row,) = await again.conversations(ConversationQuery())
    record = await again.conversation(one.id)
    await again.close()
    assert record is not None
    for folder in (row.cwd, record.cwd):
        assert folder.is_absolute()
        assert ".." not in folder.parts
        assert "\0" not in str(folder)
        if not text.startswith("/") or "\0" in text:
            assert not stands(folder)


@pytest.mark.parametrize("kind", HOSTILE)
def test_names_from_settings_flags_and_files_stay_in_their_folders(kind: str, place: Path) -> None:
    text, state = hostile(kind, place), place / "state"
    assert find_theme(state / "themes", text) is None
    profiles = ProfileFiles(state / "profiles", TrustFile(state / "trust.json"))
    assert text not in {one.name for one in profiles.names(state)}
    models = ModelFiles(state / "models", PlainRunner(), DefaultModel(state / "config.toml"))
    for reference in (text, f"local/{text}"):
        assert not models.remove(reference)
        with pytest.raises(ModelFileError):
            models.use(reference)
    assert not is_lock_held(state / "locks", text)
    remove_lock(state / "locks", text)
    assert parse_draft(f"draft\n\x1eimages {text}").text.startswith("draft")
    assert untouched(place)


@pytest.mark.parametrize("kind", HOSTILE)
def test_marks_and_panes_name_conversations_and_no_files(kind: str, place: Path) -> None:
    text, state = storable(hostile(kind, place)), place / "state"
    (state / "open").mkdir()
    (state / "open" / "1.json").write_bytes(msgspec.json.encode({"conversation_id": text, "folder": str(place)}))
    assert find_left_open(state / "open", place).conversation_id == text
    focus = -(10**12)
    (state / saved_panes.FILE).write_bytes(msgspec.json.encode({str(place): {"ids": [text, "x"], "focus": focus}}))
    assert saved_panes.recall(state, place).ids == (text, "x")
    assert untouched(place)


async def test_a_screen_starts_with_hostile_marks_and_panes_and_says_nothing_odd(place: Path) -> None:
    phoenix = phoenix_in(place)
    ids = [storable(hostile(kind, place)) for kind in HOSTILE]
    folder = str(phoenix.cwd)
    (phoenix.home / "open").mkdir()
    for number, text in enumerate(ids):
        content = msgspec.json.encode({"conversation_id": text, "folder": folder})
        (phoenix.home / "open" / f"{number}.json").write_bytes(content)
    (phoenix.home / saved_panes.FILE).write_bytes(msgspec.json.encode({folder: {"ids": ids, "focus": -9}}))
    async with program(phoenix) as running:
        await running.ready()
        running.type(b"\r")  # conversations open at a crash are offered
        await running.send("still here")
        await running.until(lambda: "Internal error" not in running.text and "still here" in running.text)
        assert running.process.isalive()
    assert untouched(place)


@pytest.mark.parametrize("kind", ["climbs", "escape", "newline"])
async def test_a_hostile_name_on_the_command_line_is_one_sentence(kind: str, place: Path) -> None:
    phoenix = phoenix_in(place)
    for command in (("conversations", "show"), ("model", "remove")):
        ran = await phoenix.run(*command, hostile(kind, place))
        assert ran.code
        assert ran.err.count("\n") == 1, ran.err
        assert "\x1b" not in ran.err
    assert untouched(place)


FILE = FileState(FileKind.FILE, 0o4777, b"d" * 32, 4)
NAMES = st.sampled_from([b"..", b".", b"", b"victim", b"link", b"a", b"a\0b", b"b" * 300, b"\n", b"~", b"/"])


@given(parts=st.lists(NAMES, min_size=1, max_size=5), goes=st.booleans(), folder=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_no_stored_path_of_a_file_leads_out_of_its_folder(
    place: Path, parts: list[bytes], goes: bool, folder: bool
) -> None:
    root = place / "state"
    contents = Contents(place / "contents.db")
    contents.put({b"d" * 32: b"evil"})
    path = b"/".join(parts)
    for one in (path, b"/" + path, os.fsencode(place) + b"/" + path):
        state = FileState(FileKind.FOLDER, 0o777) if folder else FILE
        change = FileChange(one, state, None) if goes else FileChange(one, None, state)
        Restoring(contents, os.fsencode(root)).run((change,))
    contents.close()
    assert all((place / name).read_text() == "background = '#ff0000'" for name in VICTIMS)
    assert {path.name for path in place.iterdir()} <= {"state", "contents.db", *VICTIMS}


def test_a_mode_is_never_set_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").touch(mode=0o600)
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    (tmp_path / "closed").mkdir(mode=0o000)
    folder = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(OSError, match=r"link|support"):
        set_mode(folder, b"link", 0o777)
    set_mode(folder, b"closed", 0o750)
    os.close(folder)
    assert (tmp_path / "victim").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "closed").stat().st_mode & 0o777 == 0o750
