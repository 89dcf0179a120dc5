"""Time that stops for Phoenix's screens and runs for all else: asyncio, Textual, the tests."""

from __future__ import annotations

import pkgutil
import sys
import time
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any, Final

import pytest

NOW: Final = 1_794_823_200.0
"""2026-11-16 10:00:00 UTC."""
UPTIME: Final = 50_000.0
"""Value of the monotonic clock."""
SCREENS: Final = (
    "workspace",
    "modals",
    "widgets",
    "commands",
    "panes",
    "images",
    "keys",
    "text",
    "styles",
    "features",
)
"""Packages of phoenix_tui that are shown, loaded late by Phoenix itself: they must be there to be stopped."""
STOPPED: Final = ("phoenix_tui.", "tools.clock", "tests.support.fake_")


class StillTime(ModuleType):
    """The module `time`, its two clocks stopped."""

    def time(self) -> float:
        """Seconds since 1970."""
        return NOW

    def monotonic(self) -> float:
        """Seconds since some time."""
        return UPTIME

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


STILL: Final = StillTime("time")
INSTEAD: Final = {time.time: STILL.time, time.monotonic: STILL.monotonic}


def load_screens() -> None:
    """Import everything that can come on the screen."""
    import_module("phoenix_tui.terminal.attention")
    for name in SCREENS:
        package = import_module(f"phoenix_tui.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)


def stop_time(patch: pytest.MonkeyPatch) -> None:
    """Stop the clocks of every module of Phoenix until `patch` is undone."""
    load_screens()
    for name, module in list(sys.modules.items()):
        if name.startswith(STOPPED):
            _stop_module(patch, module)


def _stop_module(patch: pytest.MonkeyPatch, module: ModuleType) -> None:
    if vars(module).get("time") is time:
        patch.setattr(module, "time", STILL)
    for value in list(vars(module).values()):
        if getattr(value, "__module__", "") != module.__name__:
            continue
        _stop_defaults(patch, value)
        if isinstance(value, type):
            for name, member in list(vars(value).items()):
                if isinstance(member, staticmethod) and (still := _instead(member.__func__)) is not None:
                    patch.setattr(value, name, staticmethod(still))
                _stop_defaults(patch, member)


def _stop_defaults(patch: pytest.MonkeyPatch, function: object) -> None:
    """A clock given where none is asked for."""
    if not isinstance(function, FunctionType):
        return
    if function.__defaults__ and any(map(_instead, function.__defaults__)):
        patch.setattr(function, "__defaults__", tuple(_instead(one) or one for one in function.__defaults__))
    by_name = function.__kwdefaults__ or {}
    for name, value in by_name.items():
        if (still := _instead(value)) is not None:
            patch.setitem(by_name, name, still)


def _instead(value: object) -> Any:
    return next((still for clock, still in INSTEAD.items() if value is clock), None)
