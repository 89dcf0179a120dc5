"""The servers of the test environment, pyright and ruff, check edits as they do in an editor."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.language_servers import one_server
from tools.lsp.definitions import KNOWN_SERVERS
from tools.lsp.problems import HIDDEN, start_failure

PROGRAMS = Path(sys.executable).parent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code"), [("pyright", "reportUndefinedVariable"), ("ruff", "F821")], ids=["pyright", "ruff"]
)
async def test_an_undefined_name_is_told_once_and_moves_with_its_line(tmp_path: Path, name: str, code: str) -> None:
    server = next(one for one in KNOWN_SERVERS if one.name == name)
    program = PROGRAMS / server.command[0]
    if not program.exists():
        pytest.skip(f"{name} is not installed here")
    async with one_server(tmp_path, replace(server, command=(str(program), *server.command[1:]))) as one:
        assert (await one.edit("text = '\U0001f600'\n")).errors == 0
        check = await one.edit("text = '\U0001f600'; text = nowhere\n")
        assert [(found.line, found.column, found.code) for found in check.problems] == [(1, 20, code)]
        assert (await one.edit("\n\ntext = '\U0001f600'; text = nowhere\n")).errors == 0
        assert (await one.edit("text = 1\n")).errors == 0


def test_a_program_that_the_sandbox_hides_is_named(tmp_path: Path) -> None:
    error = OSError(errno.ENOENT, "No such file or directory")
    assert start_failure(error, sys.executable, is_confined=True) == HIDDEN.format(program=sys.executable)
    assert start_failure(error, str(tmp_path / "gone"), is_confined=True).endswith("No such file or directory")
    assert start_failure(error, sys.executable, is_confined=False).endswith("No such file or directory")
