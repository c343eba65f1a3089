"""The types of this repository's files, by magika: JSON on the standard output."""

import json
import sys
import time
from pathlib import Path

from magika import Magika

root = Path(sys.argv[1])
paths = sorted(
    p
    for folder in ("tests/onnxruntime", "tests/base", "examples", "docs")
    for p in root.glob(f"{folder}/*.*")
)
begin = time.perf_counter()
magika = Magika()
loaded = time.perf_counter()
results = magika.identify_paths(paths)
found = {str(r.path.relative_to(root)): [str(r.dl.label), r.score] for r in results}
rounds = []
for _ in range(5):
    first = time.perf_counter()
    magika.identify_paths(paths)
    rounds.append(time.perf_counter() - first)
print(json.dumps({"results": found, "load_s": loaded - begin, "run_s": min(rounds)}))
