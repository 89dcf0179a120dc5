"""The package index comes from a setting, or from the configuration of pip and uv; none is built in."""

from __future__ import annotations

from pathlib import Path

import pytest

from phoenix_tui.updates.update_check import NONE, ConfigurationPlaces, PackageIndex, find_index

INDEX = "https://packages.example.com/simple"


def found(tmp_path: Path, environment: dict[str, str], setting: str = "", *, uv: bool = False) -> PackageIndex:
    places = ConfigurationPlaces(tmp_path / "home", tmp_path / "prefix", tmp_path / "etc")
    return find_index(setting, environment, places, uv=uv)


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_without_any_configuration_there_is_none(tmp_path: Path) -> None:
    assert found(tmp_path, {}) == PackageIndex(why_not=NONE)


def test_the_setting_comes_first(tmp_path: Path) -> None:
    there = found(tmp_path, {"PIP_INDEX_URL": "https://other.example/simple"}, f"{INDEX}/")
    assert there == PackageIndex(INDEX, "update_index")


@pytest.mark.parametrize(
    ("environment", "uv", "expected"),
    [
        ({"PIP_INDEX_URL": INDEX}, False, PackageIndex(INDEX, "PIP_INDEX_URL")),
        ({"PIP_INDEX_URL": INDEX}, True, PackageIndex(INDEX, "PIP_INDEX_URL")),
        ({"UV_INDEX_URL": INDEX}, False, PackageIndex(INDEX, "UV_INDEX_URL")),
        (
            {"UV_DEFAULT_INDEX": INDEX, "UV_INDEX_URL": "https://b.example"},
            True,
            PackageIndex(INDEX, "UV_DEFAULT_INDEX"),
        ),
        ({"UV_DEFAULT_INDEX": f"my-name={INDEX}"}, True, PackageIndex(INDEX, "UV_DEFAULT_INDEX")),
        ({"UV_INDEX_URL": "https://b.example", "PIP_INDEX_URL": INDEX}, False, PackageIndex(INDEX, "PIP_INDEX_URL")),
        ({"UV_INDEX_URL": INDEX, "PIP_INDEX_URL": "https://b.example"}, True, PackageIndex(INDEX, "UV_INDEX_URL")),
    ],
)
def test_variables_count_in_the_order_of_the_installer(
    tmp_path: Path, environment: dict[str, str], uv: bool, expected: PackageIndex
) -> None:
    assert found(tmp_path, environment, uv=uv) == expected


@pytest.mark.parametrize(
    ("place", "text", "uv"),
    [
        ("home/.config/pip/pip.conf", f"[global]\nindex-url = {INDEX}\n", False),
        ("home/.pip/pip.conf", f"[install]\nindex-url={INDEX}\n[global]\nindex-url=https://b.example\n", False),
        ("prefix/pip.conf", f"[global]\nindex-url = {INDEX}\ntimeout = %(x)s\n", False),
        ("etc/pip.conf", f"[global]\nindex-url = {INDEX}\n", False),
        ("home/.config/uv/uv.toml", f'index-url = "{INDEX}"\n', True),
        ("home/.config/uv/uv.toml", f'[pip]\nindex-url = "{INDEX}"\n', True),
        ("etc/uv/uv.toml", f'[[index]]\nurl = "https://b.example"\n[[index]]\nurl = "{INDEX}"\ndefault = true\n', True),
    ],
)
def test_files_of_pip_and_uv_are_read(tmp_path: Path, place: str, text: str, uv: bool) -> None:
    where = write(tmp_path / place, text)
    assert found(tmp_path, {}, uv=uv) == PackageIndex(INDEX, where)


def test_a_named_file_of_pip_comes_before_the_others_and_dev_null_stands_for_none(tmp_path: Path) -> None:
    write(tmp_path / "home/.config/pip/pip.conf", "[global]\nindex-url = https://b.example/\n")
    named = write(tmp_path / "mine.conf", f"[global]\nindex-url = {INDEX}\n")
    assert found(tmp_path, {"PIP_CONFIG_FILE": named}) == PackageIndex(INDEX, named)
    assert found(tmp_path, {"PIP_CONFIG_FILE": "/dev/null"}).why_not == NONE


@pytest.mark.parametrize("content", ["\0", "no section", "[global\n", "[global]\nindex-url\n", "x" * 2_000_000])
def test_a_broken_file_is_passed_over(tmp_path: Path, content: str) -> None:
    write(tmp_path / "home/.config/pip/pip.conf", content)
    write(tmp_path / "home/.config/uv/uv.toml", content)
    assert found(tmp_path, {}).why_not == NONE


@pytest.mark.parametrize("name", ["PIP_NO_INDEX", "UV_NO_INDEX", "UV_OFFLINE"])
def test_a_machine_that_is_kept_off_the_index_asks_none(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, {name: "1"}, INDEX).why_not == f"{name} keeps programs off the package index"
    assert found(tmp_path, {name: "false"}, INDEX).url == INDEX


@pytest.mark.parametrize(
    "url",
    ["file:///srv/simple", "ftp://x/simple", "https://", "https://[", "https://x:99999/", "https://x/a b", "https://x/?q",
     "https://x/\u00e4", "https://x/" + "a" * 1_000, "x"],
)  # fmt: skip
def test_what_is_no_address_of_the_web_is_named_and_not_asked(tmp_path: Path, url: str) -> None:
    there = found(tmp_path, {"PIP_INDEX_URL": url})
    assert (there.url, there.why_not) == ("", "the index of PIP_INDEX_URL is no http:// or https:// address")


def test_an_index_with_a_password_is_not_asked_and_not_shown(tmp_path: Path) -> None:
    there = found(tmp_path, {"PIP_INDEX_URL": "https://me:secret@packages.example.com/simple"})
    assert there.url == ""
    assert "secret" not in there.why_not
    assert there.why_not == "the index of PIP_INDEX_URL needs a user name, which is not sent"
