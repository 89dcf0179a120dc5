"""Folders of long outputs: one for each working directory, so that none reads what was said in another."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def spills_of(base: Path, working_dir: Path) -> Path:
    """The part of `base` that belongs to the conversations of a working directory."""
    return base / hashlib.sha256(os.fsencode(os.path.realpath(working_dir))).hexdigest()[:16]


def spill_name(conversation_id: str, call_id: str) -> str:
    """The file of a call's whole output; providers choose call ids, so they are no file names."""
    name = hashlib.sha256(f"{conversation_id}/{call_id}".encode("utf-8", "replace")).hexdigest()
    return f"output-{name[:16]}.txt"
