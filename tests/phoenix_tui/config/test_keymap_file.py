"""`keymap.toml`: possible bindings, and messages about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from phoenix_tui.keys.keymap_file import KeymapError, read_keymap


def read(folder: Path, text: str) -> dict[str, str]:
    path = folder / "keymap.toml"
    path.write_text(text)
    return read_keymap(path)


@pytest.mark.parametrize(
    ("written", "bound"),
    [
        ("f9", "f9"),
        ("Ctrl+X, f8", "ctrl+x,f8"),
        ("alt+;", "alt+semicolon"),
        ("ctrl+é", "ctrl+é"),
        ("none", "none"),
        ("shift+f3", "shift+f3"),
    ],
)
def test_keys_are_read_as_people_write_them(tmp_path: Path, written: str, bound: str) -> None:
    assert read(tmp_path, f'new = "{written}"\n') == {"new": bound}


def test_two_actions_may_change_places(tmp_path: Path) -> None:
    assert read(tmp_path, 'new = "ctrl+l"\nlist = "ctrl+n"\n') == {"new": "ctrl+l", "list": "ctrl+n"}


def test_no_file_changes_nothing(tmp_path: Path) -> None:
    assert read_keymap(tmp_path / "keymap.toml") == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('# mine\nnwe = "f9"\n', 'keymap.toml:2: "nwe" is not an action. Similar: new'),
        ("new = 3\n", 'keymap.toml:1: "new" must be text such as'),
        ('new = "ctrl+foo"\n', 'keymap.toml:1: "ctrl+foo" is not a key. Keys are letters'),
        ('new = "ctrl+q"\n', 'keymap.toml:1: Ctrl+Q is used for both "quit" and "new"'),
        ('new = "f9\n', "is not valid TOML"),
    ],
)
def test_a_broken_keymap_names_file_line_and_what_is_allowed(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(KeymapError) as error:
        read(tmp_path, text)
    assert expected in str(error.value)
