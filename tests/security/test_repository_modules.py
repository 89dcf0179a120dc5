"""SECURITY V1: a repository that shadows every module name has nothing of it imported by any process of Phoenix."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.support.cli import ROOT, Phoenix
from tests.support.git_repositories import empty_repository
from tests.support.loopback_anthropic import TINY_PNG
from tests.support.outside import folder_outside_temp
from tests.support.program import program
from tests.support.serving import serving, tab

SOURCE = "import os\nwith open({mark!r}, 'a') as mark: mark.write(__name__ + '\\n')\n"
OWN = ("engine", "tools", "tests")
PYTHONS = ("sitecustomize", "usercustomize", "conftest", "xllamacpp", "keyring", "textual_image", "psutil")
"""Modules that may be missing, so that a planted one is the only one there is."""
BOOT = "import sys; from phoenix_tui.__main__ import main; sys.exit(main())"


@functools.cache
def shadowed() -> set[str]:
    """Every top-level name of the standard library and of what is installed."""
    installed = {name for name in packages_distributions() if name.isidentifier()}
    return {name for name in (*sys.stdlib_module_names, *installed, *OWN, *PYTHONS) if name != "phoenix_tui"}


@functools.cache
def early() -> set[str]:
    """Modules that Python itself has loaded before a program's first line, for `python -m` those that start it."""
    loaded = subprocess.run(
        [sys.executable, "-c", "import runpy, sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in loaded.stdout.split()} | {"sitecustomize", "usercustomize"}


@pytest.fixture
def repository() -> Iterator[Path]:
    """A folder that is not temporary, with a hostile repository and the mark beside it.

    What Python loads of the working directory before the first line of a program is out of our hands, so it is not
    planted; the installed `phoenix`, unlike `python -m`, lets it load nothing.
    """
    with folder_outside_temp() as place:
        work = place / "work"
        empty_repository(work)
        (place / "home").mkdir()
        for name in shadowed() - early():
            (work / f"{name}.py").write_text(SOURCE.format(mark=str(place / "mark")), "utf-8")
        (work / "picture.png").write_bytes(TINY_PNG)
        yield work


def phoenix_of(work: Path, **extra: str) -> Phoenix:
    return Phoenix(work.parent / "home", work, extra)


def imported(work: Path) -> str:
    mark = work.parent / "mark"
    return mark.read_text("utf-8") if mark.exists() else ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("-p", "--sandbox", "off", "-i", "picture.png", "list the files here"), ("conversations", "list"),
        ("conversations", "search", "anything"), ("doctor",), ("models",), ("config", "show"), ("--version",),
        ("--help",),
    ],
)  # fmt: skip
async def test_a_command_line_imports_nothing_of_the_folder_it_stands_in(
    arguments: tuple[str, ...], repository: Path
) -> None:
    ran = await phoenix_of(repository).run(*arguments)
    assert (imported(repository), "Traceback" in ran.err) == ("", False), ran.err
    assert ran.code in {0, 1}


@pytest.mark.parametrize("entry", ["", ".", "{work}", "{work}/../work"])
def test_a_search_path_that_names_the_folder_imports_nothing_of_it(entry: str, repository: Path) -> None:
    environment = phoenix_of(repository).environment | {"PYTHONPATH": f"{entry.format(work=repository)}:{ROOT}"}
    script = repository.parent / "phoenix"
    script.write_text(BOOT, "ascii")
    ran = subprocess.run(
        [sys.executable, str(script), "-p", "--sandbox", "off", "list the files here"],
        cwd=repository,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert (imported(repository), ran.returncode) == ("", 0), ran.stderr


async def test_a_tab_of_serve_imports_nothing_of_the_folder(repository: Path) -> None:
    hostile = repository / "phoenix_tui"
    async with serving(phoenix_of(repository)) as served:
        hostile.mkdir()
        for name in ("__init__", "__main__"):
            (hostile / f"{name}.py").write_text(SOURCE.format(mark=str(repository.parent / "mark")), "ascii")
        async with tab(served):
            assert imported(repository) == ""


@pytest.mark.parametrize("flags", [(), ("--screen-reader",)])
async def test_a_screen_imports_nothing_of_the_folder(flags: tuple[str, ...], repository: Path) -> None:
    async with program(phoenix_of(repository), *flags) as running:
        await running.shows("guide")
        await running.send("list the files here")
        await running.shows(" more")
        assert imported(repository) == ""


def test_the_installed_program_imports_nothing_of_the_folder_whatever_is_planted(repository: Path) -> None:
    for name in (*early(), "phoenix_tui"):
        (repository / f"{name}.py").write_text(SOURCE.format(mark=str(repository.parent / "mark")), "utf-8")
    script = repository.parent / "phoenix"
    script.write_text(BOOT, "ascii")
    ran = subprocess.run(
        [sys.executable, str(script), "-p", "--sandbox", "off", "list the files here"],
        cwd=repository,
        env=phoenix_of(repository).environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert (imported(repository), ran.returncode) == ("", 0), ran.stderr


def test_relative_entries_of_search_paths_are_gone_from_this_process(repository: Path) -> None:
    script = (
        "import os, sys; from phoenix_tui.lifecycle.process_start import leave_out_working_directory as leave; "
        "leave(); leave(); "
        "print(os.environ['PATH'], os.environ['LD_LIBRARY_PATH'], sys.pycache_prefix)"
    )
    environment = {"PATH": ".:/usr/bin::bin:/bin:", "LD_LIBRARY_PATH": ":/opt/lib", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-P", "-X", "pycache_prefix=cache", "-c", script],
        cwd=repository,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["/usr/bin:/bin", "/opt/lib", "None"]
