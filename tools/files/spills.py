"""Folders of long outputs: one for each working directory, so that none reads what was said in another."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def spills_of(base: Path, working_dir: Path) -> Path:
    """The part of `base` that belongs to the conversations of a working directory."""
    return base / hashlib.sha256(os.fsencode(os.path.realpath(working_dir))).hexdigest()[:16]
