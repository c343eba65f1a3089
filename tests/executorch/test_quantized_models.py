"""Models that torchao and pt2e quantised, against the same models in eager PyTorch."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")
pytest.importorskip("torchao", reason="torchao is not installed: make executorch installs it")

import torch
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch_ggml import _runtime
from torch import nn
from torchao.quantization import (
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    quantize_,
)
from torchao.quantization.granularity import PerAxis, PerGroup
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.quant_primitives import MappingType

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 32)).eval()


WEIGHT_ONLY = {
    "int8_rows": lambda: Int8WeightOnlyConfig(),
    "int8_groups": lambda: IntxWeightOnlyConfig(weight_dtype=torch.int8, granularity=PerGroup(32)),
    "int4_groups": lambda: IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)),
    "int4_groups_f16_scales": lambda: IntxWeightOnlyConfig(
        weight_dtype=torch.int4, granularity=PerGroup(32), scale_dtype=torch.float16
    ),
}
# What a step of the activations' 8 bits makes of a difference in the last place of a product.
DYNAMIC = {
    "int8_dynamic_int4": lambda: Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(32)
    ),
    "int8_dynamic_int4_f16_scales": lambda: Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(32), weight_scale_dtype=torch.float16
    ),
    "int8_dynamic_int8": lambda: Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int8, weight_granularity=PerAxis(0)
    ),
}


@pytest.mark.parametrize("mapping", [MappingType.SYMMETRIC, MappingType.ASYMMETRIC])
@pytest.mark.parametrize("width", [64, 1024, 2560])
def test_products_of_bytes_equal_eager_ones(width, mapping, lower):
    """Wider than 1024 f32 cannot hold every sum. With whole numbers of one scale nothing is rounded."""
    module = nn.Sequential(nn.Linear(width, 48)).eval()
    module[0].weight.data = torch.randint(-127, 128, (48, width)).float()
    module[0].weight.data[:, 0] = 127
    quantize_(module, Int8DynamicActivationInt8WeightConfig(act_mapping_type=mapping))
    program = lower(module, (torch.randn(5, width),))
    assert (program.delegates, program.left) == (1, [])
    program.check(tolerance=1e-6)
    x = torch.full((5, width), 127.0)
    x[1] = torch.randint(-127, 128, (width,)).float()
    x[2] = -x[2]
    program.check(x, tolerance=1e-6)


def test_a_model_of_bytes_with_a_batch_of_any_size_is_one_delegate(lower):
    module = mlp()
    quantize_(module, Int8DynamicActivationInt8WeightConfig())
    batch = torch.export.Dim("batch", min=1, max=8)
    program = lower(module, (torch.randn(5, 64),), dynamic_shapes=({0: batch},))
    assert (program.delegates, program.left) == (1, [])
    for rows in (1, 2, 8):
        program.check(torch.randn(rows, 64), tolerance=2e-3)


@pytest.mark.parametrize("name", WEIGHT_ONLY)
def test_a_torchao_model_with_quantized_weights_is_one_delegate_and_equals_eager(name, lower):
    module = mlp()
    quantize_(module, WEIGHT_ONLY[name]())
    program = lower(module, (torch.randn(5, 64),))
    assert (program.delegates, program.left) == (1, [])
    program.check(tolerance=1e-5)


@pytest.mark.parametrize("name", DYNAMIC)
def test_a_torchao_model_with_dynamic_activations_is_one_delegate_and_equals_eager(name, lower):
    module = mlp()
    quantize_(module, DYNAMIC[name]())
    program = lower(module, (torch.randn(5, 64),))
    assert (program.delegates, program.left) == (1, [])
    program.check(tolerance=2e-3)


def test_four_bit_weights_take_half_a_byte_in_the_file(lower):
    module = nn.Sequential(nn.Linear(1024, 1024, bias=False)).eval()
    quantize_(module, WEIGHT_ONLY["int4_groups"]())
    program = lower(module, (torch.randn(1, 1024),))
    whole, scales = 1024 * 1024 // 2, 4 * 1024 * 1024 // 32
    zero_points = 1024 * 1024 // 32
    assert len(program.buffer) == pytest.approx(whole + scales + zero_points, rel=0.02)
    program.check(tolerance=1e-5)


def test_groups_of_32_with_half_precision_scales_give_the_exact_matrix(lower):
    """ggml's blocks can say these, and a product with the identity shows every element."""
    module = nn.Sequential(nn.Linear(256, 96, bias=False)).eval()
    quantize_(module, WEIGHT_ONLY["int4_groups_f16_scales"]())
    lower(module, (torch.eye(256),)).check(tolerance=0)


def quantized_by_pt2e(module: nn.Module, inputs: tuple, dynamic: bool) -> nn.Module:
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=dynamic)
    prepared = prepare_pt2e(
        torch.export.export(module.eval(), inputs).module(), XNNPACKQuantizer().set_global(config)
    )
    prepared(*inputs)
    return convert_pt2e(prepared)


class Image(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.pool, self.head = (
            nn.Conv2d(3, 8, 3, padding=1),
            nn.AdaptiveAvgPool2d(1),
            nn.Linear(8, 4),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.pool(torch.relu(self.conv(x))).flatten(1))


PT2E = {
    "static_mlp": (mlp, lambda: torch.randn(5, 64), False),
    "dynamic_mlp": (mlp, lambda: torch.randn(5, 64), True),
    "static_image": (Image, lambda: torch.randn(1, 3, 8, 8), False),
}


@pytest.mark.parametrize("name", PT2E)
def test_a_pt2e_model_is_one_delegate_and_equals_eager(name, lower):
    make, example, dynamic = PT2E[name]
    inputs = (example(),)
    module = quantized_by_pt2e(make(), inputs, dynamic)
    module.eval = lambda: module  # what pt2e makes refuses it, and is in that mode already
    program = lower(module, inputs)
    assert (program.delegates, program.left) == (1, [])
    program.check(tolerance=2e-3)
