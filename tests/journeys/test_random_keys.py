"""Random keys and sizes into the real program, which is stopped and waits for its database: no word is lost or astray,
and noise behind them ends nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.support.key_scripts import Script
from tests.support.key_terminal import played

MORE: Final = int(os.environ.get("PHOENIX_KEY_FUZZ", "0"))
"""Scripts of `make fuzz`, beside the short one of the suite."""
FIRST: Final = int(os.environ.get("PHOENIX_KEY_FUZZ_FROM", "0"))
SCRIPTS: Final = [
    Script(7, ("text", "open", "stash", "slow paste", "several"), 2),
    *map(Script, range(FIRST, FIRST + MORE)),
]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{script.seed}-{script.most}")
async def test_every_word_is_once_in_the_place_that_had_the_focus(tmp_path: Path, script: Script) -> None:
    assert await played(tmp_path, script) == [], script.steps
