"""Modules loaded by the first frame: it is drawn by a process that has nothing else loaded."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

from tests.support.cli import ROOT

FRAME: Final = """
import sys
from pathlib import Path
from phoenix_tui.lifecycle.launch import leave_out_palette
import phoenix_tui.wiring.screen, phoenix_tui.cli.entry, phoenix_tui.cli.start
from phoenix_tui.lifecycle.launch import Launch
leave_out_palette()
import phoenix_tui.terminal.driver
from phoenix_tui.app import PhoenixApp

def begin(app):
    seen.extend(sys.modules)
    app.exit()

seen = []
PhoenixApp._begin = begin
folder = Path(sys.argv[1])
PhoenixApp(Launch(folder, folder, folder / "config.toml", folder / "keymap.toml"), None).run(headless=True)
print(*seen)
"""
"""Draws one frame, and prints the modules that it took."""
MOST_OWN: Final = 168
"""Modules of Phoenix; each takes at least 0.1 ms, and 0.2 ms on average."""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("frame")
    done = subprocess.run(
        [sys.executable, "-c", FRAME, str(folder)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_frame_was_drawn_by_these_modules(drawn: set[str]) -> None:
    assert {"textual.app", "phoenix_tui.workspace.screen", "phoenix_tui.widgets.composer"} <= drawn


def test_neither_records_nor_tools_nor_updates_of_the_engine_are_loaded(drawn: set[str]) -> None:
    late = {"engine.records", "engine.updates", "engine.search", "engine.executor", "tools.contract"}
    assert (late | {"tools.displays", "tools.files.protected"}) & drawn == set()


def test_nothing_is_loaded_for_files_that_are_not_there_nor_for_models_that_nobody_asked_for(drawn: set[str]) -> None:
    late = {"phoenix_tui.config.imports", "phoenix_tui.models.servers", "phoenix_tui.features.composing"}
    assert (late | {"json", "tomllib", "shlex"}) & drawn == set()


def test_few_modules_of_phoenix_are_loaded(drawn: set[str]) -> None:
    own = {name for name in drawn if name.partition(".")[0] in {"phoenix_tui", "engine", "tools"}}
    assert len(own) <= MOST_OWN


def test_no_panel_that_is_hidden_at_first_is_loaded(drawn: set[str]) -> None:
    hidden = {"question_panel", "asking_panel", "answer_line", "request_text", "queue_panel", "line_input"}
    assert {f"phoenix_tui.widgets.{name}" for name in hidden} & drawn == set()


def test_no_widget_that_only_the_command_palette_of_textual_needs_is_loaded(drawn: set[str]) -> None:
    needed = {"_input", "_select", "_tree", "_directory_tree", "_option_list"}
    assert {f"textual.widgets.{name}" for name in needed} & drawn == set()


def test_a_palette_that_was_loaded_before_stays() -> None:
    program = (
        "import textual.command as real\n"
        "from phoenix_tui.lifecycle.launch import NAMES, leave_out_palette\n"
        "leave_out_palette()\n"
        "import sys, textual.app\n"
        "print(sys.modules['textual.command'] is real, [name for name in NAMES if not hasattr(real, name)])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True []"
