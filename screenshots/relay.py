"""A small git repository with one failing test, the same at every making."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from PIL import Image, ImageDraw

FILES: Final = {
    "README.md": "# relay\n\nForwards webhooks and tries again when the other side is away.\n\n"
    "Run the tests with `python3 -m unittest`.\n",
    "relay/__init__.py": '"""Forwards webhooks."""\n',
    "relay/backoff.py": '''"""How long to wait between two tries."""

LIMIT = 30.0


def delay(attempt: int, base: float = 0.5) -> float:
    """Seconds before the next try: doubles each time."""
    return base * 2**attempt
''',
    "relay/forward.py": '''"""Sends one webhook on."""

import time

from relay.backoff import delay


def forward(send, body: bytes, tries: int = 5) -> bool:
    """Whether the other side took it."""
    for attempt in range(tries):
        if send(body):
            return True
        time.sleep(delay(attempt))
    return False
''',
    "tests/__init__.py": "",
    "tests/test_backoff.py": """import unittest

from relay.backoff import LIMIT, delay


class Backoff(unittest.TestCase):
    def test_it_doubles(self):
        self.assertEqual([delay(n) for n in range(4)], [0.5, 1.0, 2.0, 4.0])

    def test_it_never_waits_longer_than_the_limit(self):
        self.assertLessEqual(delay(12), LIMIT)
""",
    "soak.sh": """for n in 1 2 3 4 5 6 7; do
  echo "round $n: 250 webhooks forwarded, 0 lost"
done
sleep 300
""",
}
IDENTITY: Final = {
    "GIT_AUTHOR_NAME": "Robin Vale",
    "GIT_AUTHOR_EMAIL": "robin@example.org",
    "GIT_COMMITTER_NAME": "Robin Vale",
    "GIT_COMMITTER_EMAIL": "robin@example.org",
    "GIT_AUTHOR_DATE": "2026-11-02T09:00:00+00:00",
    "GIT_COMMITTER_DATE": "2026-11-02T09:00:00+00:00",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def write_relay(folder: Path) -> None:
    """Write its files, also over what an agent has made of them."""
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")


def make_relay(folder: Path) -> None:
    """Write the repository to a folder and commit it."""
    write_relay(folder)
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Forward webhooks"]):
        subprocess.run(["git", *command], cwd=folder, env={**os.environ, **IDENTITY}, check=True)


def make_chart(path: Path) -> None:
    """Draw what a user might have taken a picture of: a latency chart with one spike."""
    image = Image.new("RGB", (640, 360), "#ffffff")
    draw = ImageDraw.Draw(image)
    heights = [40, 44, 38, 52, 47, 300, 49, 43, 40, 45]
    for index, height in enumerate(heights):
        colour = "#c0392b" if height > 100 else "#2e86c1"
        draw.rectangle((30 + index * 60, 340 - height, 70 + index * 60, 340), colour)
    image.save(path)
