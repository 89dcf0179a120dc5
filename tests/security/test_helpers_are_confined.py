"""SECURITY V5: helpers of Phoenix read what they need and reach nothing else."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.outside import folder_outside_temp
from tests.support.sandboxes import home, sandbox
from tests.support.tools import use
from tools.contract import ImageRejected
from tools.images.decoder import ImageDecoder
from tools.search import Search

TAKEN_OVER = """
import json, pathlib, socket, sys
sys.stdin.buffer.read()
def tried(function):
    try:
        return function()
    except OSError:
        return "refused"
address = pathlib.Path(__file__).with_name("port")
found = {{
    "key": tried(lambda: pathlib.Path("{key}").read_text()),
    "write": tried(lambda: pathlib.Path("{outside}").write_text("x")),
    "temporary": tried(lambda: pathlib.Path("/tmp/phx-decoded").write_text("x")),
    "network": tried(lambda: socket.create_connection(("127.0.0.1", int(address.read_text())), 2) and "reached"),
}}
print(json.dumps({{"type": "error", "error": json.dumps(found), "message": json.dumps(found)}}))
sys.exit({code})
"""
REFUSED = '"write": "refused", "temporary": "refused", "network": "refused"'


@pytest.fixture
def taken_over() -> Iterator[Path]:
    """A home folder with a key, a listening port, and programs that act as a decoder taken over by an image."""
    with folder_outside_temp() as place, home(place), socket.create_server(("127.0.0.1", 0)) as server:
        (place / ".ssh").mkdir()
        (place / ".ssh" / "id").write_text("secret", "ascii")
        (place / "work").mkdir()
        (place / "work" / "text").write_text("needle", "ascii")
        (place / "port").write_text(str(server.getsockname()[1]), "ascii")
        for name, code in (("decoder.py", 0), ("grep.py", 2)):
            text = TAKEN_OVER.format(key=place / ".ssh" / "id", outside=place / "no", code=code)
            (place / name).write_text(text, "ascii")
        yield place
        assert not (place / "no").exists()


async def test_a_decoder_that_an_image_took_over_reaches_nothing(
    taken_over: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.images.decoder._WORKER", taken_over / "decoder.py")
    async with sandbox(taken_over / "work") as box:
        with pytest.raises(ImageRejected) as rejected:
            await ImageDecoder(box.processes.runner).prepare(b"image")
    assert REFUSED in str(rejected.value)
    assert "secret" not in str(rejected.value)


async def test_a_searcher_that_a_file_took_over_reaches_nothing(
    taken_over: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.search._GREP", taken_over / "grep.py")
    monkeypatch.setattr("tools.search.find_program", lambda name, folder: "")
    async with sandbox(taken_over / "work") as box:
        said = (await use(Search(box.processes.runner), taken_over / "work", pattern="needle")).text
    assert REFUSED in said
    assert "secret" not in said
