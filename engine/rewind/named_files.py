"""Files that tools name before an edit: those that a step can keep, and their changes; nothing touches a disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from engine.ports.files import Coverage, FileChange, FileState, same_state
from tools.files.protected import looks_secret


def sorted_paths(folder: Path, paths: Iterable[Path]) -> tuple[list[bytes], list[str]]:
    """The resolved `paths` below the folder, relative to it, and those outside, which are not kept."""
    inside, outside = list[bytes](), list[str]()
    for path in paths:
        if path != folder and path.is_relative_to(folder):
            inside.append(os.fsencode(path.relative_to(folder)))
        else:
            outside.append(str(path))
    return inside, outside


def coverage_of(states: Mapping[bytes, FileState | None], outside: Sequence[str]) -> Coverage:
    """Coverage of the named files: those that cannot be restored."""
    missing = [os.fsdecode(path) for path, state in states.items() if state is not None and not state.kept]
    return Coverage(
        left_out=tuple(outside),
        left_out_count=len(outside),
        too_large=tuple(one for one in missing if not looks_secret(one)),
        secret=tuple(one for one in missing if looks_secret(one)),
    )


def joined(one: Coverage, other: Coverage) -> Coverage:
    """Union of two coverages; sums and reasons of `other` count."""
    new = [name for name in one.left_out if name not in other.left_out]
    return replace(
        other,
        left_out=(*new, *other.left_out),
        left_out_count=len(new) + other.left_out_count,
        too_large=tuple(dict.fromkeys((*one.too_large, *other.too_large))),
        secret=tuple(dict.fromkeys((*one.secret, *other.secret))),
        refusal=other.refusal or one.refusal,
        over=max(one.over, other.over),
    )


def ended(began: Coverage, after: Coverage) -> Coverage:
    """The coverage of a step from its first look and its last."""
    return replace(began, refusal=after.refusal or began.refusal, gone=after.gone)


def merged(
    found: Iterable[FileChange], named: Iterable[FileChange], now: Mapping[bytes, FileState | None]
) -> tuple[FileChange, ...]:
    """The changes that two looks found, with those of named files, whose earlier state was kept before both."""
    changes = {one.path: one for one in found}
    for one in named:
        changes.pop(one.path, None)
        present = now.get(one.path)
        if not same_state(one.before, present):
            changes[one.path] = FileChange(one.path, one.before, present)
    return tuple(changes[path] for path in sorted(changes))
