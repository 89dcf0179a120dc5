"""The log file, shared by processes, and the bundle made of it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from phoenix_tui.cli import logs
from phoenix_tui.cli.logs import PrivateFile
from tests.support.cli import ROOT, Phoenix, phoenix_in
from tests.support.program import in_lines, program


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "logs" / "phoenix.jsonl"
    root = logging.getLogger()
    level = root.level
    handler = logs.start_log(path, ("planted-secret",), debug=True)
    assert handler is not None
    yield path
    root.removeHandler(handler)
    root.setLevel(level)
    handler.close()


def test_a_record_is_one_json_line_in_a_private_file(log: Path) -> None:
    logging.getLogger("engine").debug("two\nlines \x1b[31m")
    [line] = log.read_text().splitlines()
    record = json.loads(line)
    assert (record["level"], record["logger"], record["message"]) == ("debug", "engine", "two\nlines \x1b[31m")
    assert "\x1b" not in line
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.parent.stat().st_mode & 0o777 == 0o700


def test_keys_are_blotted_out_in_messages_and_tracebacks(log: Path) -> None:
    try:
        int("planted-secret and sk-proj-abcdefgh12345")
    except ValueError:
        logging.getLogger("engine").exception("with Authorization: Bearer abc.def")
    text = log.read_text()
    assert "Traceback" in text
    assert not [word for word in ("planted-secret", "abcdefgh12345", "abc.def") if word in text]


def test_the_log_is_bounded(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = next(each for each in logging.getLogger().handlers if isinstance(each, PrivateFile))
    monkeypatch.setattr(handler, "maxBytes", 2000)
    for number in range(200):
        logging.getLogger("engine").warning("record %d", number)
    files = sorted(log.parent.iterdir())
    assert [file.name for file in files] == ["phoenix.jsonl", *(f"phoenix.jsonl.{number}" for number in (1, 2, 3))]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert max(file.stat().st_size for file in files) <= 2000


def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file in the way")
    before = list(logging.getLogger().handlers)
    assert logs.start_log(tmp_path / "logs" / "phoenix.jsonl", (), debug=False) is None
    for handler in set(logging.getLogger().handlers) - set(before):
        logging.getLogger().removeHandler(handler)


def test_detections_and_what_phoenix_informs_about_are_written_without_a_detailed_log(tmp_path: Path) -> None:
    root = logging.getLogger()
    level, path = root.level, tmp_path / "phoenix.jsonl"
    handler = logs.start_log(path, (), debug=False)
    assert handler is not None
    try:
        logging.getLogger("security").info("security.injection_detected: x")
        logging.getLogger("engine.executor").info("Created new task x")
        logging.getLogger("engine").debug("not written")
        logging.getLogger("anthropic").info("not written")
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        handler.close()
    written = [json.loads(line)["message"] for line in path.read_text().splitlines()]
    assert written == ["security.injection_detected: x", "Created new task x"]


WRITER = """
import logging, sys
from pathlib import Path
from phoenix_tui.cli import logs
logs.FILE_LIMIT = 60_000  # four files hold all of it, however the long records fall
logs.start_log(Path(sys.argv[1]), (), debug=False)
print("ready", flush=True)
sys.stdin.read(1)
for number in range(150):
    logging.getLogger("engine").warning("%s %d %s", sys.argv[2], number, "x" * (12_000 if number % 50 == 7 else 150))
"""


def test_two_processes_that_rotate_at_once_lose_and_mix_nothing(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "phoenix.jsonl"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(log), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        for name in ("one", "two")
    ]
    assert start_together(writers) == [b"", b""]
    files = sorted(log.parent.iterdir(), reverse=True)
    assert {file.name for file in files} <= {"phoenix.jsonl", *(f"phoenix.jsonl.{number}" for number in (1, 2, 3))}
    assert len(files) > 2
    said = [json.loads(line)["message"].split()[:2] for file in files for line in file.read_text().splitlines()]
    assert Counter(map(tuple, said)) == Counter((name, str(number)) for name in ("one", "two") for number in range(150))
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def start_together(writers: list[subprocess.Popen[bytes]]) -> list[bytes]:
    """Let them write at the same time; what they say on stderr."""
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"g")
        writer.stdin.flush()
    return [writer.communicate()[1] for writer in writers]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[PrivateFile, PrivateFile, Path]:
    path = tmp_path / "phoenix.jsonl"
    made = (PrivateFile(path, maxBytes=100, backupCount=3), PrivateFile(path, maxBytes=100, backupCount=3))
    return *made, path


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("x", logging.WARNING, "", 0, text, None, None)


def test_a_file_that_another_rotated_is_not_rotated_again(pair: tuple[PrivateFile, PrivateFile, Path]) -> None:
    first, second, path = pair
    first.emit(record("a" * 80))
    first.emit(record("b" * 80))
    second.emit(record("c"))
    assert path.read_text() == "b" * 80 + "\nc\n"
    assert path.with_name("phoenix.jsonl.1").read_text() == "a" * 80 + "\n"
    assert not path.with_name("phoenix.jsonl.2").exists()
    first.close()
    second.close()


def test_a_log_whose_folder_is_gone_is_made_again(pair: tuple[PrivateFile, PrivateFile, Path]) -> None:
    first, second, path = pair
    first.emit(record("a"))
    path.unlink()
    first.emit(record("b"))
    assert path.read_text() == "b\n"
    second.emit(record("c"))
    assert path.read_text() == "b\nc\n"
    first.close()
    second.close()


def test_what_cannot_be_written_says_nothing_on_the_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    handler = PrivateFile(tmp_path / "phoenix.jsonl", maxBytes=100, backupCount=3)
    handler.emit(record("a"))
    (tmp_path / "phoenix.jsonl").unlink()
    Path(tmp_path / "phoenix.jsonl").symlink_to(tmp_path / "elsewhere")
    handler.emit(record("b"))
    assert not (tmp_path / "elsewhere").exists()
    assert capfd.readouterr().err == ""
    handler.close()


KEY = "sk-ant-planted-0123456789"
ODD = 'odd "key" value'
WORDS = "the secret plan of the user"


@pytest.fixture
def phoenix(tmp_path: Path) -> Phoenix:
    made = phoenix_in(tmp_path, ANTHROPIC_API_KEY=KEY, OPENAI_API_KEY=ODD)
    (made.home / "config.toml").write_text(
        f"""max_turns = 7
append_system_prompt = "{WORDS}"
[providers.work]
base_url = "https://user:{KEY}@models.example.com/v1?key={KEY}"
headers = {{ "X-Team-Key" = "plain-header-secret" }}
query = {{ token = "plain-query-secret" }}
extra_body = {{ user = "plain-body-secret" }}
"""
    )
    logs = made.home / "logs"
    logs.mkdir(mode=0o700)
    lines = [{"message": f"line {number} {ODD} Authorization: Bearer {KEY}"} for number in range(20_000)]
    (logs / "phoenix.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    failure: dict[str, object] = {
        "model": "m",
        "kind": "server",
        "message": f"refused {KEY}",
        "system": [WORDS],
        "tools": ["bash"],
    }
    failure["messages"] = [{"role": "user", "content": WORDS}]
    for number in range(8):
        (logs / f"llm_api_error_2026010{number}-000000-000000.json").write_text(json.dumps(failure))
    (logs / "llm_api_error_20260109-000000-000000.json").write_text("{broken")
    (logs / "last_messages.jsonl").write_text(WORDS)
    (logs / "llm_responses.jsonl").write_text(WORDS)
    return made


async def test_the_archive_has_no_key_and_no_transcript(phoenix: Phoenix, tmp_path: Path) -> None:
    ran = await phoenix.run("doctor", "--bundle", str(tmp_path / "out.zip"), "--yes")
    assert ran.code == 0
    assert (tmp_path / "out.zip").stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    failures = {f"failure-{number}.json" for number in range(1, 5)}
    assert set(parts) == {"doctor.txt", "settings.json", "log.jsonl", *failures}
    for name in parts:
        assert name in ran.out
    whole = "".join(parts.values())
    hidden = (KEY, KEY[7:], ODD, json.dumps(ODD)[1:-1], WORDS, "header-secret", "query-secret", "body-secret")
    assert not [secret for secret in hidden if secret in whole]
    settings = json.loads(parts["settings.json"])
    assert settings["settings"]["max_turns"] == 7
    assert settings["settings"]["append_system_prompt"] == f"[{len(WORDS)} characters]"
    assert settings["providers"] == [
        {"name": "work", "kind": "openai", "preset": "", "address": "https://models.example.com"}
    ]
    assert len(parts["log.jsonl"]) < 300_000
    assert "line 19999" in parts["log.jsonl"]
    assert json.loads(parts["failure-1.json"])["tools"] == ["bash"]
    assert "sqlite" in parts["doctor.txt"]


async def test_without_a_terminal_nothing_is_written_unless_it_is_agreed_to(phoenix: Phoenix) -> None:
    ran = await phoenix.run("doctor", "--bundle")
    assert ran.code == 2
    assert "doctor.txt" in ran.out
    assert ran.err == "phoenix: Nothing was written: without a terminal to ask, add --yes.\n"
    assert not list(phoenix.cwd.iterdir())
    made = (await phoenix.run("doctor", "--bundle", "--yes", "--json")).json
    assert [path.name for path in phoenix.cwd.iterdir()] == [made["file"]]
    assert {part["name"] for part in made["parts"]} >= {"doctor.txt", "settings.json"}


async def test_on_a_terminal_it_asks(phoenix: Phoenix) -> None:
    for answer, count in (("n", 0), ("y", 1)):
        async with program(phoenix, "doctor", "--bundle", "b.zip", rows=60, columns=160) as running:
            await running.shows("settings.json", "Write these files to b.zip? [y/N]")
            await running.press(f"{answer}\r", "Nothing was written." if not count else "Written to b.zip.")
        assert len(list(phoenix.cwd.iterdir())) == count


@pytest.mark.parametrize("kind", ["file", "link", "dangling", "folder", "device"])
async def test_nothing_that_is_there_is_replaced_or_written_through(phoenix: Phoenix, kind: str) -> None:
    target, victim = phoenix.cwd / "out.zip", phoenix.cwd / "victim"
    if kind == "file":
        target.write_text("mine")
    elif kind == "folder":
        target.mkdir()
    else:
        victim.write_text("mine")
        ends = {"link": victim, "dangling": phoenix.cwd / "none", "device": Path("/dev/full")}
        target.symlink_to(ends[kind])
    ran = await phoenix.run("doctor", "--bundle", str(target), "--yes")
    assert (ran.code, ran.err) == (2, f"phoenix: {target} already exists; give another file name.\n")
    assert not (phoenix.cwd / "none").exists()
    assert kind != "file" or target.read_text() == "mine"


FULL = """
import resource, signal
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.doctor import BundlePart, write_bundle
import os
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))
write_bundle([BundlePart("a", os.urandom(5_000))], CommandArguments("doctor", bundle="out.zip", yes=True))
"""


def test_a_full_disk_leaves_no_half_archive(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", FULL],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stderr.splitlines()[-1].endswith("out.zip cannot be written: File too large.")
    assert not list(tmp_path.iterdir())


async def test_a_folder_that_is_not_there_is_one_sentence(phoenix: Phoenix) -> None:
    ran = await phoenix.run("doctor", "--bundle", "none/out.zip", "--yes")
    assert (ran.code, ran.err) == (1, "phoenix: none/out.zip cannot be written: No such file or directory.\n")


async def test_the_lines_list_and_read_the_records(phoenix: Phoenix) -> None:
    async with in_lines(phoenix, columns=200) as running:
        await running.press("/debug phoenix.db\r", "There is no file phoenix.db here; /debug lists all.")
        await running.press("/debug llm_responses.jsonl\r", WORDS)
        await running.press("/debug\r", "Files for debugging, newest first", "last_messages.jsonl")
