"""Loads modules behind the first frame, in a thread and one after the other."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import Final

SELDOM: Final = 0.005
"""Seconds between two switches of threads while modules are loaded, Python's own value: with the half millisecond that
keys need later, a start takes 50 to 80 ms of processor time more.
"""
OUT: Final = 0.001
"""Seconds in which the thread that writes takes the first frame."""

_lock: Final = Lock()
_loaded: Final[dict[str, ModuleType]] = {}
"""Modules that were imported whole: one in `sys.modules` may still be half-way, in another thread."""


@asynccontextmanager
async def seldom_switched() -> AsyncGenerator[None]:
    """Switch threads rarely, once the first frame is out, until the modules loaded here are ready."""
    await asyncio.sleep(OUT)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SELDOM)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


async def load(name: str) -> ModuleType:
    """Import a module in a thread; a second request meanwhile waits. A loaded one is returned at once.

    Threads that import side by side get nothing done sooner, and pay for each switch.

    Raises:
        ImportError: there is none.
    """
    if name not in _loaded:
        _loaded[name] = await asyncio.to_thread(_import, name)
    return _loaded[name]


def _import(name: str) -> ModuleType:
    with _lock:
        return import_module(name)
