"""Segmentation, detection, depth, optical flow, video."""

from __future__ import annotations

from typing import Any

import torch
from architecture import Architecture, Call, picture, published, settled, tokens
from images import of_config, of_pictures, vision_text

# --- torchvision ------------------------------------------------------------------------------------------


@published(
    "torchvision.deeplabv3_mobilenet_v3_large",
    "torchvision.deeplabv3_resnet50",
    "torchvision.fcn_resnet50",
    "torchvision.lraspp_mobilenet_v3_large",
)
def segmentation(name: str, whole: bool) -> Architecture:
    from torchvision import models

    module = models.get_model(name.removeprefix("torchvision."), weights=None, weights_backbone=None)
    return of_pictures(Call(module, lambda m, x: m(x)["out"]), 256)


def _boxes(module: Any, x: torch.Tensor) -> tuple:
    """The raw predictions of a one-stage detector: what its non-maximum suppression is given."""
    features = list(module.backbone(x).values())
    head = module.head(features)
    return tuple(head[key] for key in sorted(head))


@published(
    "torchvision.retinanet_resnet50_fpn",
    "torchvision.ssd300_vgg16",
    "torchvision.ssdlite320_mobilenet_v3_large",
    "torchvision.fcos_resnet50_fpn",
)
def one_stage(name: str, whole: bool) -> Architecture:
    from torchvision import models

    module = models.get_model(name.removeprefix("torchvision."), weights=None, weights_backbone=None)
    return of_pictures(Call(module, _boxes), 320 if "ssd" in name else 256)


def _found(m: Any, x: torch.Tensor) -> tuple:
    """Boxes and scores of the one picture."""
    found = m([x[0]])
    found = found[1] if isinstance(found, tuple) else found
    return tuple(found[0][key] for key in ("boxes", "scores"))


@published("torchvision.fasterrcnn_mobilenet_v3_large_320_fpn", "torchvision.retinanet_whole")
def whole_detector(name: str, whole: bool) -> Architecture:
    """With anchors, non-maximum suppression and crops; the number of boxes depends on values."""
    from torchvision import models

    name = name.removeprefix("torchvision.")
    name = "retinanet_resnet50_fpn" if name == "retinanet_whole" else name
    module = models.get_model(name, weights=None, weights_backbone=None, box_detections_per_img=20)

    return Architecture(
        settled(Call(module, _found)),
        lambda height, width: picture(1, height, width).sigmoid(),
        ["image"],
        [{2: "height", 3: "width"}],
        [{"height": 320, "width": 320}, {"height": 256, "width": 352}],
    )


def _near_scores(ours: list, theirs: list) -> str:
    """With random weights scores are nearly equal, and then their boxes have no order."""
    shapes = [[x.shape for x in given] for given in (ours, theirs)]
    if shapes[0] != shapes[1]:
        return f"shapes {shapes[0]} and {shapes[1]}"
    error = float(abs(ours[1] - theirs[1]).max() / abs(theirs[1]).max())
    return "" if error < 1e-4 else f"scores differ by {error}"


@published("torchvision.ssdlite_whole")
def whole_detector_of_classes(name: str, whole: bool) -> Architecture:
    """Suppression for each of 90 classes by itself, and what is left of all of them added up."""
    from torchvision import models

    options = {"weights": None, "weights_backbone": None, "score_thresh": 0.0, "topk_candidates": 20}
    module = models.get_model("ssdlite320_mobilenet_v3_large", **options, detections_per_img=20)
    return Architecture(
        settled(Call(module, _found)),
        lambda height, width: picture(1, height, width).sigmoid(),
        ["image"],
        [{2: "height", 3: "width"}],
        [{"height": 256, "width": 256}, {"height": 224, "width": 320}],
        compare=_near_scores,
    )


@published(
    "torchvision.r3d_18",
    "torchvision.mc3_18",
    "torchvision.r2plus1d_18",
    "torchvision.s3d",
    "torchvision.mvit_v2_s",
    "torchvision.swin3d_t",
)
def video(name: str, whole: bool) -> Architecture:
    from torchvision import models

    name = name.removeprefix("torchvision.")
    module = models.get_model(name, weights=None)
    frames, size = 16, 224 if name in ("mvit_v2_s", "s3d") else 112

    def make(batch: int, frames: int = frames) -> tuple:
        clips = picture(batch * frames, size, size).view(batch, frames, 3, size, size)
        return (clips.transpose(1, 2).contiguous(),)  # ExecuTorch takes no other layout of five dimensions

    if name in ("mvit_v2_s", "swin3d_t"):
        return Architecture(settled(module), make, ["clip"], [{0: "batch"}], [{"batch": 2}, {"batch": 3}])
    # An eighth of the frames is left, and exporters take an extent of 1 for a constant.
    sizes = [{"batch": 2, "frames": frames}, {"batch": 1, "frames": 24}]
    return Architecture(settled(module), make, ["clip"], [{0: "batch", 2: "frames"}], sizes)


@published("torchvision.raft_small", "torchvision.raft_large")
def flow(name: str, whole: bool) -> Architecture:
    from torchvision import models

    module = models.get_model(name.removeprefix("torchvision."), weights=None)
    module = Call(module, lambda m, a, b: m(a, b, num_flow_updates=6 if whole else 2)[-1])

    def make(batch: int) -> tuple:
        first = picture(batch, 128, 160)
        return first, torch.roll(first, (2, 3), (2, 3))

    return Architecture(
        settled(module), make, ["first", "second"], [{0: "batch"}] * 2, [{"batch": 2}, {"batch": 3}]
    )


# --- transformers -------------------------------------------------------------------------------------------

_RESULTS: dict[str, tuple] = {
    "Detr": ("ForObjectDetection", ("logits", "pred_boxes"), 256),
    "ConditionalDetr": ("ForObjectDetection", ("logits", "pred_boxes"), 256),
    "DeformableDetr": ("ForObjectDetection", ("logits", "pred_boxes"), 256),
    "RTDetr": ("ForObjectDetection", ("logits", "pred_boxes"), 320),
    "RTDetrV2": ("ForObjectDetection", ("logits", "pred_boxes"), 320),
    "DFine": ("ForObjectDetection", ("logits", "pred_boxes"), 320),
    "TableTransformer": ("ForObjectDetection", ("logits", "pred_boxes"), 256),
    "Yolos": ("ForObjectDetection", ("logits", "pred_boxes"), (256, 432)),
    "SegFormer": ("ForSemanticSegmentation", ("logits",), 256),
    "DPT": ("ForDepthEstimation", ("predicted_depth",), 384),
    "DepthAnything": ("ForDepthEstimation", ("predicted_depth",), (252, 336)),
    "GLPN": ("ForDepthEstimation", ("predicted_depth",), 256),
    "UperNet": ("ForSemanticSegmentation", ("logits",), 256),
    "MaskFormer": ("ForInstanceSegmentation", ("class_queries_logits", "masks_queries_logits"), 256),
    "Mask2Former": (
        "ForUniversalSegmentation",
        ("class_queries_logits", "masks_queries_logits"),
        256,
    ),
    "VitMatte": ("ForImageMatting", ("alphas",), 256),
    "Swin2SR": ("ForImageSuperResolution", ("reconstruction",), 64),
    "SuperPoint": ("ForKeypointDetection", ("keypoints", "scores"), 160),
    "MobileNetV2Seg": ("ForSemanticSegmentation", ("logits",), 256),
    "BeitSeg": ("ForSemanticSegmentation", ("logits",), 224),
    "MobileViTSeg": ("ForSemanticSegmentation", ("logits",), 256),
}
_FIXED = {"Yolos", "BeitSeg", "VitMatte", "DPT"}


def _scene_config(base: str) -> Any:
    import transformers

    found = {n.lower(): n for n in dir(transformers)}
    make = getattr(transformers, found[f"{base.removesuffix('Seg')}Config".lower()])
    backbone = transformers.ResNetConfig(out_features=["stage2", "stage3", "stage4"])
    plain = {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}
    if base in ("Detr", "ConditionalDetr", "TableTransformer"):
        backbone = transformers.ResNetConfig(out_features=["stage4"])
        return make(backbone_config=backbone, **plain)
    if base == "DeformableDetr":
        return make(backbone_config=backbone, **plain)
    if base == "DepthAnything":
        dino = transformers.Dinov2Config(
            image_size=252,
            out_features=["stage9", "stage10", "stage11", "stage12"],
            reshape_hidden_states=False,
            apply_layernorm=True,
            hidden_size=384,
            num_attention_heads=6,
            patch_size=14,
        )
        return make(
            backbone_config=dino,
            reassemble_hidden_size=384,
            neck_hidden_sizes=[48, 96, 192, 384],
            fusion_hidden_size=64,
        )
    if base == "UperNet":
        return make(
            backbone_config=transformers.ConvNextConfig(
                out_features=["stage1", "stage2", "stage3", "stage4"]
            ),
            auxiliary_in_channels=384,
        )
    if base == "VitMatte":
        det = transformers.VitDetConfig(
            image_size=256, pretrain_image_size=224, num_channels=4, hidden_size=384, num_attention_heads=6
        )
        return make(backbone_config=det, hidden_size=384)
    if base == "Swin2SR":
        return make(upscale=2, image_size=64, window_size=8, depths=[2, 2], num_heads=[6, 6])
    return make(image_size=[256, 432]) if base == "Yolos" else make()


@published(*(f"transformers.{name}" for name in _RESULTS))
def scene(name: str, whole: bool) -> Architecture:
    import transformers

    base = name.removeprefix("transformers.")
    kind, results, size = _RESULTS[base]
    found = {n.lower(): n for n in dir(transformers)}
    config = of_config(
        base,
        _scene_config(base),
        whole,
        {"encoder_layers": 2, "decoder_layers": 2} if "etr" in base.lower() else {},
    )
    module = getattr(transformers, found[f"{base.removesuffix('Seg')}{kind}".lower()])(config)
    if "Detr" in base or base == "TableTransformer" or base == "DFine":

        def call(m: Any, x: torch.Tensor) -> tuple:
            given = m(pixel_values=x, pixel_mask=torch.ones_like(x[:, 0], dtype=torch.long))
            return tuple(given[key] for key in results)
    else:

        def call(m: Any, x: torch.Tensor) -> tuple:
            given = m(pixel_values=x)
            return tuple(given[key] for key in results)

    step = 28 if base == "DepthAnything" else 32
    given = of_pictures(Call(module, call), size, is_open=base not in _FIXED, step=step)
    if base in ("VitMatte", "SuperPoint", "Swin2SR"):
        channels = 4 if base == "VitMatte" else 3
        old = given.make
        given.make = lambda **sizes: old(channels=channels, **sizes)
    return given


@published("transformers.CLIP", "transformers.Siglip", "transformers.OwlViT", "transformers.CLIPSeg")
def image_and_text(name: str, whole: bool) -> Architecture:
    base = name.removeprefix("transformers.")
    if base == "OwlViT":
        import transformers

        config = transformers.OwlViTConfig()
        module: Any = transformers.OwlViTForObjectDetection(config)
        config.vision_config.image_size = config.vision_config.image_size
        call = Call(
            module,
            lambda m, x, ids, mask: tuple(
                m(pixel_values=x, input_ids=ids, attention_mask=mask)[k] for k in ("logits", "pred_boxes")
            ),
        )
        size = config.vision_config.image_size
    elif base == "CLIPSeg":
        import transformers

        config = transformers.CLIPSegConfig()
        module = transformers.CLIPSegForImageSegmentation(config)
        call = Call(
            module,
            lambda m, x, ids, mask: m(pixel_values=x, input_ids=ids, attention_mask=mask).logits,
        )
        size = 224
    else:
        module, config = vision_text(base, whole)
        call = Call(
            module,
            lambda m, x, ids, mask: tuple(
                m(pixel_values=x, input_ids=ids, attention_mask=mask)[k]
                for k in ("logits_per_image", "text_embeds", "image_embeds")
            ),
        )
        size = 224

    def make(batch: int, texts: int, length: int) -> tuple:
        texts = batch if base == "CLIPSeg" else batch * texts if base == "OwlViT" else texts
        ids = tokens(texts, length, below=1000)
        ids[:, -1] = config.text_config.eos_token_id if config.text_config.eos_token_id < 49000 else 49407
        mask = torch.ones(texts, length, dtype=torch.long)
        mask[0, length // 2 :] = 0
        return picture(batch, size, size), ids, mask

    dims: list[dict[int, str]] = [{0: "batch"}, {0: "texts", 1: "length"}, {0: "texts", 1: "length"}]
    length = 16 if base != "Siglip" else 64
    sizes = [{"batch": 2, "texts": 3, "length": length}, {"batch": 1, "texts": 2, "length": length // 2 + 2}]
    if base == "OwlViT":
        sizes = [{"batch": 2, "texts": 3, "length": 16}, {"batch": 3, "texts": 3, "length": 10}]
        dims = [{0: "batch"}, {0: "all_texts", 1: "length"}, {0: "all_texts", 1: "length"}]
    if base == "CLIPSeg":
        dims = [{0: "batch"}, {0: "batch", 1: "length"}, {0: "batch", 1: "length"}]
    return Architecture(settled(call), make, ["image", "ids", "mask"], dims, sizes)
