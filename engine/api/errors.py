"""Errors of engine requests; each is one sentence for the user."""

from __future__ import annotations

from typing import Final

from engine.executor.requests import EngineError
from engine.ports import ProviderError, StorageError

ENGINE_ERRORS: Final = (EngineError, StorageError, ProviderError)
