"""The real app over a fake engine, as the tests of the shell have it."""

from __future__ import annotations

from tests.phoenix_tui.shell.conftest import engine, open_shell

__all__ = ["engine", "open_shell"]
