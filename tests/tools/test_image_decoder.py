"""Every image ends as one that a provider takes, or as one sentence (SPEC T-IMG, FAULTS 51-53)."""

from __future__ import annotations

import asyncio
import base64
import io
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from PIL import Image

from tests.support.plain_runner import PlainRunner
from tests.support.tools import ScriptedRunner, use
from tools.contract import Captured, Finished, ImageDisplay, ImageRejected, PreparedImage
from tools.file_tools import ReadImage
from tools.images.decoder import ImageDecoder


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def picture(width: int, height: int, mode: str = "RGB") -> Image.Image:
    """Left half red, right half blue."""
    image = Image.new("RGB", (width, height), "red")
    image.paste("blue", (width // 2, 0, width, height))
    return image.convert(mode)


def noise(width: int, height: int) -> Image.Image:
    bands = [Image.effect_noise((width, height), 120) for _ in range(3)]
    return Image.merge("RGB", bands)


def blank_png(width: int, height: int) -> bytes:
    """A one-colour PNG of any size in a few kilobytes."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    packer, row = zlib.compressobj(9), bytes(width // 8 + 2)
    rows = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


ROOT = Path(__file__).parents[2]


async def prepare(raw: bytes) -> PreparedImage:
    return await ImageDecoder(PlainRunner()).prepare(raw)


def decoded(image: PreparedImage) -> Image.Image:
    """The result, whose bytes must be what its media type says."""
    result = Image.open(io.BytesIO(image.data))
    result.load()
    assert Image.MIME[result.format or ""] == image.media_type
    assert result.size == (image.width, image.height)
    return result


def is_near(colour: object, red: int, green: int, blue: int) -> bool:
    assert isinstance(colour, tuple)
    return all(abs(one - other) < 40 for one, other in zip(colour, (red, green, blue), strict=False))


async def test_a_4k_screenshot_becomes_1568_by_882() -> None:
    raw = encoded(picture(3840, 2160), "PNG")
    image = await prepare(raw)
    assert (image.width, image.height, image.media_type) == (1568, 882, "image/png")
    assert (image.original_width, image.original_height, image.original_bytes) == (3840, 2160, len(raw))
    decoded(image)


@pytest.mark.parametrize(("kind", "media"), [("PNG", "png"), ("JPEG", "jpeg"), ("GIF", "gif"), ("WEBP", "webp")])
async def test_what_fits_is_untouched(kind: str, media: str) -> None:
    raw = encoded(picture(1568, 1568), kind)
    image = await prepare(raw)
    assert (image.data, image.media_type, image.width, image.height) == (raw, f"image/{media}", 1568, 1568)


@pytest.mark.parametrize(
    ("image", "kind", "media"),
    [
        (picture(40, 20), "BMP", "image/png"),
        (picture(40, 20), "TIFF", "image/png"),
        (picture(40, 20, "CMYK"), "JPEG", "image/jpeg"),
        (picture(40, 20, "CMYK"), "TIFF", "image/png"),
        (picture(1600, 800), "WEBP", "image/jpeg"),
        (picture(1600, 800).quantize(4), "PNG", "image/png"),
    ],
)
async def test_any_kind_becomes_one_every_provider_knows(image: Image.Image, kind: str, media: str) -> None:
    prepared = await prepare(encoded(image, kind))
    assert prepared.media_type == media
    result = decoded(prepared).convert("RGB")
    assert is_near(result.getpixel((5, 5)), 255, 0, 0)
    assert is_near(result.getpixel((prepared.width - 5, 5)), 0, 0, 255)


async def test_16_bits_a_channel_become_8() -> None:
    grey = Image.new("I;16", (30, 10), 40000)
    result = decoded(await prepare(encoded(grey, "PNG")))
    assert result.mode == "L"
    assert result.getpixel((3, 3)) == pytest.approx(40000 // 257, abs=1)


@pytest.mark.parametrize(
    ("orientation", "size", "red_at"),
    [(1, (80, 40), (5, 5)), (3, (80, 40), (75, 5)), (6, (40, 80), (5, 5)), (8, (40, 80), (5, 75))],
)
async def test_a_turned_photo_is_turned_back(orientation: int, size: tuple[int, int], red_at: tuple[int, int]) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    prepared = await prepare(encoded(picture(80, 40), "JPEG", exif=exif.tobytes(), quality=95))
    result = decoded(prepared)
    assert result.size == size
    assert is_near(result.getpixel(red_at), 255, 0, 0)
    assert orientation == 1 or not result.getexif()


async def test_of_an_animation_the_first_frame_is_taken() -> None:
    frames = [Image.new("RGB", (30, 30), colour) for colour in ("red", "lime", "blue")]
    raw = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    prepared = await prepare(raw)
    result = decoded(prepared)
    assert (prepared.media_type, getattr(result, "n_frames", 1)) == ("image/png", 1)
    assert is_near(result.convert("RGB").getpixel((5, 5)), 255, 0, 0)


async def test_see_through_stays_see_through() -> None:
    image = Image.new("RGBA", (2000, 100), (255, 0, 0, 0))
    for kind in ("PNG", "WEBP", "TIFF"):
        result = decoded(await prepare(encoded(image, kind)))
        assert (result.format, result.mode, result.getchannel("A").getextrema()) == ("PNG", "RGBA", (0, 0))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
async def test_what_stays_above_5_megabytes_becomes_a_jpeg_below_it(mode: str) -> None:
    raw = encoded(noise(1568, 1200).convert(mode), "PNG")
    assert len(base64.b64encode(raw)) > 5_000_000
    prepared = await prepare(raw)
    assert prepared.media_type == "image/jpeg"
    assert len(base64.b64encode(prepared.data)) <= 5_000_000
    decoded(prepared)


# Runs in an interpreter of its own: the peak of a program includes that of the process that starts it.
MEASURING = """
import asyncio, resource, sys
from tests.tools.test_image_decoder import prepare
from tools.contract import ImageRejected
try:
    asyncio.run(prepare(sys.stdin.buffer.read()))
except ImageRejected as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.parametrize(
    ("width", "height"), [(13000, 13000), (40000, 2000), (16385, 100)], ids=["bomb", "long", "a pixel too long"]
)
def test_a_bomb_is_refused_from_its_header(width: int, height: int) -> None:
    raw = blank_png(width, height)
    assert len(raw) < 64 * 1024
    measured = subprocess.run([sys.executable, "-c", MEASURING], input=raw, capture_output=True, check=True, cwd=ROOT)
    said, peak = measured.stdout.decode().splitlines()
    assert said == f"This PNG image is {width}x{height}; the limit is 40 megapixels and 16,384 pixels a side."
    # Decoded, the bomb would need 500 MB.
    assert int(peak) < 200 * 1024


@pytest.mark.slow
async def test_the_largest_allowed_image_fits_into_the_memory_limit() -> None:
    assert (await prepare(encoded(Image.new("CMYK", (7900, 5000)), "JPEG"))).width == 1568
    assert (await prepare(encoded(Image.new("RGBA", (7900, 5000)), "PNG", compress_level=1))).width == 1568


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"", "This image is empty."),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "This is not a PNG, JPEG, GIF, WebP, BMP or TIFF image."),
        (b"\x89PNG\r\n\x1a\n", "This is not a PNG, JPEG, GIF, WebP, BMP or TIFF image."),
    ],
    ids=["empty", "svg", "signature"],
)
async def test_what_cannot_be_used_is_refused_in_one_sentence(raw: bytes, sentence: str) -> None:
    with pytest.raises(ImageRejected) as caught:
        await prepare(raw)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP"])
async def test_an_image_that_is_cut_off_is_refused_in_one_sentence(kind: str) -> None:
    raw = encoded(noise(200, 200), kind)
    with pytest.raises(ImageRejected) as caught:
        await prepare(raw[: len(raw) * 2 // 3])
    assert str(caught.value) == f"This {kind} image is damaged or cut off."


@pytest.mark.parametrize(
    "finished",
    [
        Finished(None, 9, Captured(b""), 1.0),
        Finished(None, None, Captured(b""), 30.0, timed_out=True),
        Finished(0, None, Captured(b"Traceback ..."), 1.0),
        Finished(0, None, Captured(b"{}\n", dropped=9), 1.0),
    ],
)
async def test_a_worker_that_dies_or_babbles_is_a_refusal(finished: Finished) -> None:
    with pytest.raises(ImageRejected, match="could not be decoded"):
        await ImageDecoder(ScriptedRunner(finished)).prepare(b"x")


def test_the_image_library_stays_out_of_this_process() -> None:
    script = (
        "import sys, tools.registry, tools.images.decoder; sys.exit('PIL' in sys.modules or 'ignore' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", script], check=False, cwd=Path(__file__).parents[2])
    assert ended.returncode == 0


async def test_decoding_leaves_the_loop_free() -> None:
    raw = encoded(noise(1200, 1000), "PNG", compress_level=1)
    running = asyncio.create_task(prepare(raw))
    turns = 0
    while not running.done():
        await asyncio.wait([running], timeout=0.001)
        turns += 1
    assert turns > 5


async def test_read_image_gives_the_model_the_picture_and_the_eye_its_size(tmp_path: Path) -> None:
    (tmp_path / "shot.gif").write_bytes(encoded(picture(3840, 2160), "PNG"))
    output = await use(ReadImage(ImageDecoder(PlainRunner())), tmp_path, path="shot.gif")
    assert output.text == "shot.gif: image of 1568x882 pixels. Shrunk from 3840x2160."
    assert output.display == ImageDisplay("shot.gif", 1568, 882)
    assert [image.media_type for image in output.images] == ["image/png"]


async def test_read_image_refuses_what_it_cannot_show(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("hello")
    tool = ReadImage(ImageDecoder(PlainRunner()))
    output = await use(tool, tmp_path, path="text.png")
    assert (output.text, output.is_error) == ("text.png: This is not a PNG, JPEG, GIF, WebP, BMP or TIFF image.", True)
    assert (await use(tool, tmp_path, path="gone.png")).text == "gone.png does not exist."
    assert (await use(tool, tmp_path, path="../x.png")).is_error
