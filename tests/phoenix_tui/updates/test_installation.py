"""The program that installed Phoenix, by the marks that each of them leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from phoenix_tui.updates.update_check import FROM_FOLDER, UNKNOWN, Installation, find_installation


def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **files: str) -> None:
    folder = tmp_path / "site" / "phoenix_tui-0.1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: phoenix-tui\nVersion: 0.1.0\n")
    for name, text in files.items():
        (folder / name.replace("_json", ".json")).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


@pytest.mark.parametrize(
    ("mark", "installer", "expected"),
    [
        ("uv-receipt.toml", "uv", Installation("uv tool", "uv tool upgrade phoenix-tui")),
        ("pipx_metadata.json", "pip", Installation("pipx", "pipx upgrade phoenix-tui")),
        ("", "pip\n", Installation("pip", "'/my env/python' -m pip install --upgrade phoenix-tui")),
        ("", "uv", Installation("uv pip", "uv pip install --python '/my env/python' --upgrade phoenix-tui")),
        ("", "conda", Installation(why_not=UNKNOWN)),
        ("", "", Installation(why_not=UNKNOWN)),
    ],
)
def test_each_installer_has_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str, installer: str, expected: Installation
) -> None:
    install(tmp_path, monkeypatch, INSTALLER=installer)
    if mark:
        (tmp_path / mark).write_text("")
    assert find_installation(tmp_path, "/my env/python") == expected


def test_an_installation_from_a_folder_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, INSTALLER="pip", direct_url_json='{"url": "file:///x", "dir_info": {}}')
    assert find_installation(tmp_path) == Installation(why_not=FROM_FOLDER)
