"""Folders that a sandboxed command may read inside of those that are hidden from it, with each mechanism."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.outside import folder_outside_temp
from tests.support.sandboxes import CONFINED, sandbox
from tools.contract import Command
from tools.process.plan import BUBBLEWRAP
from tools.process.zygote import wire


@pytest.mark.parametrize("mechanism", [wire.NAMESPACE, BUBBLEWRAP, wire.LANDLOCK])
async def test_a_named_folder_is_read_and_nothing_beside_it(mechanism: str) -> None:
    with folder_outside_temp() as outside:
        state, workspace = outside / "state", outside / "workspace"
        for folder in (state / "own", state / "other", workspace):
            folder.mkdir(parents=True)
            (folder / "text").write_text(f"of {folder.name}\n")
        script = f"cat {state}/own/text {state}/other/text; echo more >> {state}/own/text; cat {workspace}/text"
        async with sandbox(workspace, mechanism, hidden=(state,)) as box:
            command = Command(("/bin/bash", "-c", script), workspace, sandbox=CONFINED, readable=(Path(state / "own"),))
            ended = await box.processes.runner.run(command)
        told = ended.captured.head.decode()
        kept = (state / "own" / "text").read_text()
    assert ("of own" in told, "of other" in told, "of workspace" in told) == (True, False, True)
    assert kept == "of own\n"
