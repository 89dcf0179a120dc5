"""`python -m tests.snapshots.renew [SCENE ...]`: stores every screen as it looks now; git shows what has changed."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.snapshots.booth import RENEW
from tests.snapshots.scenes import SCENES


def main() -> int:
    """The exit code of the scenes' tests."""
    names = sys.argv[1:]
    if unknown := [name for name in names if name not in SCENES]:
        sys.stdout.write(f"No scene {', '.join(unknown)}. Scenes: {', '.join(SCENES)}.\n")
        return 2
    tests = [f"tests/snapshots/test_looks.py::test_a_screen_looks_as_it_did[{name}]" for name in names]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *(tests or ["tests/snapshots/test_looks.py"])]
    return subprocess.run(command, env={**os.environ, RENEW: "1"}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
