"""Classifiers of images, and encoders of them."""

from __future__ import annotations

import functools
from typing import Any

import torch
from architecture import Architecture, Call, picture, published, settled

_SQUARE = {"batch": 2}, {"batch": 3}


def of_pictures(
    module: Any, size: int | tuple[int, int], *, is_open: bool = True, step: int = 32, extra: Any = None
) -> Architecture:
    """For a batch of pictures; where is_open, of any height and width, too (multiples of `step` here)."""
    height, width = (size, size) if isinstance(size, int) else size

    if is_open:
        sizes = [
            {"batch": 2, "height": height, "width": width},
            {"batch": 1, "height": height + step, "width": width + 3 * step},
        ]
        return Architecture(
            settled(module), picture, ["image"], [{0: "batch", 2: "height", 3: "width"}], sizes
        )
    return Architecture(
        settled(module),
        functools.partial(picture, height=height, width=width),
        ["image"],
        [{0: "batch"}],
        list(_SQUARE),
    )


# --- torchvision ------------------------------------------------------------------------------------------

_TORCHVISION = {
    "resnet18": {},
    "resnext50_32x4d": {},
    "wide_resnet50_2": {},
    "mobilenet_v2": {},
    "mobilenet_v3_small": {},
    "mobilenet_v3_large": {},
    "efficientnet_b0": {},
    "efficientnet_v2_s": {},
    "convnext_tiny": {},
    "densenet121": {},
    "regnet_y_400mf": {},
    "regnet_x_400mf": {},
    "shufflenet_v2_x1_0": {},
    "mnasnet1_0": {},
    "squeezenet1_1": {},
    "alexnet": {},
    "vgg11_bn": {},
    "inception_v3": {"size": 299},
    "googlenet": {},
    "swin_t": {},
    "swin_v2_t": {"size": 256},
    "vit_b_32": {"is_open": False},
    "maxvit_t": {"is_open": False},
}


@published(*(f"torchvision.{name}" for name in _TORCHVISION))
def of_torchvision(name: str, whole: bool) -> Architecture:
    from torchvision import models

    options = dict(_TORCHVISION[name.removeprefix("torchvision.")])
    size = options.pop("size", 224)
    extra = {"init_weights": True} if name.endswith(("inception_v3", "googlenet")) else {}
    if extra:
        extra = {"init_weights": False, "aux_logits": True}
    module = models.get_model(name.removeprefix("torchvision."), weights=None, **extra)
    return of_pictures(module, size, **options)


# --- timm ---------------------------------------------------------------------------------------------------

_TIMM: dict[str, dict[str, Any]] = {
    "mobilenetv4_conv_small": {},
    "efficientvit_b0": {},
    "mobilevit_s": {"size": 256},
    "mobilevitv2_050": {"size": 256},
    "fastvit_t8": {"size": 256},
    "poolformer_s12": {},
    "coatnet_nano_rw_224": {"is_open": False},
    "levit_128s": {"is_open": False},
    "xcit_nano_12_p16_224": {"is_open": False},
    "dm_nfnet_f0": {"size": 192},
    "hrnet_w18_small": {},
    "res2net50_26w_4s": {},
    "edgenext_xx_small": {"size": 256},
    "beit_base_patch16_224": {"is_open": False},
    "deit_tiny_distilled_patch16_224": {"is_open": False},
    "eva02_tiny_patch14_224": {"is_open": False},
    "efficientformer_l1": {"is_open": False},
    "efficientformerv2_s0": {"is_open": False},
    "repvit_m1": {},
    "ghostnetv2_100": {},
    "mixer_s32_224": {"is_open": False},
    "resmlp_12_224": {"is_open": False},
    "gmlp_s16_224": {"is_open": False},
    "cait_xxs24_224": {"is_open": False},
    "crossvit_9_240": {"size": 240, "is_open": False},
    "tnt_s_patch16_224": {"is_open": False},
    "pit_ti_224": {"is_open": False},
    "twins_pcpvt_small": {"is_open": False},
    "pvt_v2_b0": {},
    "nest_tiny": {"is_open": False},
    "volo_d1_224": {"is_open": False},
    "davit_tiny": {},
    "focalnet_tiny_srf": {},
    "gcvit_xxtiny": {"is_open": False},
    "inception_next_tiny": {},
    "hgnetv2_b0": {},
    "maxvit_rmlp_pico_rw_256": {"size": 256, "is_open": False},
    "swinv2_cr_tiny_224": {"is_open": False},
    "sequencer2d_s": {},
    "convmixer_768_32": {},
    "vit_small_patch16_dinov3": {"size": 256, "is_open": False},
    "hiera_tiny_224": {"is_open": False},
    "mambaout_femto": {},
    "dla34": {},
    "dpn68": {},
    "cspdarknet53": {"size": 256},
    "vovnet39a": {},
    "halonet26t": {"size": 256, "is_open": False},
    "botnet26t_256": {"size": 256, "is_open": False},
    "lambda_resnet26t": {"size": 256, "is_open": False},
    "resnetv2_50": {},
    "ecaresnet26t": {"size": 256},
    "skresnet18": {},
    "selecsls42b": {},
    "tf_efficientnet_lite0": {},
    "tf_mobilenetv3_small_100": {},
    "mixnet_s": {},
    "rexnet_100": {},
    "visformer_tiny": {"is_open": False},
    "convit_tiny": {"is_open": False},
    "convnextv2_atto": {},
    "naflexvit_base_patch16_gap": {"size": 384, "is_open": False},
}


@published(*(f"timm.{name}" for name in _TIMM))
def of_timm(name: str, whole: bool) -> Architecture:
    import timm

    options = dict(_TIMM[name.removeprefix("timm.")])
    size = options.pop("size", 224)
    return of_pictures(timm.create_model(name.removeprefix("timm."), pretrained=False), size, **options)


# --- transformers -------------------------------------------------------------------------------------------

_TRANSFORMERS: dict[str, dict[str, Any]] = {
    "ViT": {},
    "DeiT": {},
    "Beit": {},
    "Swin": {"is_open": False},
    "Swinv2": {"size": 224, "is_open": False},
    "Dinov2": {"size": 518 // 14 * 14, "step": 14},
    "Levit": {"is_open": False},
    "MobileViT": {"size": 256},
    "MobileViTV2": {"size": 256},
    "PoolFormer": {},
    "RegNet": {},
    "ConvNextV2": {},
    "Pvt": {"is_open": False},
    "PvtV2": {},
    "Focalnet": {},
    "Cvt": {},
    "VAN": {},
    "EfficientNet": {"size": 256},
    "MobileNetV1": {},
    "Bit": {},
    "Hiera": {"is_open": False},
    "Data2VecVision": {"is_open": False},
    "SwiftFormer": {},
    "TextNet": {},
    "IJepa": {"is_open": False},
    "PerceiverForImageClassificationLearned": {"is_open": False},
}
_SMALL = {"num_hidden_layers": 2}


def of_config(name: str, config: Any, whole: bool, small: dict[str, int] = _SMALL) -> Any:
    """transformers' model of a config, with fewer layers where it is not to have its published size."""
    if not whole:
        for key, value in small.items():
            if hasattr(config, key):
                setattr(config, key, min(value, getattr(config, key)))
    return config


@published(*(f"transformers.{name}" for name in _TRANSFORMERS))
def of_transformers(name: str, whole: bool) -> Architecture:
    import transformers

    base = name.removeprefix("transformers.")
    options = dict(_TRANSFORMERS[base])
    size = options.pop("size", 224)
    if base.startswith("Perceiver"):
        config = transformers.PerceiverConfig()
        module = transformers.PerceiverForImageClassificationLearned(of_config(base, config, whole))
        module = Call(module, lambda m, x: m(inputs=x).logits)
        return of_pictures(module, size, **options)
    found = {n.lower(): n for n in dir(transformers)}
    config_class = getattr(transformers, found[f"{base}Config".lower()])
    model_class = getattr(transformers, found[f"{base}Model".lower()])
    module = model_class(of_config(base, config_class(), whole))
    takes_any = base in ("ViT", "DeiT", "Beit", "Dinov2")
    rest = {"interpolate_pos_encoding": True} if takes_any else {}
    if base in ("Beit", "Data2VecVision", "Swin", "Swinv2", "Hiera", "IJepa"):
        rest = {}
    if base == "Beit":
        options["is_open"] = False
    module = Call(module, lambda m, x: m(pixel_values=x, **rest)[0])
    return of_pictures(module, size, **options)


def vision_text(name: str, whole: bool) -> tuple[torch.nn.Module, Any]:
    import transformers

    config = getattr(transformers, f"{name}Config")()
    for part in (config.text_config, config.vision_config):
        of_config(name, part, whole)
    return getattr(transformers, f"{name}Model")(config), config
