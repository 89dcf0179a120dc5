"""Weakness: checkpoints kept the contents of secret files, deleted ones too; now none of them is ever copied."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event

import pytest

from engine.rewind.snapshots.capture import Capture
from engine.rewind.snapshots.snapshot_store import Contents, LookAt
from engine.rewind.snapshots.walk import Walker
from tools.files.protected import begins_as_key, looks_secret

KEY = b"-----BEGIN OPENSSH PRIVATE KEY-----\nMARKER-OF-A-KEY\n"
SECRET = {
    ".env": b"TOKEN=MARKER-OF-A-KEY",
    ".env.production": b"MARKER-OF-A-KEY",
    "prod.env": b"MARKER-OF-A-KEY",
    "deep/er/.ENV": b"MARKER-OF-A-KEY",
    ".ssh/config": b"MARKER-OF-A-KEY",
    "home/.aws/credentials": b"MARKER-OF-A-KEY",
    ".netrc": b"MARKER-OF-A-KEY",
    "id_ed25519": KEY,
    "notes.txt": KEY,
    "tls/server.key": b"MARKER-OF-A-KEY",
    "credentials.toml": b"MARKER-OF-A-KEY",
    "secrets.yaml": b"MARKER-OF-A-KEY",
}
PLAIN = {
    ".env.example": b"TOKEN=",
    "keyboard.py": b"x = 1",
    "environment.md": b"# Words",
    "tests/test_key.py": b"y = 2",
}


def look_at(folder: Path, file: Path) -> tuple[LookAt, Contents]:
    contents = Contents(file)
    root = os.fsencode(folder)
    return Capture(contents).take(root, Walker(root, frozenset(), Event()).walk()), contents


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    for name, content in (SECRET | PLAIN).items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return made


def test_no_content_of_a_file_with_keys_is_copied_and_it_is_named_as_not_kept(folder: Path, tmp_path: Path) -> None:
    look, contents = look_at(folder, tmp_path / "contents.db")
    contents.close()
    kept = {os.fsdecode(path) for path, seen in look.entries.items() if seen.state.kept}
    assert not kept & SECRET.keys()
    assert kept >= PLAIN.keys()
    for file in tmp_path.glob("contents.db*"):
        assert b"MARKER-OF-A-KEY" not in file.read_bytes()


@pytest.mark.parametrize("name", [name for name in SECRET if name != "notes.txt"])
def test_a_name_says_that_it_holds_keys(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize("name", PLAIN)
def test_an_ordinary_name_does_not(name: str) -> None:
    assert not looks_secret(name)


@pytest.mark.parametrize(
    "content", [KEY, b"\n" + KEY, b"-----BEGIN PRIVATE KEY-----", b"-----BEGIN RSA PRIVATE KEY-----"]
)
def test_the_first_bytes_tell_a_private_key(content: bytes) -> None:
    assert begins_as_key(content)
    assert not begins_as_key(b"-----BEGIN CERTIFICATE-----")
