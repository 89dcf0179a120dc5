"""The second mode of the image process: one stored image made small enough to be shown in a terminal.

Run as `python -I -m tools.images.preview KIND WIDTH HEIGHT ROWS BACKGROUND`, the image on standard input. The
answer is one JSON line, either `error` or `sizes` (bytes of each piece), then the pieces: RGBA pixels (`pixels`),
one PNG (`png`), or one sixel string for each row of cells (`sixel`).
"""

from __future__ import annotations

import io
import json
import os
import re
import resource
import sys
from collections.abc import Iterator

from PIL import Image

from tools.images import worker

COLOURS = 200
"""Colours of a sixel palette; terminals promise 256."""
_BAND = 6
"""Rows of pixels one sixel holds."""
_REPEATED = re.compile(rb"(.)\1{3,}", re.DOTALL)


def main() -> None:
    """Answer for the image on standard input."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    worker.limit(resource.RLIMIT_CPU, worker.CPU_SECONDS)
    worker.limit(resource.RLIMIT_AS, worker.MEMORY)
    kind, width, height, rows, background = sys.argv[1:6]
    try:
        pieces = make_pieces(sys.stdin.buffer.read(), kind, int(width), int(height), int(rows), background)
    except worker.Rejected as rejection:
        sys.stdout.buffer.write(json.dumps({"error": str(rejection)}).encode() + b"\n")
        return
    except MemoryError:
        sys.stdout.buffer.write(json.dumps({"error": "This image needs too much memory."}).encode() + b"\n")
        return
    sys.stdout.buffer.write(json.dumps({"sizes": [len(piece) for piece in pieces]}).encode() + b"\n")
    for piece in pieces:
        sys.stdout.buffer.write(piece)


def make_pieces(raw: bytes, kind: str, width: int, height: int, rows: int, background: str) -> list[bytes]:
    """The pieces of one image at a size in pixels.

    Raises:
        Rejected: it is no image, too large, or damaged.
    """
    image = worker.open_image(raw)
    try:
        image.draft("RGB", (2 * width, 2 * height))
        # Lanczos rings around hard edges, which shows where a pixel is half a cell.
        how = Image.Resampling.HAMMING if kind == "pixels" else Image.Resampling.LANCZOS
        whole = image.convert("RGBA")
        picture = whole.resize((width, height), how, reducing_gap=3.0)
    except (OSError, ValueError, SyntaxError, EOFError, ArithmeticError) as error:
        raise worker.Rejected("This image is damaged or cut off.") from error
    if kind == "pixels":
        return [picture.tobytes()]
    if kind == "png":
        stream = io.BytesIO()
        picture.save(stream, "PNG")
        return [stream.getvalue()]
    ground = Image.new("RGBA", picture.size, f"#{background}")
    return sixels(Image.alpha_composite(ground, picture).convert("RGB"), rows)


def sixels(picture: Image.Image, rows: int) -> list[bytes]:
    """One string for each of `rows` slices of equal height, all with the same colours."""
    flat = picture.quantize(COLOURS, dither=Image.Dither.FLOYDSTEINBERG)
    palette = flat.getpalette() or []
    pixels, width, height = flat.tobytes(), flat.width, flat.height // rows
    return [_slice(pixels[row * height * width : (row + 1) * height * width], width, palette) for row in range(rows)]


def _slice(pixels: bytes, width: int, palette: list[int]) -> bytes:
    height = len(pixels) // width
    parts = [b'\x1bP0;1;0q"1;1;%d;%d' % (width, height)]
    for colour in sorted(set(pixels)):
        red, green, blue = (round(value * 100 / 255) for value in palette[3 * colour : 3 * colour + 3])
        parts.append(b"#%d;2;%d;%d;%d" % (colour, red, green, blue))
    bands = (_band(pixels[top * width : (top + _BAND) * width], width) for top in range(0, height, _BAND))
    return b"".join((*parts, b"-".join(b"$".join(band) for band in bands), b"\x1b\\"))


def _band(pixels: bytes, width: int) -> Iterator[bytes]:
    """Six rows of pixels, once for each colour in them."""
    columns: dict[int, bytearray] = {}
    for place, colour in enumerate(pixels):
        line = columns.get(colour)
        if line is None:
            line = columns[colour] = bytearray(b"?" * width)
        line[place % width] += 1 << place // width
    for colour, line in columns.items():
        yield b"#%d" % colour + _REPEATED.sub(_count_run, bytes(line))


def _count_run(found: re.Match[bytes]) -> bytes:
    return b"!%d%s" % (len(found[0]), found[1])


if __name__ == "__main__":
    main()
