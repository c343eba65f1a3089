import math

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make executorch installs it")

from tiny_chat.model import Shape, TinyChat, rope_turns, rotate
from tiny_chat.optimizer import orthogonalize

SHAPE = Shape(
    vocabulary=32, context=16, width=32, layers=2, heads=4, kv_heads=2, head_size=8, feed_forward=64
)


def test_a_token_changes_nothing_before_it():
    torch.manual_seed(0)
    model = TinyChat(SHAPE)
    tokens = torch.randint(0, 32, (1, 12))
    changed = tokens.clone()
    changed[0, 7] = (changed[0, 7] + 1) % 32
    before, after = model(tokens)[0], model(changed)[0]
    assert torch.allclose(before[:7], after[:7], atol=1e-6)
    assert not torch.allclose(before[7:], after[7:], atol=1e-3)


def test_neighboring_pairs_turn_by_position_times_frequency():
    x = torch.zeros(1, 16, 1, 8)
    x[..., 2] = 1.0  # the second pair, whose frequency is base ** (-2 / 8)
    turned = rotate(x, rope_turns(SHAPE))[0, :, 0]
    for position in (0, 1, 5):
        angle = position * 10000.0**-0.25
        expected = [0, 0, math.cos(angle), math.sin(angle), 0, 0, 0, 0]
        assert turned[position].tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("rows, columns", [(32, 48), (48, 32)])
def test_an_orthogonalized_matrix_has_singular_values_near_one(rows, columns):
    torch.manual_seed(0)
    values = torch.linalg.svdvals(orthogonalize(torch.randn(rows, columns)))
    assert values.min() > 0.5 and values.max() < 1.5
