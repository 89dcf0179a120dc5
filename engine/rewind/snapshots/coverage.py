"""Describes files that a snapshot cannot restore: left out, too large, keys, beyond the share of a folder, or gone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from engine.ports.files import CheckpointLimits, Coverage
from engine.rewind.snapshots.folder_snapshots import LookAt, SeenFile
from engine.rewind.snapshots.walk import MADE_AGAIN
from tools.files.protected import looks_secret

SHOWN = 20
MISSED = frozenset({b"node_modules", b".venv", b"venv", b".tox", b".nox", b".terraform"})
"""Folders that tools recreate, but slowly: reported when one is gone."""


def coverage_of(entries: Mapping[bytes, SeenFile], left_out: Iterable[bytes], limits: CheckpointLimits) -> Coverage:
    """The coverage of a look."""
    missing = sorted(path for path, seen in entries.items() if not seen.state.kept)
    secret = [path for path in missing if looks_secret(os.fsdecode(path))]
    known = frozenset(secret)
    large = [path for path in missing if entries[path].state.size > limits.file and path not in known]
    names = sorted(path for path in left_out if _name(path) not in MADE_AGAIN)
    return Coverage(
        left_out=_show_paths(names),
        left_out_count=len(names),
        too_large=_show_paths(large),
        secret=_show_paths(secret),
        over=len(missing) - len(secret) - len(large),
    )


def with_gone(now: LookAt, before: LookAt, folder: int) -> Coverage:
    """The coverage of a snapshot, with paths left out by the one before and now gone; `folder` is an open one."""
    missing = sorted(before.left_out - now.left_out - now.entries.keys())
    gone = [path for path in missing if _is_missed(path) and not _stands(folder, path)]
    return replace(now.coverage, gone=_show_paths(gone)) if gone else now.coverage


def _is_missed(path: bytes) -> bool:
    return _name(path) in MISSED or not any(part in MADE_AGAIN for part in path.split(b"/"))


def _stands(folder: int, path: bytes) -> bool:
    try:
        os.stat(path, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _show_paths(paths: list[bytes]) -> tuple[str, ...]:
    return tuple(os.fsdecode(one) for one in paths[:SHOWN])


def _name(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]
