"""Weakness: what Phoenix writes is the user's alone under any umask, and nothing planted in its place leads it away."""

from __future__ import annotations

import ast
import codecs
import logging
import os
import re
import shutil
import socket
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec import Struct

from engine.diagnostics import Diagnostics
from engine.machine.messages import Role, StopReason, TextBlock, Usage
from engine.permissions.rules import KeptRule
from engine.ports import ModelMessage, ModelReply, ModelRequest
from engine.rewind.snapshots.snapshot_store import Contents
from engine.store.ownership import InstanceLock
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.export import write_new
from phoenix_tui.cli.logs import start_log
from phoenix_tui.config.credentials import save_key
from phoenix_tui.config.load import set_value
from phoenix_tui.config.rules import RuleFile
from phoenix_tui.config.settings import ConfigError
from phoenix_tui.config.trust import TrustFile, find_project
from phoenix_tui.features.composing import HISTORY_LIMIT, SLACK, PromptHistory
from phoenix_tui.features.review import DroppedFindings
from phoenix_tui.features.use_log import UseLog
from phoenix_tui.lifecycle.crash import OpenMark
from phoenix_tui.models.accepted import AcceptedServers
from phoenix_tui.models.fetch import PartialFile
from phoenix_tui.panes import saved_panes
from phoenix_tui.terminal import background
from phoenix_tui.workspace.actions import spill_paste
from tests.support.bounded import within
from tests.support.cli import ROOT, Phoenix
from tests.support.journeys import calls_all, says
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import TINY_PNG
from tests.support.program import CTRL_D, program
from tools.files.own_files import is_open_to_all, make_folder, new_file, open_file, remove_parts, write_file
from tools.process.output import Spill

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
SECRET = "what was said"
KEPT = "# stays as it is\n"
LOCK = "0" * 32
RULE = KeptRule("bash: ls", 1.0)
TWO = saved_panes.Panes(("a", "b"))
NOBODY, OTHER = 65534, 65533


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(*paths: Path) -> dict[str, str]:
    """Permissions of others on these paths or anything below them."""
    found: dict[str, str] = {}
    for path in (one for root in paths for one in (root, *root.rglob("*"))):
        mode = path.lstat().st_mode
        if mode & 0o077 and not stat.S_ISLNK(mode):
            found[str(path)] = stat.filemode(mode)
    return found


@pytest.mark.parametrize("mask", [0o000, 0o077])
async def test_whatever_a_run_writes_is_the_users_alone(mask: int, tmp_path: Path) -> None:
    """Database, journals, images, spilled output, checkpoints, logs, history, drafts, locks, temporary folders."""
    temporary, work, image = tmp_path / "temporary", tmp_path / "work", tmp_path / "image.png"
    for folder in (temporary, work):
        folder.mkdir(mode=0o700)
    image.write_bytes(TINY_PNG)
    meanwhile: dict[str, str] = {}
    held: list[Path] = []

    async def looks(talk: Talk) -> None:
        meanwhile.update(open_to_others(tmp_path / "new"))
        # What a command makes in its own temporary folder has its own modes, below a folder that is closed.
        meanwhile.update({str(path): "open" for path in temporary.iterdir() if path.stat().st_mode & 0o077})
        held.extend(temporary.iterdir())
        await says("done")(talk)

    many = calls_all(
        ("bash", "toolu_1", {"command": "seq 1 60000"}),
        ("bash", "toolu_2", {"command": "echo > made.txt", "background": True}),
        ("write_file", "toolu_3", {"path": "notes.txt", "content": SECRET}),
    )
    home = tmp_path / "new" / "phoenix" / "home"
    async with serve(many, looks, says("again")) as server:
        given = {"ANTHROPIC_API_KEY": "sk-ant-planted-0123456789", "ANTHROPIC_BASE_URL": server.url}
        phoenix = Phoenix(
            home,
            work,
            {**given, "PHOENIX_MODEL": "", "PHOENIX_SANDBOX": "workspace", "TMPDIR": str(temporary), "HOME": str(work)},
        )
        os.umask(mask)
        ran = await phoenix.run("-p", "--permission-mode", "auto", "-i", str(image), SECRET)
        async with program(phoenix) as running:
            await running.ready()
            await running.send("hello there")
            await running.shows("again")
            running.type("a draft")
            await running.until(lambda: any((home / "history").glob("*")))
            meanwhile.update(open_to_others(tmp_path / "new"))
            running.type(b"\x1b\x1b" + CTRL_D)
    os.umask(0)
    assert ran.code == 0, ran.err
    written = {path.relative_to(home).parts[0] for path in home.rglob("*") if path.is_file()}
    assert {"phoenix.db", "outputs", "attachments", "checkpoints", "logs", "history"} <= written
    assert meanwhile == {}
    assert held, "temporary folders were looked at"
    assert open_to_others(tmp_path / "new") == {}


class Writer(Struct, frozen=True):
    """One way in which Phoenix writes a file for itself."""

    path: str
    write: Callable[[Path], object]
    replaces: bool = False
    """True when the whole file is replaced, so that a link there goes and its target stays."""


def log(home: Path) -> None:
    handler = start_log(home / "logs" / "phoenix.jsonl", (), debug=False)
    try:
        logging.getLogger("tests").warning(SECRET)
    finally:
        if handler is not None:
            logging.getLogger().removeHandler(handler)
            handler.close()


def long_history(home: Path) -> None:
    history = PromptHistory(home, Path("/work"))
    for number in range(HISTORY_LIMIT + SLACK + 2):
        history.add(f"{SECRET} {number}")


def spilled(home: Path) -> None:
    spill = Spill(home / "outputs" / "output-1.txt", 10)
    spill.write(SECRET.encode() * 100)
    spill.close()
    if spill.path is None:
        raise OSError


def fetched(home: Path) -> None:
    file = PartialFile(home / "models" / "one.gguf")
    with file.lock():
        file.append(SECRET.encode())


def accepted(home: Path) -> AcceptedServers:
    return AcceptedServers(home / "servers.json")


def trusted(home: Path) -> None:
    project = home.parent / "project"
    project.mkdir(exist_ok=True, mode=0o700)
    (project / "AGENTS.md").write_text("Be kind.")
    TrustFile(home / "trust.json").answer(find_project(project), trusted=True)
    shutil.rmtree(project)


def locked(home: Path) -> None:
    make_folder(home / "locks")
    InstanceLock(home / "locks", LOCK)


def marked(home: Path) -> None:
    mark = OpenMark(home / "open", Path("/work"))
    mark.show("conversation")
    mark.show("")


def kept_reply(home: Path) -> None:
    request = ModelRequest("a/b", (), (ModelMessage(Role.USER, (TextBlock(SECRET),)),))
    reply = ModelReply((TextBlock(SECRET),), StopReason.END_TURN, Usage(1, 1), "b")
    Diagnostics(home / "logs").record_reply(request, reply, 1)


WRITERS = {
    "log": Writer("logs/phoenix.jsonl", log),
    "history": Writer("history/*", lambda home: PromptHistory(home, Path("/work")).add(SECRET)),
    "history, written anew": Writer("history/*", long_history),
    "spilled output": Writer("outputs/output-1.txt", spilled),
    "paste": Writer("outputs/*", lambda home: spill_paste(home / "outputs", SECRET), replaces=True),
    "last messages": Writer("logs/last_messages.jsonl", kept_reply),
    "responses": Writer("logs/llm_responses.jsonl", kept_reply),
    "open mark": Writer(f"open/{os.getpid()}.json", marked),
    "settings": Writer("config.toml", lambda home: set_value(home / "config.toml", "theme", "x"), replaces=True),
    "keys": Writer("credentials.toml", lambda home: save_key(home / "credentials.toml", "a", "sk-1"), replaces=True),
    "findings": Writer("findings.json", lambda home: DroppedFindings(home).add("a", ["b"]), replaces=True),
    "panes": Writer("panes.json", lambda home: saved_panes.remember(home, Path("/w"), TWO), replaces=True),
    "choices": Writer("used.json", lambda home: UseLog(home).add("x"), replaces=True),
    "background": Writer("background.txt", lambda home: background.remember(home, light=True), replaces=True),
    "servers": Writer("servers.json", lambda home: accepted(home).accept("ollama/x"), replaces=True),
    "trust": Writer("trust.json", trusted, replaces=True),
    "rules": Writer(
        "rules.toml", lambda home: RuleFile(home / "rules.toml").add(KeptRule("bash: ls", 1.0)), replaces=True
    ),
    "checkpoints": Writer("checkpoints/contents.db", lambda home: Contents(home / "checkpoints/contents.db").close()),
    "fetched model": Writer("models/.one.gguf.partial", fetched),
    "lock": Writer(f"locks/{LOCK}.lock", locked),
    "export": Writer("export.md", lambda home: write_new(home / "export.md", SECRET)),
}


def found(home: Path, writer: Writer) -> Path:
    """File of a writer, found once in a separate home."""
    make_folder(home)
    writer.write(home)
    return next(path for path in home.glob(writer.path) if path.is_file())


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("mask", [0o000, 0o077, 0o277])
def test_what_a_writer_makes_is_closed_to_others(name: str, mask: int, tmp_path: Path) -> None:
    os.umask(mask)
    found(tmp_path / "far" / "away" / "home", WRITERS[name])
    os.umask(0)
    assert open_to_others(tmp_path / "far") == {}


def plant(kind: str, path: Path, victim: Path) -> None:
    match kind:
        case "link":
            path.symlink_to(victim)
        case "link to nothing":
            path.symlink_to(victim.with_name("made"))
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(os.path.relpath(path))
        case "folder":
            path.mkdir()
        case _:
            path.hardlink_to(victim)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kind", ["link", "link to nothing", "pipe", "socket", "folder"])
def test_what_was_planted_in_its_place_leads_nowhere(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = WRITERS[name]
    place = found(tmp_path / "once", writer).relative_to(tmp_path / "once")
    victim, home = tmp_path / "victim", tmp_path / "home"
    victim.write_text(KEPT)
    victim.chmod(0o644)
    make_folder((home / place).parent)
    monkeypatch.chdir((home / place).parent)
    plant(kind, home / place, victim)
    with suppress(OSError, CommandError, ConfigError, sqlite3.Error):
        within(20.0, lambda: writer.write(home))
    assert victim.read_text() == KEPT
    assert victim.stat().st_mode & 0o777 in {0o644, 0o600}
    assert not victim.with_name("made").exists()
    if writer.replaces and kind not in {"folder", "pipe", "socket"}:
        assert not (home / place).is_symlink()


def test_a_folder_that_was_open_is_closed_and_one_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wide").mkdir(mode=0o777)
    make_folder(tmp_path / "wide")
    assert open_to_others(tmp_path / "wide") == {}
    (tmp_path / "link").symlink_to(tmp_path / "wide")
    make_folder(tmp_path / "link")  # the user's own
    with pytest.raises(OSError, match="Not a directory"):
        make_folder(Path("/dev/null"))


@pytest.mark.skipif(os.geteuid() != 0, reason="makes files of other users")
def test_folders_files_and_links_of_other_users_are_refused() -> None:
    codecs.lookup("ascii")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o1777)
        (folder / "theirs").mkdir(mode=0o777)
        os.chown(folder / "theirs", OTHER, OTHER)
        (folder / "mine").mkdir(mode=0o777)
        os.chown(folder / "mine", NOBODY, NOBODY)
        (folder / "link").symlink_to(folder / "mine")
        os.lchown(folder / "link", OTHER, OTHER)
        (folder / "file").touch(mode=0o666)
        os.chown(folder / "file", OTHER, OTHER)
        os.seteuid(NOBODY)
        try:
            for path in ("theirs", "link"):
                with pytest.raises(PermissionError, match="another user"):
                    make_folder(folder / path)
            with pytest.raises(PermissionError, match=r"another user|Permission denied"):
                open_file(folder / "file", os.O_WRONLY | os.O_APPEND)
            make_folder(folder / "mine")
        finally:
            os.seteuid(0)
        assert (folder / "mine").stat().st_mode & 0o777 == 0o700


def test_a_new_file_takes_no_name_that_is_there_and_a_failed_one_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "there").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        new_file(tmp_path / "there")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "child").touch()
    with pytest.raises(OSError, match="directory"):
        write_file(tmp_path / "taken", "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken", "there"]


ELSEWHERE = {
    "engine/store/__init__.py": "links below a folder of mkdtemp, to images that cannot be written",
    "tools/files/own_files.py": "the one place",
    "tools/files/location.py": "folders of the user's project, made by a tool",
    "tools/files/writing.py": "files of the user's project, written by a tool",
    "engine/rewind/snapshots/walk.py": "files of the user's project, put back",
    "engine/rewind/snapshots/capture.py": "as above",
    "tools/git/making.py": "a worktree and git's own files about it, in the user's repository",
    "tools/git/checkouts.py": "as above",
    "tools/git/commands.py": "as above",
    "tools/process/placeholders.py": "in the user's project, in the place of what must not appear there",
    "tools/process/scratch.py": "below a folder of mkdtemp, which is closed to others; caches of the user's programs",
    "tools/process/sandbox.py": "below a folder of mkdtemp, which is closed to others",
    "tools/process/start.py": "as above",
    "tools/process/starting_files.py": "files of the user's project, put back as they were before a command",
    "tools/process/workspace_watch.py": "a file without a name in the user's project, for the time of its file system",
    "tools/process/server_home.py": "folders below one of own_files.py, which are mounted over the home folder",
    "tools/process/zygote/devices.py": "inside a sandbox",
    "tools/process/zygote/namespace.py": "as above",
}
MAKES = {"mkdir", "makedirs", "touch", "write_text", "write_bytes", "symlink_to", "mkfifo", "mknod", "copyfile"}
OPENS = re.compile(r"(?=.*[wax+])[rwxabt+]{1,3}")


def makes_a_file(node: ast.AST) -> bool:
    """True for a call that makes a file or a folder."""
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Attribute) and node.attr in {"O_CREAT", "O_TMPFILE"}
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    modes = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
    opens = name == "open" and any(
        isinstance(mode, str) and set(mode) & set("wax+") and len(mode) < 5 for mode in modes
    )
    module = (
        node.func.value.id if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) else ""
    )
    return opens or (name in MAKES and module not in {"console"})


@pytest.mark.parametrize(
    ("line", "makes"),
    [
        ("path.mkdir()", True), ("path.open('ab')", True), ("os.open(path, os.O_CREAT)", True), ("open(p, 'w')", True),
        ("path.open('rb')", False), ("os.fdopen(descriptor, 'wb')", False), ("path.read_text()", False),
    ],
)  # fmt: skip
def test_a_call_that_makes_a_file_is_known(line: str, makes: bool) -> None:
    assert any(map(makes_a_file, ast.walk(ast.parse(line)))) is makes


def test_files_are_made_in_one_place() -> None:
    making = re.compile(rf"\bopen\b|O_CREAT|O_TMPFILE|{'|'.join(MAKES)}")  # the other files are not worth parsing
    found = {
        str(path.relative_to(ROOT)): node.lineno
        for package in ("phoenix_tui", "engine", "tools")
        for path in (ROOT / package).rglob("*.py")
        if making.search(text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call | ast.Attribute) and makes_a_file(node)
    }
    assert found.keys() - ELSEWHERE.keys() == set(), found


async def test_a_folder_above_that_all_may_write_is_named_at_the_start_and_by_the_doctor(tmp_path: Path) -> None:
    shared, work = tmp_path / "shared", tmp_path / "work"
    shared.mkdir()
    work.mkdir()
    shared.chmod(0o777)
    phoenix = Phoenix(shared / "home", work)
    phoenix.home.mkdir()
    sentence = (
        f"Any user can replace Phoenix's folders, because {shared} is writable for all users; run: chmod o-w {shared}"
    )
    ran = await phoenix.run("-p", "hello")
    assert sentence in ran.err
    assert f"{shared} is writable for all users; run: chmod o-w {shared}" in (await phoenix.run("doctor")).out
    shared.chmod(0o1777)  # as /tmp: other users' files cannot be replaced
    assert not is_open_to_all(shared)


def test_parts_of_killed_processes_are_removed_and_nothing_else(tmp_path: Path) -> None:
    old = (".config.toml.0123abcd.part", f"phoenix.db.{'a' * 32}.part")
    kept = (".config.toml.0123ABCD.part", "mine.part", ".0123abcd.part", "config.toml")
    for name in (*old, *kept):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (1.0, 1.0))
    (tmp_path / ".young.0123abcd.part").write_text("x")
    (tmp_path / ".link.0123abcd.part").symlink_to(tmp_path / "config.toml")
    os.utime(tmp_path / ".link.0123abcd.part", (1.0, 1.0), follow_symlinks=False)
    removed = remove_parts([tmp_path, tmp_path / "none"])
    assert sorted(path.name for path in removed) == sorted(old)
    assert {path.name for path in tmp_path.iterdir()} == {*kept, ".young.0123abcd.part", ".link.0123abcd.part"}
