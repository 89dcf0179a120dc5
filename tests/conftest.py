"""Settings of every test: the same examples on every run; no more waits, sweeps and parsing than needed."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import Answer, Claude
from tests.support.loopback import Loopback, serve
from tests.support.settling import settle_pilots
from tests.support.shared_styles import share_styles
from tools.known_secrets import SECRETS
from tools.process import programs
from tools.process.environment import USERS_PATH

settings.register_profile("fixed", max_examples=50, derandomize=True, deadline=None, database=None)
settings.register_profile("quick", max_examples=10, derandomize=True, deadline=None, database=None)
settings.register_profile("explore", max_examples=1_000, deadline=None, database=None, print_blob=True)
# HYPOTHESIS_PROFILE=explore looks for new examples; `make quick` takes a few of those that are fixed.
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fixed")
settings.load_profile(PROFILE)
if PROFILE != "explore":
    # Constants of the modules that happen to be loaded make other examples each time, and take 7 s to read.
    setattr(providers, "_get_local_constants", Constants)  # noqa: B010 - Hypothesis has no setting for it
settle_pilots()
share_styles()
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:  # as `nohup` and `&` leave them: Phoenix would rightly ignore them
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def forget_secrets() -> Iterator[None]:
    """Forget what the settings of a test named as secrets."""
    yield
    SECRETS.forget()


@pytest.fixture(autouse=True)
def restore_environment() -> Iterator[None]:
    """Give each test the variables that pytest was started with: to load `phoenix_tui.__main__` changes some."""
    os.environ["PATH"] = os.environ.pop(USERS_PATH, os.environ["PATH"])
    before = dict(os.environ)
    yield
    if os.environ != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(autouse=True)
def forget_workspaces() -> Iterator[None]:
    """Forget the folders in which commands of a test could write: no program is taken from one."""
    yield
    programs._workspaces.clear()


@pytest.fixture
async def claude(tmp_path: Path) -> AsyncIterator[Claude]:
    """Start a loopback Claude with the answers given, for a fresh installation that asks it; both last for the test."""
    async with AsyncExitStack() as servers:

        async def start(*answers: Answer, **extra: str) -> tuple[Phoenix, Loopback]:
            server = await servers.enter_async_context(serve(*answers))
            return with_claude(tmp_path, server.url, **extra), server

        yield start


def pytest_collection_finish() -> None:
    """Leave what was imported to itself: looking through it for garbage would take a fifth of the time of a pilot."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
