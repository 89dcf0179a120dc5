"""Screenshots: a pasted path becomes a chip, the server gets the picture small enough, a broken one is one sentence."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.cli import with_claude
from tests.support.journeys import everything_stored, says
from tests.support.loopback import Loopback, serve
from tests.support.program import ENTER, program

pytestmark = pytest.mark.pty
MOST_PIXELS = 1568


def picture(path: Path, width: int, height: int) -> Path:
    Image.effect_noise((width, height), 40).convert("RGB").save(path)
    return path


def sent_images(server: Loopback) -> list[Image.Image]:
    messages: Any = server.requests[-1].json["messages"]
    blocks = [block for message in messages for block in message["content"] if block["type"] == "image"]
    return [Image.open(io.BytesIO(base64.b64decode(block["source"]["data"]))) for block in blocks]


async def test_a_pasted_path_becomes_a_chip_and_goes_to_the_server_small_enough(tmp_path: Path) -> None:
    path = picture(tmp_path / "a shot.png", 2400, 1200)
    async with serve(says("A fine picture.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as running:
            await running.ready()
            running.paste(str(path).replace(" ", "\\ "))
            await running.shows("[image 1: 1568×784]")
            assert "a shot" not in running.text
            await running.send("What is it?")
            await running.shows("A fine picture.")
            await running.lacks("Backspace removes the last")
        (image,) = sent_images(server)
        assert max(image.size) == MOST_PIXELS
        assert base64.b64encode(path.read_bytes()[:600]).decode() not in everything_stored(phoenix)


async def test_a_broken_image_is_one_sentence_and_backspace_on_an_empty_line_drops_a_good_one(tmp_path: Path) -> None:
    path, whole = tmp_path / "broken.png", picture(tmp_path / "whole.png", 300, 300)
    path.write_bytes(whole.read_bytes()[:2000])
    async with serve(says("Fine.")) as server, program(with_claude(tmp_path, server.url)) as running:
        await running.ready()
        running.paste(str(path))
        await running.until(lambda: "image" in running.words.lower() and "." in running.words, "a sentence")
        assert "Traceback" not in running.text
        assert "[image 1" not in running.text
        assert server.requests == []
        running.paste(f"'{whole}'")
        await running.shows("[image 1: 300×300]")
        running.type(b"\x7f")
        await running.lacks("[image 1: 300×300]")
        await running.send("No picture")
        await running.shows("Fine.")
        assert sent_images(server) == []


async def test_an_image_alone_can_be_sent(tmp_path: Path) -> None:
    path = picture(tmp_path / "shot.png", 40, 30)
    async with serve(says("Fine.")) as server, program(with_claude(tmp_path, server.url), "-i", str(path)) as running:
        await running.shows("[image 1: 40×30]")
        running.type(ENTER)
        await running.shows("Fine.")
        assert [image.size for image in sent_images(server)] == [(40, 30)]
