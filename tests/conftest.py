"""What holds for every test: generated examples are the same on every run."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, database=None, print_blob=True)
# HYPOTHESIS_PROFILE=explore looks for new examples.
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
