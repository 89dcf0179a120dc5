"""The image process: reads one untrusted image from standard input, answers on standard output, and ends.

Run as a script with `python -I`, under its own memory and time limits. The answer is one JSON line, either
`error`, or `media_type`, `width`, `height`, `original_width`, `original_height` and `unchanged`; the new bytes
follow unless the image is unchanged.
"""

from __future__ import annotations

import io
import json
import os
import resource
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from PIL import Image, ImageOps, UnidentifiedImageError

MOST_PIXELS = 40_000_000
LONGEST_SIDE = 16_384
"""Largest image that is decoded (FAULTS 3.5)."""
TARGET_SIDE = 1568
"""Pixels; providers shrink anything longer themselves (SPEC T-IMG)."""
MOST_BASE64 = 5_000_000
MOST_BYTES = MOST_BASE64 // 4 * 3
"""5 MB is the providers' limit, counted in base64."""
MEMORY = 600 * 1024 * 1024
CPU_SECONDS = 20

_MEDIA_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
# A JPEG with several pictures in it calls itself MPO.
_PHOTOS = frozenset({"JPEG", "MPO", "WEBP"})
_QUALITIES = (85, 75, 60, 45)
_ORIENTATION = 0x0112
_SMALLEST_SIDE = 16


class Rejected(Exception):
    """The image cannot be used; the message is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """An image as it goes to a provider."""

    content: bytes
    media_type: str
    width: int
    height: int


def main() -> None:
    """Answer for the image on standard input."""
    # Both streams of a child come back as one; a library's warning must not land in the answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    limit(resource.RLIMIT_CPU, CPU_SECONDS)
    limit(resource.RLIMIT_AS, MEMORY)
    raw = sys.stdin.buffer.read()
    try:
        answer, content = prepare(raw)
    except Rejected as rejection:
        answer, content = {"error": str(rejection)}, b""
    except MemoryError:
        answer, content = {"error": "This image needs more memory to decode than is allowed."}, b""
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + content)


def limit(kind: int, value: int) -> None:
    """Set a limit where the system knows it; macOS refuses one on memory."""
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (value, value))


def prepare(raw: bytes) -> tuple[dict[str, object], bytes]:
    """The answer and the new bytes for one image.

    Raises:
        Rejected: it is no image, too large, or damaged.
    """
    image = open_image(raw)
    kind = image.format or ""
    width, height = image.size
    try:
        encoded = None if _is_fit(image, raw) else _convert(image, kind)
    except (OSError, ValueError, SyntaxError, EOFError, ArithmeticError) as error:
        raise Rejected(f"This {_name_kind(kind)} is damaged or cut off.") from error
    answer: dict[str, object] = {
        "unchanged": encoded is None,
        "media_type": encoded.media_type if encoded else _MEDIA_TYPES[kind],
        "width": encoded.width if encoded else width,
        "height": encoded.height if encoded else height,
        "original_width": width,
        "original_height": height,
    }
    return answer, encoded.content if encoded else b""


def open_image(raw: bytes) -> Image.Image:
    """The image with only its header read, within the limits of size."""
    # Our limits are lower than the library's, which only warns.
    Image.MAX_IMAGE_PIXELS = None
    try:
        image: Image.Image = Image.open(io.BytesIO(raw), formats=_FORMATS)
    except UnidentifiedImageError as error:
        raise Rejected("This is not a PNG, JPEG, GIF, WebP, BMP or TIFF image.") from error
    except (OSError, ValueError, SyntaxError, EOFError, ArithmeticError) as error:
        raise Rejected("The header of this image is damaged.") from error
    width, height = image.size
    if width * height > MOST_PIXELS or max(width, height) > LONGEST_SIDE:
        raise Rejected(
            f"This {_name_kind(image.format or '')} is {width}x{height}; the limit is {MOST_PIXELS // 1_000_000} "
            f"megapixels and {LONGEST_SIDE:,} pixels a side."
        )
    return image


def _is_fit(image: Image.Image, raw: bytes) -> bool:
    """True when the bytes can be sent unchanged; decodes them all, so that a damaged image is found here."""
    fit = (
        image.format in _MEDIA_TYPES
        and max(image.size) <= TARGET_SIDE
        and len(raw) <= MOST_BYTES
        and not getattr(image, "is_animated", False)
        and image.mode in {"1", "L", "LA", "P", "RGB", "RGBA"}
        and not (image.format == "PNG" and raw[24] > 8)
        and image.getexif().get(_ORIENTATION, 1) == 1
    )
    if fit:
        image.load()
    return fit


def _convert(image: Image.Image, kind: str) -> Encoded:
    orientation = image.getexif().get(_ORIENTATION, 1)
    if image.mode in {"L", "RGB"}:
        # Lets the JPEG decoder skip pixels that would be dropped.
        image.draft(None, (2 * TARGET_SIDE, 2 * TARGET_SIDE))
    picture = _eight_bit(image)
    picture.thumbnail((TARGET_SIDE, TARGET_SIDE), Image.Resampling.LANCZOS)
    if orientation != 1:
        exif = Image.Exif()
        exif[_ORIENTATION] = orientation
        picture.info["exif"] = exif.tobytes()
        picture = ImageOps.exif_transpose(picture)
    see_through = picture.mode in {"LA", "RGBA"}
    if kind not in _PHOTOS or see_through:
        encoded = _encode(picture, "PNG")
        if len(encoded.content) <= MOST_BYTES:
            return encoded
    return _as_jpeg(_on_white(picture) if see_through else picture)


def _eight_bit(image: Image.Image) -> Image.Image:
    """The first frame in 8 bits: grey, grey with alpha, RGB or RGBA."""
    image.load()
    mode = image.mode
    if mode.startswith(("I", "F")):
        low, high = (
            (0.0, 65535.0) if mode.startswith("I;16") else cast("tuple[float, float]", image.convert("F").getextrema())
        )
        scale = 255.0 / ((high - low) or 1.0)
        deep = image.convert("F")
        grey = deep.point(lambda v: v * scale - low * scale)
        return grey.convert("L")
    if mode in {"1", "L"} and "transparency" not in image.info:
        return image.convert("L")
    if mode in {"LA", "RGBA"}:
        return image.copy()
    return image.convert("RGBA" if mode in {"PA", "La", "RGBa"} or "transparency" in image.info else "RGB")


def _on_white(picture: Image.Image) -> Image.Image:
    colours = picture.convert("RGBA")
    white = Image.new("RGB", picture.size, "white")
    white.paste(colours, mask=colours.getchannel("A"))
    return white


def _as_jpeg(picture: Image.Image) -> Encoded:
    """The best JPEG below the limit: quality goes first, then size."""
    while True:
        for quality in _QUALITIES:
            encoded = _encode(picture, "JPEG", quality)
            if len(encoded.content) <= MOST_BYTES or max(picture.size) <= _SMALLEST_SIDE:
                return encoded
        picture = picture.copy()
        picture.thumbnail((picture.width * 3 // 4, picture.height * 3 // 4), Image.Resampling.LANCZOS)


def _encode(picture: Image.Image, kind: str, quality: int = 85) -> Encoded:
    stream = io.BytesIO()
    picture.info.clear()
    if kind == "JPEG":
        picture.save(stream, kind, quality=quality)
    else:
        picture.save(stream, kind)
    return Encoded(stream.getvalue(), _MEDIA_TYPES[kind], *picture.size)


def _name_kind(kind: str) -> str:
    return f"{'JPEG' if kind == 'MPO' else kind} image" if kind else "image"


if __name__ == "__main__":
    main()
