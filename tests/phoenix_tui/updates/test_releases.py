"""The newest release in the JSON of an index, whatever else that holds."""

from __future__ import annotations

import json

import pytest

from phoenix_tui.updates.update_check import find_newest, is_newer, read_release


def listed(*names: str, yanked: tuple[str, ...] = ()) -> bytes:
    files = [{"filename": name, "yanked": name in yanked, "url": "x", "hashes": {}} for name in names]
    return json.dumps({"meta": {"api-version": "1.1"}, "name": "phoenix-tui", "files": files}).encode()


def test_the_newest_final_release_of_any_file_counts() -> None:
    names = ("phoenix_tui-0.2.0-py3-none-any.whl", "phoenix_tui-0.10.0.tar.gz", "phoenix-tui-0.9.tar.gz")
    assert find_newest(listed(*names)) == "0.10.0"


def test_withdrawn_and_early_releases_and_other_projects_do_not_count() -> None:
    names = (
        "phoenix_tui-0.2.0.tar.gz",
        "phoenix_tui-0.3.0.tar.gz",
        "phoenix_tui-0.4.0rc1.tar.gz",
        "phoenix_tui-0.5.0.dev1-py3-none-any.whl",
        "phoenix_tui_extra-9.0.tar.gz",
        "evil-phoenix_tui-9.0.tar.gz",
        "phoenix_tui-9.0.exe",
    )
    assert find_newest(listed(*names, yanked=("phoenix_tui-0.3.0.tar.gz",))) == "0.2.0"


@pytest.mark.parametrize(
    "name",
    ["phoenix_tui-9\x1b[2J.tar.gz", "phoenix_tui-9.9\n9.tar.gz", "phoenix_tui-" + "9" * 5_000 + ".tar.gz",
     "phoenix_tui-" + "9." * 40 + "9.tar.gz", "phoenix_tui-\uff19.tar.gz", "", "phoenix_tui-.tar.gz"],
)  # fmt: skip
def test_hostile_versions_are_none(name: str) -> None:
    assert find_newest(listed(name)) == ""


@pytest.mark.parametrize(
    "content", [b"", b"<html>", b"[]", b"{}", b'{"files": 5}', b'{"files": [5]}', b"\xff", b"[" * 100_000]
)
def test_what_is_no_list_of_files_is_an_error(content: bytes) -> None:
    with pytest.raises(ValueError, match="no list of files"):
        find_newest(content)


@pytest.mark.parametrize(
    ("version", "than", "expected"),
    [
        ("0.2.0", "0.1.0", True),
        ("0.2", "0.2.0", False),
        ("0.2.0", "0.2", False),
        ("0.10", "0.9", True),
        ("0.1.0", "0.2.0", False),
        ("1.0rc1", "0.1", False),
        ("", "0.1", False),
        ("0.2.0", "0.2.0.dev1", False),
    ],
)
def test_releases_are_compared_by_their_numbers(version: str, than: str, expected: bool) -> None:
    assert is_newer(version, than) is expected


def test_zeros_at_the_end_do_not_count() -> None:
    assert read_release("1.0.0") == read_release("1")
