"""Phoenix whose commands reach host names of a test: those that TEST_HOSTS gives, as JSON of `proxying.Answers`.

usage: python -m tests.support.hosts_screen ARGUMENTS
"""

from __future__ import annotations

import json
import os
import sys

from phoenix_tui.__main__ import main
from tests.support.proxying import program
from tools.process import start
from tools.process.host_proxy import HostProxy
from tools.process.supervision import Supervision


def _proxy(supervision: Supervision, _: tuple[str, ...]) -> HostProxy:
    return HostProxy(supervision, program(json.loads(os.environ["TEST_HOSTS"])))


if __name__ == "__main__":
    setattr(start, "HostProxy", _proxy)  # noqa: B010 - a type checker refuses to replace a class
    sys.exit(main())
