"""A command sees a developer's environment and none of its secrets (FAULTS 3.6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.contract import Command
from tools.process.environment import scrub_environment
from tools.process.start import ProcessSettings, start_processes

SECRETS = {
    "ANTHROPIC_API_KEY": "planted-1",
    "OPENAI_API_KEY": "planted-2",
    "GITHUB_TOKEN": "planted-3",
    "AWS_SECRET_ACCESS_KEY": "planted-4",
    "AWS_PROFILE": "planted-5",
    "MY_INNOCENT_NAME": "planted-6",
    "LC_PASSWORD": "planted-7",
    "HTTPS_PROXY": "http://user:planted-8@proxy:3128",
    "PHOENIX_HOME": "planted-9",
}


async def test_no_planted_secret_reaches_a_command() -> None:
    settings = ProcessSettings(environment={"PATH": "/usr/bin:/bin", **SECRETS})
    processes = await start_processes(settings)
    script = "env; cat /proc/self/environ /proc/$PPID/environ"
    finished = await processes.runner.run(Command(("/bin/sh", "-c", script), Path("/")))
    await processes.close()
    assert b"PATH=/usr/bin:/bin" in finished.captured.head
    assert b"planted-" not in finished.captured.head


def test_a_developers_settings_stay() -> None:
    mine = {"PATH": "/bin", "VIRTUAL_ENV": "/v", "GOPATH": "/go", "LC_ALL": "C", "JAVA_HOME": "/j", "TZ": "UTC"}
    assert mine.items() <= scrub_environment(mine).items()


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_left_out_by_its_name_or_its_form(name: str) -> None:
    assert name not in scrub_environment(SECRETS)


def test_programs_are_told_that_nobody_watches() -> None:
    told = scrub_environment({"TERM": "xterm-kitty", "CI": "1", "PAGER": "less", "EDITOR": "vim"})
    assert (told["TERM"], told["PAGER"], told["GIT_PAGER"], told["GIT_TERMINAL_PROMPT"]) == ("dumb", "cat", "cat", "0")
    assert "CI" not in told
    assert "vim" not in told["EDITOR"]


async def test_a_command_may_bring_its_own_settings() -> None:
    processes = await start_processes(ProcessSettings(environment={"PATH": "/bin", "LANG": "C"}))
    command = Command(("/bin/sh", "-c", "echo $LANG"), Path("/"), environment={"LANG": "de_DE"})
    finished = await processes.runner.run(command)
    await processes.close()
    assert finished.captured.head == b"de_DE\n"
