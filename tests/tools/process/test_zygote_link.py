"""The link to the zygote: its end is the zygote's, whoever still listens on it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE, poll_blocking
from tools.process.link import spawn_zygote


def test_the_zygote_ends_with_the_link_though_a_thread_still_listens() -> None:
    link = spawn_zygote()
    pid = link.pid
    listens = threading.Thread(target=link.wait_for_signal, args=(PATIENCE,), daemon=True)
    listens.start()
    assert poll_blocking(lambda: _sleeps(listens))
    link.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def _sleeps(thread: threading.Thread) -> bool:
    """Tell whether the thread waits for something, here for a word of the zygote."""
    return Path(f"/proc/self/task/{thread.native_id}/stat").read_text("ascii").rpartition(")")[2].split()[0] == "S"
