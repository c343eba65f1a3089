"""torchvision's own operators in Python, where the library of its wheel wants another PyTorch."""

from __future__ import annotations

import sys

import torch

_OPERATORS = [
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor",
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
    "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dil_h, SymInt dil_w, SymInt groups, "
    "SymInt offset_groups, bool use_mask) -> Tensor",
]


def _nms(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    corners = boxes.unbind(1)
    area = (corners[2] - corners[0]) * (corners[3] - corners[1])
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    both = (high - low).clamp(min=0).prod(2)
    overlaps = both / (area[:, None] + area - both) > threshold
    kept: list[int] = []
    for i in scores.argsort(descending=True, stable=True).tolist():
        if not overlaps[i, kept].any():
            kept.append(i)
    return torch.tensor(kept, dtype=torch.long)


def _has_operators() -> bool:
    return True


def _load() -> None:
    try:
        import torchvision

        return
    except ModuleNotFoundError:
        return  # transformers alone are used
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
    library = torch.library.Library("torchvision", "DEF")
    for schema in _OPERATORS:
        library.define(schema)
    library.impl("nms", _nms, "CPU")
    globals()["_library"] = library  # its operators live as long as it does
    import torchvision.ops  # noqa: F401
    from torchvision.ops.roi_align import _roi_align

    for name, module in sys.modules.items():
        if name.startswith("torchvision.") and hasattr(module, "_has_ops"):
            module._has_ops = _has_operators
    plain = _roi_align.__wrapped__  # without torch.compile
    library.impl(
        "roi_align",
        lambda x, rois, scale, h, w, ratio, aligned: plain(x, rois, scale, h, w, ratio, aligned),
        "CPU",
    )

    @torch.library.register_fake("torchvision::roi_align")
    def _(x, rois, scale, height, width, ratio, aligned):
        return x.new_empty((rois.size(0), x.size(1), height, width))


_load()
