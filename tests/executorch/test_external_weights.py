"""Weights in a file of their own, beside the program."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import torch
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


def test_a_name_that_is_a_path_is_refused():
    with pytest.raises(ValueError, match=r"external_weights is '\.\./w'"):
        GgmlPartitioner(external_weights="../w")
