"""The look for a newer release: when it is made, its form, what is kept of it, and hostile answers."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest

from engine.executor.engine_settings import EngineSettings
from engine.machine.states import is_busy
from phoenix_tui.cli.names import VERSION
from phoenix_tui.cli.setup import Setup, prepare_command
from phoenix_tui.updates import update_check
from phoenix_tui.updates.update_check import (
    DAY,
    FROM_FOLDER,
    NONE,
    STATE,
    UNKNOWN,
    ConfigurationPlaces,
    Installation,
    KnownRelease,
    PackageIndex,
    UpdateCheckFailed,
    ask_index,
    claim,
    find_index,
    find_installation,
    find_newest,
    find_opt_out,
    is_newer,
    newer_sentence,
    read_known_release,
    read_release,
)
from phoenix_tui.wiring.update_watch import update_findings, update_notice, watch_for_update
from tests.support.cli import ROOT, Phoenix, phoenix_in
from tests.support.engine import EngineHarness, StubTool, engine_harness, until
from tests.support.loopback import Answer, Loopback, Talk, serve
from tests.support.program import CTRL_Q, on_screen
from tests.support.scripted_provider import Reply, ScriptedCall, Text

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


def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **files: str) -> None:
    folder = tmp_path / "site" / "phoenix_tui-0.1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: phoenix-tui\nVersion: 0.1.0\n")
    for name, text in files.items():
        (folder / name.replace("_json", ".json")).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


@pytest.mark.parametrize(
    ("mark", "installer", "expected"),
    [
        ("uv-receipt.toml", "uv", Installation("uv tool", "uv tool upgrade phoenix-tui")),
        ("pipx_metadata.json", "pip", Installation("pipx", "pipx upgrade phoenix-tui")),
        ("", "pip\n", Installation("pip", "'/my env/python' -m pip install --upgrade phoenix-tui")),
        ("", "uv", Installation("uv pip", "uv pip install --python '/my env/python' --upgrade phoenix-tui")),
        ("", "conda", Installation(why_not=UNKNOWN)),
        ("", "", Installation(why_not=UNKNOWN)),
    ],
)
def test_each_installer_has_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str, installer: str, expected: Installation
) -> None:
    install(tmp_path, monkeypatch, INSTALLER=installer)
    if mark:
        (tmp_path / mark).write_text("")
    assert find_installation(tmp_path, "/my env/python") == expected


def test_an_installation_from_a_folder_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, INSTALLER="pip", direct_url_json='{"url": "file:///x", "dir_info": {}}')
    assert find_installation(tmp_path) == Installation(why_not=FROM_FOLDER)


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


LINE = f"Phoenix 9.0.0 is available, this is {VERSION}; `pipx upgrade phoenix-tui` installs it."


async def answers(talk: Talk) -> None:
    await talk.plain(200, FILES)


def package(folder: Path) -> Path:
    """A folder for `sys.path` in which Phoenix is installed by pip."""
    info = folder / "site" / "phoenix_tui-0.1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: phoenix-tui\nVersion: 0.1.0\n")
    (info / "INSTALLER").write_text("pip")
    return info.parent


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Phoenix is installed by pipx."""
    monkeypatch.syspath_prepend(str(package(tmp_path)))
    prefix = tmp_path / "prefix"
    prefix.mkdir()
    (prefix / "pipx_metadata.json").write_text("{}")
    monkeypatch.setattr("sys.prefix", str(prefix))


def setup_in(tmp_path: Path, served: Loopback | None, **more: str) -> tuple[Setup, dict[str, str]]:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    environment = {"PHOENIX_HOME": str(home), "HOME": str(home), "PHOENIX_UPDATE_CHECK": "true", **more}
    if served is not None:
        environment["PIP_INDEX_URL"] = f"{served.url}/simple"
    return prepare_command(environment), environment


async def looked(harness: EngineHarness, setup: Setup, environment: dict[str, str]) -> None:
    await watch_for_update(setup, environment, harness.engine, after=0.0)


@pytest.mark.usefixtures("installed")
async def test_an_idle_screen_looks_once_a_day_and_says_so_at_the_end(tmp_path: Path) -> None:
    async with serve(answers) as served, engine_harness(tmp_path) as harness:
        setup, environment = setup_in(tmp_path, served)
        assert update_notice(setup, environment) == ""
        await looked(harness, setup, environment)
        await looked(harness, setup, environment)
        assert len(served.requests) == 1
    assert update_notice(setup, environment) == LINE
    assert update_notice(setup, environment | {"NO_UPDATE_NOTIFIER": "1"}) == ""
    assert update_findings(setup.settings, environment)[0].text == (
        f"once a day at {served.url}/simple, by PIP_INDEX_URL; installed by pipx"
    )


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "more", [{"DO_NOT_TRACK": "1"}, {"NO_UPDATE_NOTIFIER": "true"}, {"UV_OFFLINE": "1"}, {"PIP_NO_INDEX": "1"}]
)
async def test_a_user_who_wants_no_look_gets_none(tmp_path: Path, more: dict[str, str]) -> None:
    async with serve(answers) as served, engine_harness(tmp_path) as harness:
        setup, environment = setup_in(tmp_path, served, **more)
        await looked(harness, setup, environment)
        assert served.requests == []
        assert not (setup.paths.state / STATE).exists()
    assert next(iter(more)) in update_findings(setup.settings, environment)[0].text


async def test_an_installation_from_a_folder_asks_nothing(tmp_path: Path) -> None:
    async with serve(answers) as served, engine_harness(tmp_path) as harness:
        setup, environment = setup_in(tmp_path, served)
        await looked(harness, setup, environment)
        assert served.requests == []
    assert "not from a package index" in update_findings(setup.settings, environment)[0].text


def test_it_is_off_by_default(tmp_path: Path) -> None:
    setup, environment = setup_in(tmp_path, None, PHOENIX_UPDATE_CHECK="")
    assert not setup.settings.flag("update_check")
    assert update_findings(setup.settings, environment)[0].text.startswith("no look for a newer Phoenix; `phoenix")
    (setup.paths.state / STATE).write_text('{"newest": "9.0.0"}')
    assert update_notice(setup, environment) == ""


@pytest.mark.usefixtures("installed")
async def test_it_waits_until_nothing_runs(tmp_path: Path) -> None:
    tool = StubTool(release=asyncio.Event())
    replies = (Reply((ScriptedCall("bash", "{}"),)), Reply((Text("Done."),)))
    settings = EngineSettings(auto_title=False)
    async with serve(answers) as served, engine_harness(tmp_path, *replies, tool=tool, settings=settings) as harness:
        setup, environment = setup_in(tmp_path, served)
        conversation = await harness.conversation()
        await conversation.say("go")
        await tool.started.wait()
        look = asyncio.create_task(looked(harness, setup, environment))
        await until(lambda: is_busy(conversation.state))
        assert served.requests == []
        assert tool.release is not None
        tool.release.set()
        await look
        assert len(served.requests) == 1
    assert read_known_release(setup.paths.state).newest == "9.0.0"


@pytest.mark.usefixtures("installed")
async def test_a_failure_is_quiet_and_counts_as_the_look_of_the_day(tmp_path: Path) -> None:
    async with serve() as _, engine_harness(tmp_path) as harness:
        setup, environment = setup_in(tmp_path, None, PIP_INDEX_URL="http://127.0.0.1:9/simple")
        await looked(harness, setup, environment)
    assert read_known_release(setup.paths.state).checked_at > 0
    assert update_notice(setup, environment) == ""


def phoenix(tmp_path: Path, **more: str) -> Phoenix:
    return phoenix_in(tmp_path, PYTHONPATH=f"{package(tmp_path)}:{ROOT}", **more)


async def test_the_command_looks_at_once_and_prints_the_command_of_the_installer(tmp_path: Path) -> None:
    async with serve(answers) as served:
        there = phoenix(tmp_path, PIP_INDEX_URL=f"{served.url}/simple")
        ran = await there.run("update")
        as_json = await there.run("update", "--json")
        assert len(served.requests) == 2
    assert ran.code == 0
    assert ran.out.startswith(f"Phoenix 9.0.0 is available, this is {VERSION}; `")
    assert ran.out.endswith(" -m pip install --upgrade phoenix-tui` installs it.\n")
    assert (as_json.json["version"], as_json.json["newest"]) == (VERSION, "9.0.0")
    assert as_json.json["command"].endswith("-m pip install --upgrade phoenix-tui")


@pytest.mark.parametrize(
    ("names", "code", "words"),
    [
        (["phoenix_tui-0.0.1.tar.gz"], 0, f"There is no release newer than this one, Phoenix {VERSION}.\n"),
        (["other-9.0.0.tar.gz"], 1, "phoenix: The package index lists no release of Phoenix.\n"),
    ],
)
async def test_the_command_says_that_nothing_is_newer(tmp_path: Path, names: list[str], code: int, words: str) -> None:
    async def lists(talk: Talk) -> None:
        await talk.plain(200, json.dumps({"files": [{"filename": name} for name in names]}).encode())

    async with serve(lists) as served:
        ran = await phoenix(tmp_path, PIP_INDEX_URL=f"{served.url}/simple").run("update")
    assert (ran.code, ran.out + ran.err) == (code, words)


@pytest.mark.parametrize(
    ("index", "code", "words"),
    [
        ("", 1, "No package index is configured; set update_index"),
        ("file:///srv", 1, "The index of PIP_INDEX_URL is no http"),
        ("http://127.0.0.1:9/simple", 75, "127.0.0.1 cannot be reached"),
    ],
)
async def test_the_command_says_why_it_cannot_look(tmp_path: Path, index: str, code: int, words: str) -> None:
    ran = await phoenix(tmp_path, PIP_INDEX_URL=index, PIP_CONFIG_FILE="/dev/null").run("update")
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err


@pytest.mark.pty
async def test_the_screen_closes_with_the_line(tmp_path: Path) -> None:
    there = phoenix(tmp_path, PHOENIX_UPDATE_CHECK="true")
    (there.home / STATE).write_text('{"newest": "9.0.0"}')
    async with on_screen(there) as running:
        running.type(CTRL_Q)
        assert await running.exit_code() == 0
        assert b"Phoenix 9.0.0 is available" in running.raw
        assert running.terminal_is_back
