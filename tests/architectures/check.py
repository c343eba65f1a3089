"""One architecture through one door at two shapes, as a line of JSON; run_all.py starts processes."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
sys.path[:0] = [str(FOLDER), str(ROOT / "python")]
sys.path.append(str(ROOT / "build" / "architectures"))  # torchvision and timm

import caches  # noqa: E402, F401
import images  # noqa: E402, F401
import mixed  # noqa: E402, F401
import newer  # noqa: E402, F401
import numpy as np  # noqa: E402
import scenes  # noqa: E402, F401
import sound  # noqa: E402, F401
import text  # noqa: E402, F401
import torch  # noqa: E402
from architecture import ARCHITECTURES, Architecture  # noqa: E402
from exported import export, grouped, session_of  # noqa: E402

DOORS = ("onnx", "onnx-older", "executorch")


def error_of(actual: list[np.ndarray], expected: list[np.ndarray]) -> float | str:
    """The largest |a - b| / max |b| of the results, or what is wrong with them."""
    worst = 0.0
    if len(actual) != len(expected):
        return f"{len(actual)} results where {len(expected)} are expected"
    for a, b in zip(actual, expected, strict=True):
        if a.shape != b.shape:
            return f"shape {a.shape} where {b.shape} is expected"
        finite = np.isfinite(b)
        if not np.array_equal(finite, np.isfinite(a)):
            return "infinities or NaN in other places"
        if finite.any():
            a, b = a[finite].astype(np.float64), b[finite].astype(np.float64)
            worst = max(worst, float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-12)))
    return worst


def compared(a: Architecture, actual: list[np.ndarray], expected: list[np.ndarray]) -> float | str:
    if a.compare is None:
        return error_of(actual, expected)
    return a.compare(actual, expected) or 0.0


def errors_at_both_shapes(a: Architecture, model: Any, session: Any) -> list[float | str]:
    """Of Headrace's model beside ONNX Runtime's session of the same file, as `compared` says them."""
    known = {given.name for given in session.get_inputs()}
    errors = []
    for which in range(2):
        inputs = zip(a.names, a.inputs(which), strict=True)
        feeds = {name: x.numpy() for name, x in inputs if name in known}
        expected = session.run(None, feeds)
        errors.append(compared(a, list(model(feeds).values()), expected))
    return errors


def through_onnx(a: Architecture, dynamo: bool) -> dict[str, Any]:
    import headrace

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        try:
            export(a, path, dynamo)
        except Exception as error:  # what the exporter cannot do is not judged
            return {"not exported": f"{type(error).__name__}: {error}"[:200]}
        session = session_of(path)
        start = time.perf_counter()
        model = headrace.load(path, device="cpu", threads=2)
        found: dict[str, Any] = {"load s": round(time.perf_counter() - start, 2)}
        is_open = isinstance(model, headrace.Model)  # else each shape is read anew
        found["open"] = (
            sorted({str(d) for i in model.inputs for d in i.shape if not isinstance(d, int)})
            if is_open
            else ["each shape"]
        )
        found["errors"] = errors_at_both_shapes(a, model, session)
    return found


def exported_program(a: Architecture) -> torch.export.ExportedProgram:
    """With its dimensions open. Errors: whatever torch.export raises."""
    shapes = grouped(a, [{axis: _bounded(a, n) for axis, n in dims.items()} for dims in a.dimensions])
    with torch.no_grad():
        return torch.export.export(a.module, a.inputs(0), dynamic_shapes=shapes)


def through_executorch(a: Architecture) -> dict[str, Any]:
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
    from executorch.runtime import Runtime
    from executorch_ggml import GgmlPartitioner

    try:
        exported = exported_program(a)
    except Exception as error:
        return {"not exported": f"{type(error).__name__}: {error}"[:200]}
    config = EdgeCompileConfig(_check_ir_validity=False)
    program = to_edge_transform_and_lower(exported, partitioner=[GgmlPartitioner()], compile_config=config)
    content = program.to_executorch().buffer
    method = Runtime.get().load_program(content).load_method("forward")
    errors = []
    for which in range(2):
        with torch.no_grad():
            expected = a.module(*a.inputs(which))
        expected = expected if isinstance(expected, (tuple, list)) else [expected]
        actual = [x.numpy() for x in method.execute(list(a.inputs(which)))]
        errors.append(compared(a, actual, [x.numpy() for x in expected]))
    return {"errors": errors}


def _bounded(a: Architecture, name: str) -> Any:
    """Open, up to some more than the sizes here: ExecuTorch lays out memory for the most."""
    most = sum(max(sizes.get(part, 0) for sizes in a.sizes) for part in name.split("+"))
    return torch.export.Dim.DYNAMIC(min=1, max=2 * max(most, 16)) if most else torch.export.Dim.AUTO


def check(name: str, door: str, whole: bool) -> dict[str, Any]:
    torch.manual_seed(0)
    a = ARCHITECTURES[name](whole)
    found = through_executorch(a) if door == "executorch" else through_onnx(a, door == "onnx")
    wrong = [e for e in found.get("errors", []) if isinstance(e, str) or e > a.tolerance]
    return found | {"passes": "errors" in found and not wrong}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(ARCHITECTURES))
    parser.add_argument("--door", choices=DOORS, default="onnx")
    parser.add_argument("--small", action="store_true", help="with a few layers, where a config says so")
    arguments = parser.parse_args()
    try:
        found = check(arguments.name, arguments.door, not arguments.small)
    except Exception as error:
        found = {"passes": False, "error": f"{type(error).__name__}: {error}"[:600]}
    print(json.dumps({"name": arguments.name, "door": arguments.door} | found))


if __name__ == "__main__":
    main()
