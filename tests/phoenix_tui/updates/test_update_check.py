"""The request to a package index on loopback: its form, what is kept of it, and hostile answers."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from phoenix_tui.cli.names import VERSION
from phoenix_tui.updates import update_check
from phoenix_tui.updates.update_check import (
    DAY,
    STATE,
    Installation,
    KnownRelease,
    PackageIndex,
    UpdateCheckFailed,
    ask_index,
    claim,
    find_opt_out,
    newer_sentence,
    read_known_release,
)
from tests.support.loopback import Answer, Loopback, Talk, serve

FILES = json.dumps({"files": [{"filename": "phoenix_tui-9.0.0.tar.gz"}]}).encode()
PIP = Installation("pip", "python -m pip install --upgrade phoenix-tui")


def sends(body: bytes, status: int = 200, headers: str = "") -> Answer:
    async def answer(talk: Talk) -> None:
        await talk.plain(status, body, headers)

    return answer


async def silent(talk: Talk) -> None:
    await talk.stall()


def index(served: Loopback) -> PackageIndex:
    return PackageIndex(f"{served.url}/simple", "test")


async def test_the_project_is_asked_for_in_the_json_form_and_its_newest_release_is_kept(tmp_path: Path) -> None:
    async with serve(sends(FILES, headers='etag: "one"\r\n')) as served:
        assert await ask_index(tmp_path, index(served), 5.0) == "9.0.0"
        (seen,) = served.requests
        kept = read_known_release(tmp_path)
        assert kept == KnownRelease(5.0, f"{served.url}/simple", '"one"', "9.0.0")
    assert (seen.method, seen.path) == ("GET", "/simple/phoenix-tui/")
    assert seen.headers["accept"] == "application/vnd.pypi.simple.v1+json"
    assert {"cookie", "authorization"}.isdisjoint(seen.headers)


async def test_the_next_request_has_the_etag_and_an_unchanged_list_keeps_what_is_known(tmp_path: Path) -> None:
    async with serve(sends(FILES, headers='etag: "one"\r\n'), sends(b"", 304)) as served:
        await ask_index(tmp_path, index(served), 5.0)
        assert await ask_index(tmp_path, index(served), 6.0) == "9.0.0"
        assert served.requests[1].headers["if-none-match"] == '"one"'
    assert read_known_release(tmp_path).checked_at == 6.0


async def test_another_index_gets_no_etag_and_its_304_is_no_answer(tmp_path: Path) -> None:
    async with serve(sends(FILES, headers='etag: "one"\r\n'), sends(b"", 304)) as served:
        await ask_index(tmp_path, index(served), 5.0)
        with pytest.raises(UpdateCheckFailed, match="HTTP status 304"):
            await ask_index(tmp_path, PackageIndex(f"{served.url}/other", "test"), 6.0)
        assert "if-none-match" not in served.requests[1].headers


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (sends(b"", 404), "HTTP status 404"),
        (sends(b"<html>", headers="x: y\r\n"), "PEP 691"),
        (sends(b"", 302, "location: http://elsewhere.example/\r\n"), "redirects, which is not followed"),
        (sends(b"", 301, "location: /simple/other/\r\n"), "redirects, which is not followed"),
        (sends(b'{"files": [' + b" " * 3_000_000 + b"]}"), "PEP 691"),
        (sends(b"{" * 100_000), "PEP 691"),
    ],
)
async def test_an_answer_of_no_use_is_a_sentence_and_nothing_is_kept(
    tmp_path: Path, answer: Answer, words: str
) -> None:
    async with serve(answer) as served:
        with pytest.raises(UpdateCheckFailed, match=words):
            await ask_index(tmp_path, index(served), 5.0)
        assert len(served.requests) == 1
    assert read_known_release(tmp_path) == KnownRelease()


async def test_html_is_not_read(tmp_path: Path) -> None:
    async def html(talk: Talk) -> None:
        await talk.begin("text/html")
        await talk.send(FILES)
        await talk.end()

    async with serve(html) as served:
        with pytest.raises(UpdateCheckFailed, match="PEP 691"):
            await ask_index(tmp_path, index(served), 5.0)


async def test_an_index_that_does_not_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_check, "PATIENCE", 0.2)
    async with serve(silent) as served:
        with pytest.raises(UpdateCheckFailed, match="did not answer within"):
            await ask_index(tmp_path, index(served), 5.0)


async def test_hostile_etags_are_not_kept(tmp_path: Path) -> None:
    async with serve(sends(FILES, headers=f"etag: {'x' * 500}\r\n")) as served:
        await ask_index(tmp_path, index(served), 5.0)
    assert read_known_release(tmp_path).etag == ""


def test_a_request_is_made_once_a_day_also_of_several_processes(tmp_path: Path) -> None:
    claims: list[bool] = []
    threads = [threading.Thread(target=lambda: claims.append(claim(tmp_path, 100_000.0))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claims) == [False] * 7 + [True]
    assert not claim(tmp_path, 100_000.0 + DAY - 1)
    assert claim(tmp_path, 100_000.0 + DAY)
    assert claim(tmp_path, 5.0), "a clock that was set back does not stop the look for ever"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"newest": 5}',
        b'{"newest": "9\\u001b[2J"}',
        b'{"newest": "9.0.0; rm"}',
        b"x" * 20_000,
        b"[" * 10_000,
    ],
)
def test_a_state_of_no_use_is_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / STATE).write_bytes(content)
    assert read_known_release(tmp_path) == KnownRelease()


def test_only_a_newer_release_is_named_with_the_command_of_the_installer() -> None:
    assert newer_sentence("9.0.0", PIP) == (
        f"Phoenix 9.0.0 is available, this is {VERSION}; `python -m pip install --upgrade phoenix-tui` installs it."
    )
    assert newer_sentence(VERSION, PIP) == ""
    assert newer_sentence("", PIP) == ""
    assert newer_sentence("9.0.0", Installation(why_not="installed from a folder")) == ""


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({}, ""),
        ({"DO_NOT_TRACK": "1"}, "DO_NOT_TRACK"),
        ({"DO_NOT_TRACK": "0"}, ""),
        ({"NO_UPDATE_NOTIFIER": "1"}, "NO_UPDATE_NOTIFIER"),
    ],
)
def test_variables_by_which_users_want_no_look(environment: dict[str, str], name: str) -> None:
    assert find_opt_out(environment) == name
