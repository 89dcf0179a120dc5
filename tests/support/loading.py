"""Packages that a program loads, in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

from tests.support.cli import ROOT


def loaded_by(program: str) -> set[str]:
    """Names of the packages that are loaded after a program ran."""
    program += "\nimport sys; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}
