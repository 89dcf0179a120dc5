"""The user's browser: started without keys, and not from the working directory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Final

from tools.process.environment import is_secret
from tools.process.programs import foreground_environment

OPEN: Final = "import sys, webbrowser; webbrowser.open(sys.argv[1])"


def open_in_browser(url: str, environment: Mapping[str, str] = os.environ) -> None:
    """Have the desktop open an address, and wait for nothing.

    Raises:
        OSError: no process can be started.
    """
    started = subprocess.Popen(
        [sys.executable, "-I", "-c", OPEN, url],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=for_desktop(environment),
        start_new_session=True,
    )
    threading.Thread(target=started.wait, daemon=True).start()  # collects it


def for_desktop(environment: Mapping[str, str]) -> dict[str, str]:
    """Environment of a program of the desktop: everything except variables named as secrets or with a password, and
    what leads to a program of an agent.
    """
    return foreground_environment({name: value for name, value in environment.items() if not is_secret(name, value)})
