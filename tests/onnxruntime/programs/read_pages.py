"""The text on pages of this repository's documentation, by rapidocr-onnxruntime: JSON on standard output."""

import json
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime import RapidOCR


def page(text: str, size: int, turned: bool) -> np.ndarray:
    """Black on white: uint8 [height, width, 3], upside down where it is turned."""
    lines = [line[:48] for line in text.splitlines() if line.strip()][:5]
    image = Image.new("RGB", (30 * size, 2 * size * (len(lines) + 1)), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size)
    for row, line in enumerate(lines):
        draw.text((size, size + 2 * size * row), line, "black", font)
    return np.asarray(image.rotate(180) if turned else image)


root = Path(sys.argv[1])
texts = [(root / "docs" / name).read_text() for name in ("caches.md", "scaling.md", "dependencies.md")]
sizes = ((22, False), (30, True), (18, False))
pages = [page(text, size, turned) for text, (size, turned) in zip(texts, sizes, strict=True)]
begin = time.perf_counter()
engine = RapidOCR()
loaded = time.perf_counter()
results = [engine(image)[0] for image in pages]
rounds = []
for _ in range(2):
    first = time.perf_counter()
    for image in pages:
        engine(image)
    rounds.append(time.perf_counter() - first)
found = [
    [[np.asarray(box).tolist(), text, float(score)] for box, text, score in result] for result in results
]
print(json.dumps({"results": found, "load_s": loaded - begin, "run_s": min(rounds)}))
