"""A writer killed at any moment leaves the whole old or the whole new content (FAULTS 32)."""

from __future__ import annotations

import random
import select
import stat
import subprocess
import sys
from pathlib import Path

import pytest

SIZE = 300_000
WRITER = """
import sys
from pathlib import Path
from tools.files.writing import replace_file
from tools.files.location import Location
location = Location(Path(sys.argv[1]), ("target",), "target")
print("ready", flush=True)
while True:
    for letter in b"ab":
        replace_file(location, bytes([letter]) * int(sys.argv[2]))
"""


@pytest.mark.slow
def test_kill_9_leaves_old_or_new_never_a_mixture(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"a" * SIZE)
    target.chmod(0o754)
    link.symlink_to("target")
    chance = random.Random(7)
    seen: set[bytes] = set()
    for _ in range(25):
        _write_until_killed(tmp_path, chance.uniform(0, 0.03))
        content = target.read_bytes()
        assert content in {b"a" * SIZE, b"b" * SIZE}
        assert stat.S_IMODE(target.stat().st_mode) == 0o754
        assert link.is_symlink()
        seen.add(content[:1])
    assert seen == {b"a", b"b"}


def _write_until_killed(folder: Path, seconds: float) -> None:
    argv = [sys.executable, "-c", WRITER, str(folder), str(SIZE)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(argv, cwd=root, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        # Nothing more is printed, so this waits as long as the writer is to live.
        select.select([writer.stdout], [], [], seconds)
        writer.kill()
