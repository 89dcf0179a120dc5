"""The schema of the ACP library loads without what nothing reads, and pydantic is as before behind it."""

from __future__ import annotations

import subprocess
import sys

from tests.support.cli import ROOT

LOADS = """
from phoenix_tui.acp.quick_schema import load_schema
load_schema()
from acp.schema import PromptRequest, TextContentBlock
from pydantic import BaseModel, ConfigDict

class Later(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)
    name: str
    '''A name.'''

read = PromptRequest.model_validate({"sessionId": "s", "prompt": [{"type": "text", "text": "Hi"}]})
print(PromptRequest.model_fields["prompt"].description, Later.model_config.get("defer_build"))
print(read.model_dump_json(by_alias=True, exclude_none=True))
try:
    PromptRequest.model_validate({"sessionId": 5, "prompt": []})
except ValueError as error:
    print(error.error_count())
"""


def test_messages_are_read_and_written_without_descriptions_and_others_are_built_as_ever() -> None:
    done = subprocess.run([sys.executable, "-c", LOADS], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "None None",
        '{"sessionId":"s","prompt":[{"text":"Hi","type":"text"}]}',
        "1",
    ]
