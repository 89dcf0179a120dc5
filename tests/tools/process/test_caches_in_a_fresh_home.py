"""Caches of package managers in a home folder where no program ever ran."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.outside import folder_outside_temp
from tests.support.sandboxes import home, sandbox
from tools.process.scratch import make_caches


@pytest.fixture
def fresh() -> Iterator[Path]:
    """An empty home folder beside a workspace and a folder of programs."""
    with folder_outside_temp() as folder:
        for name in ("home", "work", "bin"):
            (folder / name).mkdir()
        with home(folder / "home"):
            yield folder


def program(folder: Path, name: str) -> None:
    (folder / "bin" / name).write_text("#!/bin/sh\n", "ascii")
    (folder / "bin" / name).chmod(0o755)


def made(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder / "home")) for path in (folder / "home").rglob("*"))


async def test_a_command_fills_a_cache_that_did_not_exist_and_the_real_one_stays_empty(fresh: Path) -> None:
    program(fresh, "npm")
    environment = {**os.environ, "PATH": f"{fresh}/bin:/usr/bin:/bin"}
    async with sandbox(fresh / "work", environment=environment) as box:
        script = "mkdir -p ~/.npm/_logs ~/.cache/x && echo made; mkdir -p ~/.other/x"
        said = await box.sh(script)
        assert said.startswith("made\n")
        assert "Read-only file system" in said
        assert await box.sh("ls ~/.npm ~/.cache") == f"{fresh}/home/.cache:\nx\n\n{fresh}/home/.npm:\n_logs\n"
    assert {".cache", ".npm"} <= set(made(fresh))
    assert not [name for name in made(fresh) if "/" in name and not name.startswith((".local", ".cargo", "go"))]


def test_folders_are_made_for_installed_programs_alone(fresh: Path) -> None:
    environment = {"PATH": f"{fresh}/bin"}
    make_caches(environment, fresh / "home")
    assert made(fresh) == [".cache"]
    program(fresh, "cargo")
    make_caches(environment, fresh / "home")
    assert made(fresh) == [".cache", ".cargo", ".cargo/git", ".cargo/registry"]


def test_a_folder_that_a_variable_names_is_made_below_the_home_folder_alone(fresh: Path) -> None:
    named = {"XDG_CACHE_HOME": f"{fresh}/home/var/cache", "UV_CACHE_DIR": f"{fresh}/elsewhere"}
    make_caches({"PATH": f"{fresh}/bin", **named, "PIP_CACHE_DIR": f"{fresh}/home/../up"}, fresh / "home")
    assert made(fresh) == [".cache", "var", "var/cache"]
    assert sorted(path.name for path in fresh.iterdir()) == ["bin", "home", "work"]


@pytest.mark.parametrize("target", ["work", "missing"])
def test_no_link_is_followed(fresh: Path, target: str) -> None:
    program(fresh, "cargo")
    (fresh / "home" / ".cargo").symlink_to(fresh / target)
    (fresh / "home" / ".cache").symlink_to(fresh / target)
    make_caches({"PATH": f"{fresh}/bin"}, fresh / "home")
    assert not list((fresh / "work").iterdir())
    assert not (fresh / "missing").exists()


def test_a_home_folder_of_another_user_stays_as_it_is(fresh: Path) -> None:
    if os.getuid():
        pytest.skip("only root can give a folder away")
    os.chown(fresh / "home", 12345, 12345)
    make_caches({"PATH": f"{fresh}/bin"}, fresh / "home")
    assert made(fresh) == []
