"""Files kept for debugging, and data never kept (SPEC UNI-19, FAULTS 70)."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from engine import diagnostics
from engine.diagnostics import RESPONSES, Diagnostics, DiagnosticsLevel
from engine.executor.engine_settings import EngineSettings
from engine.machine.messages import ImageBlock, Role, StopReason, TextBlock, ToolUseBlock, Usage
from engine.ports import ImageBytes, ModelMessage, ModelReply, ModelRequest, ProviderError
from engine.records.runs import CallPurpose
from tests.support.engine import engine_harness, run_turn
from tests.support.scripted_provider import Fail, Reply, Script, ScriptedProvider, Text
from tests.support.storage import ROOT
from tests.support.waiting import poll_blocking
from tools.files import locked_file
from tools.files.locked_file import FileLocked, append_record
from tools.redaction import MARGIN

KEY = "sk-ant-planted-0123456789"
REQUEST = ModelRequest("m", ("system",), (ModelMessage(Role.USER, (TextBlock(f"my key is {KEY}"),)),))
REPLY = ModelReply((TextBlock("hello"),), StopReason.END_TURN, Usage(3, 4), "m")


def test_replies_are_appended_and_the_last_request_is_kept(tmp_path: Path) -> None:
    kept = Diagnostics(tmp_path / "logs")
    kept.record_reply(REQUEST, REPLY, 12)
    kept.record_reply(REQUEST, REPLY, 13)
    lines = (tmp_path / "logs/llm_responses.jsonl").read_text().splitlines()
    assert [json.loads(line)["duration_ms"] for line in lines] == [12, 13]
    assert json.loads((tmp_path / "logs/last_messages.jsonl").read_text())["role"] == "user"
    assert {p.stat().st_mode & 0o777 for p in (tmp_path / "logs").iterdir()} == {0o600}


def test_a_key_is_never_written(tmp_path: Path) -> None:
    kept = Diagnostics(tmp_path)
    kept.record_reply(REQUEST, REPLY, 1)
    kept.record_failure(REQUEST, ProviderError(f"refused {KEY}", kind="auth", retryable=False))
    written = "".join(path.read_text() for path in tmp_path.iterdir())
    assert "[redacted]" in written
    assert KEY not in written


def test_old_failures_go_and_a_large_file_is_set_aside(tmp_path: Path) -> None:
    kept = Diagnostics(tmp_path)
    for _ in range(diagnostics.KEPT_ERRORS + 3):
        kept.record_failure(REQUEST, ProviderError("x", kind="server", retryable=True))
    assert len(list(tmp_path.glob("llm_api_error_*.json"))) == diagnostics.KEPT_ERRORS
    (tmp_path / "llm_responses.jsonl").write_text("x" * (diagnostics.ROTATE_BYTES + 1))
    kept.record_reply(REQUEST, REPLY, 1)
    assert (tmp_path / "llm_responses.jsonl.1").exists()
    assert len((tmp_path / "llm_responses.jsonl").read_text().splitlines()) == 1


async def test_a_conversation_leaves_its_replies_and_failures_there(tmp_path: Path) -> None:
    script = (Reply((Text("hi"),)), Reply((Fail("bad request", "invalid_request", retryable=False),)))
    settings = EngineSettings(diagnostics=Diagnostics(tmp_path / "logs"))
    async with engine_harness(tmp_path, *script, settings=settings) as harness:
        conversation = await harness.conversation()
        for _ in range(2):
            await run_turn(conversation, "x")
    names = sorted(path.name.split("_error_")[0] for path in (tmp_path / "logs").iterdir())
    assert names == ["last_messages.jsonl", "llm_api", "llm_responses.jsonl"]


OWN = 'my own "key" 1'


def asked(*texts: str, system: str = "system") -> ModelRequest:
    messages = tuple(ModelMessage(Role.USER, (TextBlock(text),)) for text in texts)
    return ModelRequest("m", (system,), messages)


def everything(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.iterdir())


def all_of_it(folder: Path) -> Diagnostics:
    return Diagnostics(folder, DiagnosticsLevel.REQUESTS, lambda: (OWN,))


def test_keys_planted_in_every_place_are_never_written(tmp_path: Path) -> None:
    kept, planted = all_of_it(tmp_path), f"{KEY} and {OWN} and Authorization: Basic abcdefgh12345"
    image = ImageBytes("image/png", b"\x89PNG" + b"i" * 4_000)
    call = ToolUseBlock("1", "bash", json.dumps({"command": f"curl -H 'x-api-key: {KEY}' {OWN}"}))
    blocks = (TextBlock(planted), ImageBlock("a", 1, 1), call)
    request = ModelRequest("m", (planted,), (ModelMessage(Role.USER, blocks),), images={"a": image})
    for purpose in CallPurpose:
        kept.record_reply(request, ModelReply(blocks, StopReason.END_TURN, Usage(1, 1), "m"), 1, purpose)
        kept.record_failure(request, ProviderError(planted, kind="server", retryable=False), purpose)
    written = everything(tmp_path)
    assert "[redacted]" in written
    for secret in (KEY, KEY[7:], OWN, json.dumps(OWN)[1:-1], "abcdefgh12345", "iiiiiiii"):
        assert secret not in written
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


@pytest.mark.parametrize(
    ("level", "names"),
    [
        (DiagnosticsLevel.FAILURES, {"llm_api"}),
        (DiagnosticsLevel.REPLIES, {"llm_api", "llm_responses.jsonl", "last_messages.jsonl"}),
        (DiagnosticsLevel.REQUESTS, {"llm_api", "llm_responses.jsonl", "last_messages.jsonl", "llm_requests.jsonl"}),
    ],
)
def test_each_level_keeps_more(tmp_path: Path, level: DiagnosticsLevel, names: set[str]) -> None:
    kept = Diagnostics(tmp_path, level)
    kept.record_reply(asked("x"), REPLY, 1)
    kept.record_failure(asked("x"), ProviderError("x", kind="server", retryable=False))
    assert {path.name.split("_error_")[0] for path in tmp_path.iterdir()} == names


def test_a_link_at_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "logs"
    victim.write_text("mine")
    folder.mkdir(mode=0o700)
    for name in ("llm_responses.jsonl", "last_messages.jsonl", "llm_requests.jsonl", "phoenix.jsonl"):
        (folder / name).symlink_to(victim)
    kept = all_of_it(folder)
    kept.record_reply(asked("x"), REPLY, 1)
    assert victim.read_text() == "mine"
    assert kept.files() == ()
    with pytest.raises(OSError, match=r"phoenix\.jsonl"):
        kept.end_of("phoenix.jsonl")


def test_huge_texts_are_cut_and_all_files_together_are_bounded(tmp_path: Path) -> None:
    kept, huge = all_of_it(tmp_path), "word " * 250_000
    reply = ModelReply((TextBlock(huge),), StopReason.END_TURN, Usage(1, 1), "m")
    for _ in range(9):
        kept.record_reply(asked(*(huge for _ in range(5)), system=huge), reply, 1)
        kept.record_failure(asked(huge), ProviderError(huge, kind="server", retryable=False))
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert max(sizes.values()) < diagnostics.ROTATE_BYTES + 3 * diagnostics.LONGEST_ENTRY
    assert sum(sizes.values()) < 6 * diagnostics.ROTATE_BYTES
    assert len(kept.end_of("llm_responses.jsonl")) <= diagnostics.SHOWN_BYTES + MARGIN
    for line in (tmp_path / "llm_responses.jsonl").read_text().splitlines():
        json.loads(line)


@pytest.mark.parametrize("name", ["../phoenix.db", "/etc/passwd", "", "phoenix.db", "llm_responses.jsonl\x00"])
def test_no_other_file_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "phoenix.db").write_text("x")
    with pytest.raises(FileNotFoundError):
        all_of_it(tmp_path).end_of(name)


FULL = """
import resource, signal, sys
from pathlib import Path
from tests.engine.test_diagnostics import REPLY, all_of_it, asked
kept = all_of_it(Path(sys.argv[1]))
kept.record_reply(asked("first"), REPLY, 1)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
for _ in range(9):
    kept.record_reply(asked("word " * 2_000), REPLY, 1)
"""


def test_a_full_disk_loses_whole_records_and_nothing_else(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], cwd=ROOT, check=True, timeout=60)
    lines = (tmp_path / "llm_responses.jsonl").read_text().splitlines()
    assert 1 <= len(lines) < 10
    assert {json.loads(line)["model"] for line in lines} == {"m"}
    assert not (tmp_path / "last_messages.jsonl").read_text()
    assert len((tmp_path / "llm_requests.jsonl").read_text().splitlines()) == 1


async def test_side_questions_and_compactions_are_recorded_with_their_purpose(tmp_path: Path) -> None:
    said = [Reply((Text(f"answer {number} " * 200),)) for number in range(3)]
    script = Script((*said, Reply((Text("beside"),)), Reply((Text("summary"),))))
    settings = EngineSettings(diagnostics=Diagnostics(tmp_path / "logs"))
    async with engine_harness(tmp_path, provider=ScriptedProvider({"main": script}), settings=settings) as home:
        conversation = await home.conversation()
        for number in range(3):
            await run_turn(conversation, f"question {number}")
        await conversation.side.ask("And?")
        await conversation.context.compact()
        await conversation.wait_idle()
    lines = (tmp_path / "logs/llm_responses.jsonl").read_text().splitlines()
    purposes = [json.loads(line)["purpose"] for line in lines]
    assert purposes == ["reply", "reply", "reply", "aside", "compaction"]
    last = (tmp_path / "logs/last_messages.jsonl").read_text()
    assert "question 2" in last  # of the last turn, and not of the summary


async def test_a_failed_side_question_is_recorded(tmp_path: Path) -> None:
    fails = Reply((Fail("no such thing", "invalid_request", retryable=False),))
    provider = ScriptedProvider({"main": Script((Reply((Text("hi"),)),), aside=fails)})
    settings = EngineSettings(diagnostics=Diagnostics(tmp_path / "logs"))
    async with engine_harness(tmp_path, provider=provider, settings=settings) as home:
        conversation = await home.conversation()
        await run_turn(conversation, "x")
        with pytest.raises(ProviderError):
            await conversation.side.ask("And?")
    (path,) = (tmp_path / "logs").glob("llm_api_error_*.json")
    assert json.loads(path.read_text())["purpose"] == "aside"


WRITERS, RECORDS, LIMIT = 4, 1_000, 8 * 1024
LONGEST = 2 * 1024
"""Bytes of the longest record of a writer, and more."""


@contextmanager
def writer(folder: Path, name: str, records: int = RECORDS) -> Generator[subprocess.Popen[bytes]]:
    """A process that is ready to write; `begin` lets it."""
    command = [sys.executable, "-m", "tests.support.diagnostics_writer", str(folder), name, str(records), str(LIMIT)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        try:
            assert started.stdout is not None
            assert started.stdout.readline() == b"READY\n"
            yield started
        finally:
            started.kill()


def begin(started: subprocess.Popen[bytes]) -> None:
    assert started.stdin is not None
    started.stdin.write(b"go\n")
    started.stdin.flush()


def numbers(folder: Path) -> dict[str, list[int]]:
    """Numbers of the records that are kept, oldest first, of each writer; every line must be whole."""
    found: dict[str, list[int]] = defaultdict(list)
    for name in (f"{RESPONSES}.1", RESPONSES):
        path = folder / name
        for line in path.read_text().splitlines() if path.exists() else ():
            record = json.loads(line)
            found[record["model"]].append(record["duration_ms"])
    return found


def test_processes_that_write_past_the_limit_lose_nothing_but_the_oldest_records(tmp_path: Path) -> None:
    with ExitStack() as stack:
        writers = [stack.enter_context(writer(tmp_path, f"writer-{number}")) for number in range(WRITERS)]
        for one in writers:
            begin(one)
        assert [one.wait(60) for one in writers] == [0] * WRITERS
    kept = numbers(tmp_path)
    for found in kept.values():
        assert found == list(range(RECORDS - len(found), RECORDS))
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {RESPONSES, f"{RESPONSES}.1", "last_messages.jsonl"}
    assert LIMIT < sizes[f"{RESPONSES}.1"] < LIMIT + LONGEST
    assert sizes[RESPONSES] < LIMIT + LONGEST
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    [last] = (tmp_path / "last_messages.jsonl").read_text().splitlines()
    assert json.loads(last)["role"] == "user"


def test_a_writer_that_waits_while_a_file_is_set_aside_does_not_set_the_new_one_aside(tmp_path: Path) -> None:
    path = tmp_path / RESPONSES
    path.write_bytes(b"{}\n" * LIMIT)
    with writer(tmp_path, "late", 1) as late:
        with path.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            begin(late)
            assert poll_blocking(lambda: is_open(late.pid, path))
            path.rename(tmp_path / f"{RESPONSES}.1")
            path.write_text('{"model": "first", "duration_ms": 0}\n')
        assert late.wait(60) == 0
    assert (tmp_path / f"{RESPONSES}.1").stat().st_size == 3 * LIMIT
    assert [json.loads(line)["model"] for line in path.read_text().splitlines()] == ["first", "late"]


def is_open(pid: int, path: Path) -> bool:
    """True while a process has this file open."""
    with suppress(FileNotFoundError):
        return any(one.samefile(path) for one in Path(f"/proc/{pid}/fd").iterdir())
    return False


def test_a_writer_that_is_killed_leaves_whole_lines_and_no_lock(tmp_path: Path) -> None:
    with writer(tmp_path, "killed", 100_000) as killed:
        begin(killed)
        assert poll_blocking((tmp_path / f"{RESPONSES}.1").exists)
        killed.kill()
    with (tmp_path / RESPONSES).open("a") as file:
        file.write('{"model": "half of a rec')
    all_of_it(tmp_path).record_reply(asked("x"), REPLY, 7)
    kept = numbers(tmp_path)
    assert kept["m"] == [7]
    assert kept["killed"] == list(range(kept["killed"][0], kept["killed"][-1] + 1))


def test_half_a_line_goes_however_long_it_is_and_whole_ones_stay(tmp_path: Path) -> None:
    path = tmp_path / "records"
    for before, after in (
        (b"one\n" + b"x" * 200_000, b"one\nnew\n"),
        (b"x" * 200_000, b"new\n"),
        (b"one\ntwo\n", b"one\ntwo\nnew\n"),
        (b"", b"new\n"),
    ):
        path.write_bytes(before)
        append_record(path, b"new\n", 1_000_000)
        assert path.read_bytes() == after


def test_a_file_that_another_process_keeps_locked_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locked_file, "LOCK_SECONDS", 0.05)
    kept = all_of_it(tmp_path)
    kept.record_reply(asked("first"), REPLY, 1)
    before = everything(tmp_path)
    with (tmp_path / RESPONSES).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(FileLocked):
            append_record(tmp_path / RESPONSES, b"{}\n", 1)
        assert everything(tmp_path) == before
        kept.record_reply(asked("left out"), REPLY, 1)
    kept.record_reply(asked("second"), REPLY, 2)
    assert len((tmp_path / RESPONSES).read_text().splitlines()) == 2


def test_a_file_that_cannot_be_set_aside_does_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnostics, "ROTATE_BYTES", 100)
    (tmp_path / f"{RESPONSES}.1").mkdir()
    kept = all_of_it(tmp_path)
    for number in range(5):
        kept.record_reply(asked("x"), REPLY, number)
    assert len((tmp_path / RESPONSES).read_text().splitlines()) == 1
