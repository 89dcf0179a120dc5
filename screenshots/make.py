"""`make screenshots`: drives the real program in a pseudo-terminal and paints its screens as PNG beside this file.

Names of scenes as arguments make only those; without, all.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from screenshots.painter import FONTS  # noqa: E402 - started as a file: the root must be importable first
from screenshots.scenes import SCENES  # noqa: E402 - as above
from screenshots.studio import studio  # noqa: E402 - as above


async def make(names: list[str]) -> int:
    """Play the scenes one after another; the number of those that failed."""
    failed = 0
    for name in names:
        try:
            with studio(Path(__file__).parent) as place:
                await SCENES[name](place)
        except AssertionError as error:
            failed += 1
            _say(f"{name} failed: {error}")
        else:
            _say(f"{name}: {', '.join(place.taken)}")
    return failed


def main() -> int:
    """Exit code 1 when a scene failed, 2 for an unknown one."""
    names = sys.argv[1:] or list(SCENES)
    if unknown := [name for name in names if name not in SCENES]:
        _say(f"No scene {', '.join(unknown)}. Scenes: {', '.join(SCENES)}.")
        return 2
    if not FONTS.is_dir():
        _say(f"No pictures made: the font DejaVu Sans Mono is not in {FONTS} (package fonts-dejavu-core).")
        return 0
    return 1 if asyncio.run(make(names)) else 0


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
