"""A refusal by the sandbox is named with its path; what would fail without a sandbox as well is not blamed on it."""

from __future__ import annotations

import gettext
import shutil
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.git_repositories import empty_repository
from tests.support.outside import folder_outside_temp
from tests.support.sandboxes import Box, home, sandbox
from tools.bash import Caller
from tools.contract import Command, Finished, Sandbox, SandboxedStartError, SandboxMode
from tools.process.sandbox import SandboxPlaces, SandboxRequest, confine
from tools.services import ProgramLimits, ServiceCommand
from tools.shell_output import SandboxView, refusal_note, refusals

CONFINED = Sandbox(SandboxMode.WORKSPACE, network=False)
READ_ONLY = Sandbox(SandboxMode.READ_ONLY, network=False)


@pytest.fixture
def place() -> Iterator[Path]:
    """A home folder with documents and settings, and a repository as the workspace."""
    with folder_outside_temp() as folder:
        for name in ("home/docs/sub", "home/.config", "home/.ssh", "work"):
            (folder / name).mkdir(parents=True)
        for name in ("home/docs/a.txt", "home/.config/tool.ini", "home/.ssh/id_rsa", "home/diary.txt"):
            (folder / name).write_text("x\n", "ascii")
        empty_repository(folder / "work")
        (folder / "work" / ".git" / "config").write_text("[core]\n", "ascii")
        with home(folder / "home"):
            yield folder.resolve()


@pytest.fixture
def view(place: Path) -> Iterator[SandboxView]:
    around = SandboxPlaces({})
    made = confine(SandboxRequest(SandboxMode.WORKSPACE, place / "work"), around)
    yield SandboxView(place / "work", CONFINED, made.places, made.secret)
    around.placeholders.release(made.placeholders)
    around.scratch.close()


async def run(box: Box, script: str, sandbox: Sandbox = CONFINED) -> str:
    command = Command(("/bin/bash", "-c", script), box.folder, timeout=60, sandbox=sandbox)
    ended = await box.processes.jobs.run(command, Caller("one", "call", script))
    assert isinstance(ended, Finished)
    return ended.captured.refused.replace(f"{box.folder.parent}/", "")


NODE = "node -e \"require('fs').writeFileSync(process.env.HOME + '/new', '')\""
REALLY = [
    ("cat ~/docs/a.txt", "home/docs/a.txt is hidden"),
    ("cd ~/docs/sub", "home/docs/sub is hidden"),
    ("ls -l ~/docs/sub/new", "home/docs/sub is hidden"),
    ("echo x > ~/docs/sub/new", "home/docs/sub is hidden"),
    ("echo x > ~/docs/new", "home/docs/new is hidden"),
    ("echo x > ~/.config/new", "home/.config/new is read-only"),
    ("mkdir ~/.other", "home/.other is read-only"),
    ("touch ../beside", "beside is read-only"),
    ("git config user.name n", "work/.git/config is read-only"),
    ("echo x > ~/.ssh/known_hosts", "home/.ssh/known_hosts is hidden"),
    ("python3 -c 'import os; os.mkdir(os.path.expanduser(\"~/.p\"))'", "home/.p is read-only"),
    (NODE, "home/new is read-only"),
    ("python3 -c 'import urllib.request as u; u.urlopen(\"http://example.com\")'", "there is no network"),
]


@pytest.mark.parametrize(("script", "clause"), REALLY)
async def test_a_command_that_the_sandbox_stopped_says_where(place: Path, script: str, clause: str) -> None:
    if script is NODE and shutil.which("node") is None:
        pytest.skip("node is not installed")
    async with sandbox(place / "work") as box:
        assert await run(box, script) == clause


@pytest.mark.parametrize(
    "script",
    [
        "cat ~/docs/none.txt",
        "cat ~/none.txt ~/.config/none.ini",
        "cat none.txt /no/such/file",
        "echo x > /proc/version",
        "./no-such-program",
        "mkdir a; chmod 000 a; exit 3",
        "echo 'Permission denied'; exit 1",
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 9))'",
    ],
)
async def test_an_error_that_there_would_be_without_a_sandbox_is_not_blamed_on_it(place: Path, script: str) -> None:
    async with sandbox(place / "work") as box:
        assert await run(box, script) == ""


async def test_a_command_that_succeeds_says_nothing_whatever_it_prints(place: Path) -> None:
    async with sandbox(place / "work") as box:
        assert await run(box, "cat ~/docs/a.txt; true") == ""


async def test_a_read_only_sandbox_names_the_working_directory_too(place: Path) -> None:
    async with sandbox(place / "work") as box:
        assert await run(box, "echo x > made", READ_ONLY) == "work/made is read-only"


async def test_a_port_that_a_program_outside_listens_on_is_behind_the_missing_network(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        async with sandbox(place / "work") as box:
            assert await run(box, f"echo 'connect ECONNREFUSED 127.0.0.1:{port}'; exit 1") == "there is no network"


WORDS = {
    "C": "touch: cannot touch '{home}/.new': Read-only file system",
    "node": "Error: EROFS: read-only file system, open '{home}/.new'",
    "node, an object": "{{\n  errno: -30,\n  code: 'EROFS',\n  syscall: 'open',\n  path: '{home}/.new'\n}}",
    "npm": "npm error code EROFS\nnpm error syscall mkdir\nnpm error path {home}/.new\nnpm error errno EROFS",
    "python": "OSError: [Errno 30] Read-only file system: '{home}/.new'",
    "python, the number alone": "failed with [Errno 30] at path={home}/.new",
    "rust": "error: failed to create directory `{home}/.new`\n\nCaused by:\n  Read-only file system (os error 30)",
    "rust, the number alone": "error: {home}/.new: Kann nicht schreiben (os error 30)",
    "go": "panic: open {home}/.new: read-only file system",
    "java": "java.nio.file.FileSystemException: {home}/.new: Read-only file system",
    "dash": "sh: 1: cannot create {home}/.new: Read-only file system",
    "a url": "cannot write file://{home}/.new: EACCES",
    "with a blank": "bash: {home}/.new: Permission denied",
}


@pytest.mark.parametrize("language", WORDS)
def test_the_words_of_many_languages_are_known(view: SandboxView, place: Path, language: str) -> None:
    text = WORDS[language].format(home=place / "home")
    assert refusals(text, view) == f"{place}/home/.new is read-only"


def test_names_with_blanks_and_relative_names_are_found(view: SandboxView, place: Path) -> None:
    (place / "home" / "My Docs").mkdir()
    around = SandboxPlaces({})
    made = confine(SandboxRequest(SandboxMode.WORKSPACE, place / "work"), around)
    wider = SandboxView(view.folder, CONFINED, made.places, made.secret)
    (place / "home" / "My Docs" / "a b").touch()
    said = refusals(f"cat: {place}/home/My Docs/a b: No such file or directory", wider)
    assert said == f"{place}/home/My Docs/a b is hidden"
    assert refusals("error: could not write .git/config: Device or resource busy", wider).endswith(
        "config is read-only"
    )
    around.placeholders.release(made.placeholders)
    around.scratch.close()


def test_errors_in_the_language_of_the_system_are_known(
    view: SandboxView, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [(b"", b"Content-Type: text/plain; charset=UTF-8\n"), (b"Read-only file system", b"Nur lesbar")]
    offset = 28 + 16 * len(texts)
    tables, strings = [b"", b""], b""
    for column in (0, 1):
        for text in texts:
            tables[column] += struct.pack("<II", len(text[column]), offset + len(strings))
            strings += text[column] + b"\0"
    head = struct.pack("<IIIIIII", 0x950412DE, 0, len(texts), 28, 28 + 8 * len(texts), 0, offset)
    folder = tmp_path / "xx" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "libc.mo").write_bytes(head + tables[0] + tables[1] + strings)
    monkeypatch.setattr(gettext, "_default_localedir", str(tmp_path))
    monkeypatch.setenv("LANGUAGE", "xx")
    assert refusals(f"touch: {place}/home/.new: Nur lesbar", view) == f"{place}/home/.new is read-only"


def test_a_read_only_error_without_a_path_names_what_can_be_written(view: SandboxView, place: Path) -> None:
    assert refusals("fatal: Read-only file system", view) == f"everything but {place}/work is read-only"


def test_long_and_hostile_outputs_are_read_within_a_bound(view: SandboxView) -> None:
    many = "\n".join(f"cat: /x/{number}: Read-only file system" for number in range(100_000))
    assert refusals(many + "\n" + "/" * 100_000 + "\0'" * 1000, view).count("read-only") <= 2


def test_the_line_below_an_output_names_the_ways_out() -> None:
    assert refusal_note("") == ""
    assert refusal_note("/x is hidden") == (
        "[sandbox: /x is hidden; the agent can ask for more with access and why, and /sandbox changes the sandbox]"
    )


async def test_a_program_in_a_hidden_folder_that_cannot_be_started_says_so(place: Path) -> None:
    program = place / "home" / "docs" / "server"
    program.write_text("#!/bin/sh\n", "ascii")
    program.chmod(0o755)
    async with sandbox(place / "work") as box:
        with pytest.raises(SandboxedStartError) as caught:
            await box.processes.services.open(ServiceCommand((str(program),), place / "work", sandbox=CONFINED))
        assert caught.value.refused == f"{program} is hidden"
        with pytest.raises(FileNotFoundError) as missing:
            await box.processes.services.open(ServiceCommand(("/no/such/server",), place / "work", sandbox=CONFINED))
        assert not isinstance(missing.value, SandboxedStartError)


async def test_one_shot_programs_and_services_say_it_too(place: Path) -> None:
    async with sandbox(place / "work") as box:
        script = ("/bin/sh", "-c", "cat ~/docs/a.txt; cat")
        command = ServiceCommand(("/bin/sh", "-c", "cat ~/docs/a.txt"), place / "work", sandbox=CONFINED)
        ended = await box.processes.services.run_program(command, None, ProgramLimits())
        assert ended.refused == f"{place}/home/docs/a.txt is hidden"
        async with await box.processes.services.open(ServiceCommand(script, place / "work", sandbox=CONFINED)) as one:
            said = f"EROFS: read-only file system, open '{place}/home/.new'"
            assert (await one.refusals(said)).startswith(f"{place}/home/.new is read-only")
