"""Calls that pywebnn offers besides the specification's operators, and its spellings of some of those."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from headrace._core import MLGraphBuilder, MLOperand


def _title(name: str, options: dict[str, Any]) -> str:
    label = options.get("label")
    return f"{name} ({label})" if label else name


def _axes(axes: Sequence[int], rank: int, name: str) -> list[int]:
    normalized = []
    for axis in axes:
        if not -rank <= axis < rank:
            raise ValueError(f"{name}: Axis {axis} out of bounds for rank {rank}")
        normalized.append(axis % rank)
    if len(set(normalized)) != len(normalized):
        raise ValueError(f"{name}: Duplicate axis in {list(axes)}")
    return normalized


def squeeze(
    self: MLGraphBuilder, input: MLOperand, axes: Sequence[int] | None = None, *, label: str = ""
) -> MLOperand:
    """Removes extents of 1: the given ones, or all."""
    shape = input.shape
    title = _title("squeeze", {"label": label})
    if axes is None:
        dropped = [i for i, extent in enumerate(shape) if extent == 1]
    else:
        dropped = _axes(axes, len(shape), title)
        for axis in dropped:
            if shape[axis] != 1:
                raise ValueError(f"{title}: the extent of axis {axis} is {shape[axis]} in {shape}, not 1")
    return self.reshape(input, [d for i, d in enumerate(shape) if i not in dropped], label=label)


def unsqueeze(self: MLGraphBuilder, input: MLOperand, axes: Sequence[int], *, label: str = "") -> MLOperand:
    """Inserts extents of 1 so that they stand at `axes` of the result."""
    shape = input.shape
    rank = len(shape) + len(axes)
    inserted = _axes(axes, rank, _title("unsqueeze", {"label": label}))
    extents = iter(shape)
    return self.reshape(input, [1 if i in inserted else next(extents) for i in range(rank)], label=label)


def _global_pool(pool: str) -> Any:
    def method(
        self: MLGraphBuilder, input: MLOperand, layout: str | None = None, *, label: str = ""
    ) -> MLOperand:
        title = _title(f"global_{pool}", {"label": label})
        if len(input.shape) != 4:
            raise ValueError(f"{title}: Global pooling input must be 4D, got rank {len(input.shape)}")
        if layout not in (None, "nchw", "nhwc"):
            raise ValueError(f"{title}: Invalid layout '{layout}'; nchw or nhwc")
        return getattr(self, f"{pool}2d")(input, layout=layout, label=label)

    method.__doc__ = f"{pool}2d over the whole image: a spatial extent of 1 x 1."
    return method


def _pad(self: MLGraphBuilder, input: MLOperand, *args: Any, **kwargs: Any) -> MLOperand:
    """pad(input, padding, mode, value): one list of beginnings then endings, or the specification's two."""
    two_lists = "beginning_padding" in kwargs or "beginningPadding" in kwargs
    if two_lists or (len(args) > 1 and not isinstance(args[1], (str, type(None)))):
        return self._pad_two_lists(input, *args, **kwargs)
    names = iter(name for name in ("padding", "mode", "value") if name not in kwargs)
    options = kwargs | dict(zip(names, args, strict=False))
    padding = options.pop("padding", None)
    half = len(input.shape)
    if padding is None or len(padding) != 2 * half:
        given = "no padding" if padding is None else f"{len(padding)} numbers of padding"
        raise ValueError(f"{_title('pad', kwargs)}: {given} for rank {half}; {2 * half} numbers are needed")
    return self._pad_two_lists(input, list(padding[:half]), list(padding[half:]), **options)


def _pad_parameters(
    self: MLGraphBuilder,
    input: MLOperand,
    padding: Sequence[int] | None = None,
    mode: str | None = None,
    value: float | None = None,
    *,
    beginning_padding: Sequence[int] | None = None,
    ending_padding: Sequence[int] | None = None,
    label: str = "",
) -> MLOperand: ...


_pad.__signature__ = inspect.signature(_pad_parameters)


def _split(
    self: MLGraphBuilder, input: MLOperand, splits: int | Sequence[int], axis: int = 0, *, label: str = ""
) -> list[MLOperand]:
    """Parts of the given sizes along an axis, or `splits` equal parts."""
    if isinstance(splits, int):
        title = _title("split", {"label": label})
        (axis,) = _axes([axis], len(input.shape), title)
        extent = input.shape[axis]
        if splits < 1 or not isinstance(extent, int) or extent % splits:
            raise ValueError(
                f"{title}: the extent {extent} of axis {axis} does not divide into {splits} equal parts"
            )
        splits = [extent // splits] * splits
    return self._split_sizes(input, list(splits), axis, label=label)


def install(builder: type[MLGraphBuilder]) -> None:
    """Adds or replaces the methods above."""
    builder.squeeze = squeeze
    builder.unsqueeze = unsqueeze
    builder.global_average_pool = builder.globalAveragePool = _global_pool("average_pool")
    builder.global_max_pool = builder.globalMaxPool = _global_pool("max_pool")
    if hasattr(builder, "pad"):
        builder._pad_two_lists = builder.pad
        builder.pad = _pad
    if hasattr(builder, "split"):
        builder._split_sizes = builder.split
        builder.split = _split
    if hasattr(builder, "where"):
        builder.where_ = builder.where
