"""The real program in a real terminal against the benchmarks' model, with a home of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.rows import TAG
from tests.benchmarks.terminal import HERE, Link, Terminal

ROOT: Final = Path(__file__).parents[2]
MODEL: Final = "anthropic/claude-sonnet-5-5"
READY: Final = r"┃ Type to start"
"""Text of the empty composer."""
NOTHING: Final[Mapping[str, str]] = {}
RUN_TAG: Final = uuid.uuid4().hex
"""Marks every process of this run of the benchmarks."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One line of the model server."""

    at: float
    event: str
    number: int
    facts: Mapping[str, Any]


class Model:
    """The model server's process and its events so far."""

    def __init__(self, *arguments: str) -> None:
        self.heard: list[Heard] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.model_server", *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            env={**os.environ, TAG: new_tag()},
        )
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        self.url: str = self.wait("listening").facts["url"]

    def wait(
        self,
        event: str,
        *,
        since: float = 0.0,
        number: int = 0,
        seconds: float = 20.0,
        meanwhile: Callable[[], object] | None = None,
    ) -> Heard:
        """The first `event` after `since` (of request `number`).

        Raises:
            TimeoutError: it did not come.
        """
        deadline, looked = time.monotonic() + seconds, 0
        while time.monotonic() < deadline:
            while looked < len(self.heard):
                each = self.heard[looked]
                looked += 1
                if each.event == event and each.at >= since and number in {0, each.number}:
                    return each
            time.sleep(0.001)
            if meanwhile is not None:
                meanwhile()
        raise TimeoutError(f"the model server heard no {event!r}")

    def close(self) -> None:
        """End the server."""
        self.process.kill()
        self.process.wait()
        self._reader.join(2)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            facts = json.loads(line)
            self.heard.append(Heard(facts.pop("at"), facts.pop("event"), facts.pop("number"), facts))


def new_tag() -> str:
    """Marks one program; begins with the tag of the run."""
    return f"{RUN_TAG}-{uuid.uuid4().hex[:8]}"


def environment(home: Path, url: str, tag: str) -> dict[str, str]:
    """Environment of the program."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PHOENIX_HOME": str(home / "phoenix"),
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-ant-benchmark",
        "PHOENIX_AUTO_TITLE": "false",
        # Figures of commands and questions stay comparable with those before the default sandbox.
        "PHOENIX_SANDBOX": "off",
        "PHOENIX_TURN_SUMMARIES": "false",
        TAG: tag,
    }


def phoenix(*arguments: str) -> list[str]:
    """The command line of the real program."""
    return [str(Path(sys.executable).parent / "phoenix"), *arguments]


@dataclass(slots=True)
class Program:
    """Phoenix at work."""

    terminal: Terminal
    model: Model
    home: Path

    @property
    def pid(self) -> int:
        """Process id of the program."""
        return self.terminal.pid

    def say(self, text: str) -> float:
        """Type a prompt, then Enter; the moment of Enter."""
        self.terminal.write(text)
        self.terminal.drain(0.25)
        return self.terminal.write("\r")

    def asked(self, since: float, seconds: float = 20.0) -> Heard:
        """The request that followed.

        Raises:
            TimeoutError: none did.
            ValueError: the real API would have refused it.
        """
        try:
            asked = self.model.wait("asked", since=since, seconds=seconds, meanwhile=self.terminal.drain)
        except TimeoutError as error:
            raise TimeoutError(f"no request; the screen:\n{self.terminal.tail()}") from error
        if asked.facts["faults"]:
            raise ValueError(f"the request was wrong: {asked.facts['faults']}")
        return asked

    def turn(self, text: str, seconds: float = 20.0) -> Heard:
        """A whole turn; gives its request."""
        asked = self.asked(self.say(text))
        self.terminal.wait(rf"ENDMARK-{asked.number}\b", seconds)
        self.terminal.settle(0.15)
        return asked


@contextlib.contextmanager
def serving(*arguments: str) -> Generator[Model]:
    """A model server."""
    model = Model(*arguments)
    try:
        yield model
    finally:
        model.close()


@contextlib.contextmanager
def running(
    model: Model,
    home: Path,
    *arguments: str,
    ready: bool = True,
    settings: Mapping[str, str] = NOTHING,
    link: Link = HERE,
) -> Generator[Program]:
    """Phoenix in a terminal; with `ready` its composer is drawn and nothing more is being written."""
    folder = home / "work"
    folder.mkdir(parents=True, exist_ok=True)
    argv = phoenix("--permission-mode", "auto", "--model", MODEL, *arguments)
    tag = new_tag()
    terminal = Terminal(argv, {**environment(home, model.url, tag), **settings}, folder, tag, link)
    program = Program(terminal, model, home)
    try:
        if ready:
            terminal.wait(READY)
            terminal.settle()
        yield program
    finally:
        terminal.close()


def fresh_home(parent: Path) -> Path:
    """An empty home for one installation."""
    home = parent / uuid.uuid4().hex[:12]
    home.mkdir()
    return home
