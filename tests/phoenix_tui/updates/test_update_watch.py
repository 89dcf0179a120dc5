"""The look for a newer Phoenix: off by default, once nothing runs, once a day, and one line at the end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from engine.executor.engine_settings import EngineSettings
from engine.machine.states import is_busy
from phoenix_tui.cli.names import VERSION
from phoenix_tui.cli.setup import Setup, prepare_command
from phoenix_tui.updates.update_check import STATE, read_known_release
from phoenix_tui.wiring.update_watch import update_findings, update_notice, watch_for_update
from tests.support.cli import ROOT, Phoenix, phoenix_in
from tests.support.engine import EngineHarness, StubTool, engine_harness, until
from tests.support.loopback import Loopback, Talk, serve
from tests.support.program import CTRL_Q, program
from tests.support.scripted_provider import Reply, ScriptedCall, Text

FILES = json.dumps({"files": [{"filename": "phoenix_tui-9.0.0.tar.gz"}]}).encode()
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
    async with program(there) as running:
        await running.ready()
        running.type(CTRL_Q)
        assert await running.exit_code() == 0
        assert b"Phoenix 9.0.0 is available" in running.raw
        assert running.terminal_is_back
