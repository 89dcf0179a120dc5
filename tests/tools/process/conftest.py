"""Common fixtures of process control: a running one, and a watch for a tree."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.processes import Watch, start_plain, watching
from tools.process.start import Processes


@pytest.fixture
async def processes() -> AsyncIterator[Processes]:
    running = await start_plain()
    yield running
    await running.close()


@pytest.fixture
def watch() -> Iterator[Watch]:
    with watching() as one:
        yield one
