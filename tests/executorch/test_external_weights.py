"""Weights in a file of their own, beside the program."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings import portable_lib
from executorch.runtime import Runtime
from executorch_ggml import GgmlPartitioner, _runtime
from torch import nn

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)


@pytest.mark.parametrize("quantize", [None, "q8_0"])
def test_a_program_reads_its_weights_from_a_ptd_file(lower, tmp_path, quantize):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 64))
    x = torch.randn(3, 256)
    partitioner = GgmlPartitioner(external_weights="weights", quantize=quantize)
    program = lower(module, (x,), partitioner=partitioner)
    program.program_manager.write_tensor_data_to_file(tmp_path)
    (tmp_path / "model.pte").write_bytes(program.buffer)
    assert len(program.buffer) < 20_000 < (tmp_path / "weights.ptd").stat().st_size

    loaded = Runtime.get().load_program(tmp_path / "model.pte", data_path=tmp_path / "weights.ptd")
    (y,) = loaded.load_method("forward").execute([x])
    tolerance = 1e-5 if quantize is None else 0.02
    torch.testing.assert_close(y, module(x), rtol=tolerance, atol=tolerance)


def test_without_its_file_a_program_is_an_error(lower, tmp_path):
    program = lower(
        nn.Linear(64, 64), (torch.randn(2, 64),), partitioner=GgmlPartitioner(external_weights="w")
    )
    (tmp_path / "model.pte").write_bytes(program.buffer)
    loaded = Runtime.get().load_program(tmp_path / "model.pte")
    with pytest.raises(RuntimeError, match="0x:24"):
        loaded.load_method("forward")


class Total(nn.Module):
    """A layer's results, summed up over all calls."""

    def __init__(self, first: float) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("total", torch.full((4,), first))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(self.layer(x).sum(0))
        return self.total * 1


# A first value that is not zeros lies in the program; another method's weights, too, where it has no file.
FILES = {"of both": ("w", "w"), "of two files": ("w", "v"), "of the first": ("w", None)}


@pytest.mark.parametrize("files", FILES)
@pytest.mark.parametrize("first", [0.0, 1.0])
def test_methods_share_a_state_beside_external_weights_and_loads_do_not(files, first, tmp_path):
    module = Total(first).eval().requires_grad_(False)
    methods, partitioners = {}, {}
    for (name, rows), file in zip({"prefill": 3, "decode": 1}.items(), FILES[files], strict=True):
        methods[name] = torch.export.export(module, (torch.ones(rows, 4),))
        partitioners[name] = [GgmlPartitioner(external_weights=file)]
    program = to_edge_transform_and_lower(methods, partitioner=partitioners).to_executorch()
    program.write_tensor_data_to_file(tmp_path)
    (tmp_path / "model.pte").write_bytes(program.buffer)
    (file,) = tmp_path.glob("*.ptd")

    row = module.layer(torch.ones(4))
    for _ in range(2):
        loaded = Runtime.get().load_program(tmp_path / "model.pte", data_path=file)
        prefill, decode = loaded.load_method("prefill"), loaded.load_method("decode")
        torch.testing.assert_close(prefill.execute([torch.ones(3, 4)])[0], first + 3 * row)
        torch.testing.assert_close(decode.execute([torch.ones(1, 4)])[0], first + 4 * row)
    module = portable_lib._load_for_executorch(str(tmp_path / "model.pte"), str(file))
    torch.testing.assert_close(module.run_method("decode", [torch.ones(1, 4)])[0], first + row)
    torch.testing.assert_close(module.run_method("prefill", [torch.ones(3, 4)])[0], first + 4 * row)


def test_a_name_that_is_a_path_is_refused():
    with pytest.raises(ValueError, match=r"external_weights is '\.\./w'"):
        GgmlPartitioner(external_weights="../w")
