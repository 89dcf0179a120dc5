"""The user's own colours: good ones are a theme, bad ones name file, line and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from phoenix_tui.styles.user_themes import ThemeError, read_theme, theme_files


def test_a_theme_takes_what_it_does_not_name_from_its_base(tmp_path: Path) -> None:
    path = tmp_path / "dawn.toml"
    path.write_text('base = "phoenix-light"\nyou = "#123456"\nquiet = "#777"\nbackground = "#fffdf0"\n')
    theme = read_theme(path)
    assert (theme.name, theme.dark, theme.accent, theme.primary) == ("dawn", False, "#123456", "#0b62b8")
    assert theme.variables["text-muted"] == "#777"
    assert theme.variables["scrollbar-background"] == "#fffdf0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('you = "#123456"\nwork = "blue"\n', "dawn.toml:2: 'work' must be a colour such as \"#6cb2ff\", not 'blue'"),
        (
            '# mine\npurple = "#123456"\n',
            "dawn.toml:2: 'purple' is not a theme colour. Valid keys are base, background",
        ),
        ('base = "solarized"\n', "dawn.toml:1: 'base' must be one of phoenix-dark, phoenix-light"),
        ("you = \n", "is not valid TOML: Invalid value (at line 1"),
        ("you = 3\n", "must be a colour"),
    ],
)
def test_a_broken_theme_names_file_line_and_what_is_allowed(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "dawn.toml"
    path.write_text(text)
    with pytest.raises(ThemeError) as error:
        read_theme(path)
    assert expected in str(error.value)


def test_a_file_cannot_take_the_name_of_a_theme_of_phoenix(tmp_path: Path) -> None:
    path = tmp_path / "phoenix-dark.toml"
    path.write_text("")
    with pytest.raises(ThemeError, match="any of phoenix-dark"):
        read_theme(path)


def test_only_theme_files_are_looked_at(tmp_path: Path) -> None:
    for name in ("b.toml", "a.toml", ".swp.toml", "notes.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in theme_files(tmp_path)] == ["a.toml", "b.toml"]
    assert list(theme_files(tmp_path / "missing")) == []


def test_a_mistake_in_the_home_folder_is_named_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "themes" / "dawn.toml"
    path.parent.mkdir()
    path.write_text('you = "blue"\n')
    with pytest.raises(ThemeError) as caught:
        read_theme(path)
    assert str(caught.value).startswith("~/themes/dawn.toml:1: 'you' must be a colour")
