"""Tensors whose elements lie beside the model: where they may lie, and how that is found from anywhere."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import headrace
import numpy as np
import onnx
import pytest
from headrace.onnx import import_graph
from onnx import TensorProto, helper, numpy_helper, parser

X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
DATA = "model.onnx_data"


def moved(tensor: TensorProto, location: str = DATA, **entries: object) -> None:
    """Says that its elements are in a file, without writing that."""
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    del tensor.external_data[:]
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))


def product(location: str = DATA, **entries: object) -> bytes:
    """y = x · w, w in a file."""
    made = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[n, 3] x) => (float[n, 4] y) { y = MatMul(x, w) }""")
    made.graph.initializer.append(numpy_helper.from_array(W, "w"))
    moved(made.graph.initializer[0], location, **entries)
    return made.SerializeToString()


def folder_of(path: Path, content: bytes = b"", data: bytes | None = None) -> Path:
    path.mkdir(parents=True)
    (path / "model.onnx").write_bytes(content or product())
    if data is not None:
        (path / DATA).write_bytes(data)
    return path


def y_of(path: Path) -> np.ndarray:
    return headrace.load(path, device="cpu")(X)["y"]


def check(path: Path) -> None:
    np.testing.assert_allclose(y_of(path), X @ W, rtol=1e-5, atol=1e-5)


# --- links --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", ["", "onnx", "onnx/int8"])
def test_a_cache_of_hugging_faces_layout_is_read(tmp_path, inner: str) -> None:
    """Snapshots are links into the blobs of the model."""
    model = tmp_path / "hub" / "models--org--name"
    snapshot = model / "snapshots" / "0123abcd" / inner
    snapshot.mkdir(parents=True)
    (model / "blobs").mkdir()
    up = "../" * (2 + len(Path(inner).parts))
    for name, blob, content in (("model.onnx", "aa11", product()), (DATA, "bb22", W.tobytes())):
        (model / "blobs" / blob).write_bytes(content)
        (snapshot / name).symlink_to(f"{up}blobs/{blob}")
    check(snapshot / "model.onnx")
    (tmp_path / "elsewhere").symlink_to(snapshot)
    check(tmp_path / "elsewhere" / "model.onnx")


def test_links_into_blobs_of_another_model_are_refused(tmp_path) -> None:
    for name in ("mine", "other"):
        (tmp_path / f"models--org--{name}" / "blobs").mkdir(parents=True)
    (tmp_path / "models--org--other" / "blobs" / "bb22").write_bytes(W.tobytes())
    folder = folder_of(tmp_path / "models--org--mine" / "snapshots" / "0123abcd")
    (folder / DATA).symlink_to(tmp_path / "models--org--other" / "blobs" / "bb22")
    with pytest.raises(ValueError, match=r"a link to .*bb22, which is not followed; copy the file itself"):
        y_of(folder / "model.onnx")


def test_blobs_that_are_themselves_a_link_are_refused(tmp_path) -> None:
    folder = folder_of(tmp_path / "models--org--name" / "snapshots" / "0123abcd")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "bb22").write_bytes(W.tobytes())
    (tmp_path / "models--org--name" / "blobs").symlink_to(tmp_path / "secrets")
    (folder / DATA).symlink_to("../../blobs/bb22")
    with pytest.raises(ValueError, match="which is not followed"):
        y_of(folder / "model.onnx")


@pytest.mark.parametrize("way", ["file", "folder", "chain"])
def test_links_out_of_the_models_folder_are_refused(tmp_path, way: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "w").write_bytes(W.tobytes())
    folder = folder_of(tmp_path / "m", product("weights/w" if way == "folder" else DATA))
    if way == "file":
        (folder / DATA).symlink_to(tmp_path / "outside" / "w")
    elif way == "folder":
        (folder / "weights").symlink_to(tmp_path / "outside")
    else:
        (folder / "step").symlink_to(tmp_path / "outside" / "w")
        (folder / DATA).symlink_to("step")
    with pytest.raises(
        ValueError,
        match=r"initializer 'w' cannot be read: its data is in .*, a link to .*outside.w, which is not "
        r"followed; copy the file itself beside the model",
    ):
        y_of(folder / "model.onnx")


def test_links_within_the_models_folder_are_refused(tmp_path) -> None:
    folder = folder_of(tmp_path / "m", data=None)
    (folder / "weights").mkdir()
    (folder / "weights" / "w").write_bytes(W.tobytes())
    (folder / DATA).symlink_to("weights/w")
    with pytest.raises(ValueError, match="which is not followed; copy the file itself beside the model"):
        y_of(folder / "model.onnx")


def test_the_models_folder_may_be_reached_by_a_link(tmp_path) -> None:
    folder = folder_of(tmp_path / "m", product(DATA))
    (folder / DATA).write_bytes(W.tobytes())
    (tmp_path / "link").symlink_to(folder)
    check(tmp_path / "link" / "model.onnx")


@pytest.mark.parametrize(
    ("home", "target"),
    [
        ("mine", "mine-too/w"),
        ("models--org--name/snapshots/0123abcd", "models--org--name/snapshots/0123abcd-too/w"),
        ("models--org--name/snapshots/0123abcd", "models--org--name/blobs-too/w"),
        ("models--org--name/0123abcd", "models--org--name/blobs/w"),
        ("mine/snapshots/0123abcd", "mine/blobs/w"),
    ],
)
def test_links_into_folders_that_only_look_like_the_models_are_refused(tmp_path, home, target) -> None:
    folder = folder_of(tmp_path / home)
    (tmp_path / target).parent.mkdir(parents=True)
    (tmp_path / target).write_bytes(W.tobytes())
    (folder / DATA).symlink_to(tmp_path / target)
    with pytest.raises(ValueError, match=r"a link to .*/w\b.*; copy the file itself beside the model"):
        y_of(folder / "model.onnx")


def test_files_with_other_names_are_refused(tmp_path) -> None:
    folder = folder_of(tmp_path / "m", data=W.tobytes())
    check(folder / "model.onnx")
    os.link(folder / DATA, tmp_path / "other name")
    with pytest.raises(
        ValueError, match=r"a file with 2 names \(hard links\), .*; copy the file itself beside"
    ):
        y_of(folder / "model.onnx")
    (folder / DATA).unlink()
    (folder / DATA).write_bytes((tmp_path / "other name").read_bytes())
    check(folder / "model.onnx")


@pytest.mark.parametrize("way", ["link", "folder", "name"])
def test_what_becomes_a_link_while_it_is_opened_is_not_followed(tmp_path, way: str) -> None:
    """Names are checked first and opened then; another process changes them in between."""
    folder = folder_of(tmp_path / "m", product("weights/w"))
    for name, content in (("outside", -W), ("own", W)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "w").write_bytes(content.tobytes())
    place, spare = folder / "weights", folder / "spare"
    stop = threading.Event()

    def swap_folders() -> None:
        spare.symlink_to(tmp_path / "outside")
        (tmp_path / "own").rename(place)
        while not stop.is_set():  # the folder and the link change places
            for source, target in ((place, folder / "third"), (spare, place), (folder / "third", spare)):
                source.rename(target)

    def swap_files() -> None:
        while not stop.is_set():
            if way == "link":
                spare.symlink_to(tmp_path / "outside" / "w")
            else:
                os.link(tmp_path / "outside" / "w", spare)
            spare.replace(place / "w")
            spare.write_bytes(W.tobytes())
            spare.replace(place / "w")

    if way != "folder":
        place.mkdir()
    swapping = threading.Thread(target=swap_folders if way == "folder" else swap_files)
    swapping.start()
    try:
        ends = {"read": 0, "refused": 0}
        for i in range(20_000):
            if i >= 400 and min(ends.values()) > 0:  # a busy machine takes longer to show both
                break
            try:
                graph = import_graph(folder / "model.onnx")
            except (ValueError, OSError):
                ends["refused"] += 1
                continue
            y = headrace.Session(headrace.compile(graph, device="cpu")).run({"x": X})["y"]
            np.testing.assert_allclose(y, X @ W, rtol=1e-5, atol=1e-5)
            ends["read"] += 1
    finally:
        stop.set()
        swapping.join()
    assert min(ends.values()) > 0, ends


# --- what is no file, or not enough of one ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("../outside", "not named from the model's folder on; save the model with its data beside it"),
        ("a/../../outside", "not named from the model's folder on"),
        ("/etc/hostname", "not named from the model's folder on"),
        ("", "not named from the model's folder on"),
        ("absent", "which does not exist; it belongs beside the model"),
        ("folder", "which is no regular file"),
        ("pipe", "which is no regular file"),
        (".", "not named from the model's folder on"),
        ("nul\0", "null byte"),
    ],
)
def test_what_is_no_file_of_the_folder_is_refused(tmp_path, location: str, message: str) -> None:
    (tmp_path / "outside").write_bytes(W.tobytes())
    folder = folder_of(tmp_path / "m", product(location))
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    with pytest.raises(ValueError, match=f"initializer 'w' cannot be read: .*{message}"):
        y_of(folder / "model.onnx")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"offset": 16}, "its 48 bytes are said to be at 16 of .*, which has 48; the file is cut off"),
        ({"offset": 2**62}, "which has 48"),
        ({"offset": -4}, "the offset of its external data is '-4', which is no number of bytes"),
        ({"offset": "0x10"}, "the offset of its external data is '0x10'"),
        ({"length": 40}, r"its shape \[3, 4\] needs 48 bytes, and 40 are said to be in"),
        ({"length": 2**63}, "needs 48 bytes"),
    ],
)
def test_offsets_and_lengths_beyond_the_file_are_refused(tmp_path, entries: dict, message: str) -> None:
    folder = folder_of(tmp_path / "m", product(**entries), W.tobytes())
    with pytest.raises(ValueError, match=f"initializer 'w' cannot be read: .*{message}"):
        y_of(folder / "model.onnx")


def test_models_that_are_no_files_have_no_folder() -> None:
    for source in (product(), onnx.load_from_string(product())):
        with pytest.raises(ValueError, match=rf"'{DATA}'; load the model from its path"):
            headrace.load(source)


# --- which tensors ------------------------------------------------------------------------------------------


def test_data_of_attributes_branches_and_functions_is_found_from_any_working_directory(
    tmp_path, monkeypatch
) -> None:
    made = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (float[n, 3] x) => (float[n, 3] y) {
            a = Constant<value = float[3] {0, 0, 0}>()
            p = Add(x, a)
            yes = Constant<value = bool {1}>()
            q = If (yes) <
                then_branch = t () => (float[n, 3] t1) {
                    b = Constant<value = float[3] {0, 0, 0}>()
                    t0 = Mul(p, b)
                    t1 = Sub(t0, c)
                },
                else_branch = e () => (float[n, 3] e1) { e1 = Neg(p) }
            >
            y = local.scaled(q)
        }
        <domain: "local", opset_import: ["" : 21]>
        scaled (x) => (y) { d = Constant<value = float[3] {0, 0, 0}>() y = Mul(x, d) }
    """)
    then = made.graph.node[3].attribute[0].g
    then.initializer.append(numpy_helper.from_array(np.zeros(3, np.float32), "c"))
    values = {
        "a": made.graph.node[0].attribute[0].t,
        "b": then.node[0].attribute[0].t,
        "c": then.initializer[0],
        "d": made.functions[0].node[0].attribute[0].t,
    }
    arrays = {name: np.arange(3, dtype=np.float32) + i for i, name in enumerate(values)}
    for i, tensor in enumerate(values.values()):
        tensor.ClearField("float_data")
        moved(tensor, "data/weights", offset=12 * i, length=12)
    folder = folder_of(tmp_path / "m", made.SerializeToString())
    (folder / "data").mkdir()
    (folder / "data" / "weights").write_bytes(b"".join(a.tobytes() for a in arrays.values()))
    expected = ((X + arrays["a"]) * arrays["b"] - arrays["c"]) * arrays["d"]
    (tmp_path / "somewhere").mkdir()
    for place, path in ((tmp_path / "somewhere", folder), (folder, Path(".")), (tmp_path, Path("m"))):
        monkeypatch.chdir(place)
        np.testing.assert_allclose(y_of(path / "model.onnx"), expected, rtol=1e-6)


def test_bits_and_empty_tensors_lie_in_files_too(tmp_path) -> None:
    packed = helper.make_tensor("q", TensorProto.INT4, [3], [1, -2, 3])
    nothing = numpy_helper.from_array(np.zeros((0, 3), np.float32), "none")
    made = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[n, 3] x) => (float[m, 3] y) {
            whole = Cast<to = 1>(q)
            z = Mul(x, whole)
            y = Concat<axis = 0>(z, none)
        }""")
    made.graph.initializer.extend([packed, nothing])
    content = (
        made.graph.initializer[0].raw_data
        or numpy_helper.from_array(numpy_helper.to_array(packed), "q").raw_data
    )
    made.graph.initializer[0].ClearField("int32_data")
    for tensor in made.graph.initializer:
        moved(tensor)
    folder = folder_of(tmp_path / "m", made.SerializeToString(), content)
    np.testing.assert_allclose(y_of(folder / "model.onnx"), X * [1, -2, 3])
