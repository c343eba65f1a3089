"""Encoders of text, and encoder-decoders without a cache."""

from __future__ import annotations

from typing import Any

import torch
from architecture import Architecture, Call, published, settled, tokens
from images import of_config
from torch import nn

_ENCODERS: dict[str, dict[str, Any]] = {
    "Bert": {},
    "DistilBert": {"small": {"n_layers": 2}},
    "Roberta": {},
    "Albert": {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
    "Electra": {},
    "Deberta": {},
    "DebertaV2": {
        "relative_attention": True,
        "position_buckets": 256,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_attention_heads": 12,
        "num_hidden_layers": 6,
    },
    "MPNet": {},
    "ModernBert": {},
    "Camembert": {},
    "ConvBert": {},
    "SqueezeBert": {},
    "MobileBert": {},
    "FNet": {},
    "XLNet": {"small": {"n_layer": 2}},
    "Funnel": {"small": {}},
    "Longformer": {"attention_window": 32},
    "BigBird": {"attention_type": "original_full"},
    "Nystromformer": {},
    "RoFormer": {},
    "LayoutLM": {},
    "XLM": {"small": {"n_layers": 2}},
    "IBert": {},
    "MegatronBert": {},
    "Canine": {},
    "NomicBert": {},
    "JinaEmbeddingsV3": {},
}


@published(*(f"transformers.{name}" for name in _ENCODERS))
def encoder(name: str, whole: bool) -> Architecture:
    import transformers

    base = name.removeprefix("transformers.")
    options = dict(_ENCODERS[base])
    small = options.pop("small", {"num_hidden_layers": 2})
    config = of_config(base, getattr(transformers, f"{base}Config")(**options), whole, small)
    module = getattr(transformers, f"{base}Model")(config)
    takes_mask = base not in ("FNet",)
    call = Call(
        module,
        (lambda m, ids, mask: m(input_ids=ids, attention_mask=mask)[0])
        if takes_mask
        else (lambda m, ids: m(input_ids=ids)[0]),
    )

    def make(batch: int, length: int) -> tuple:
        ids = tokens(batch, length, below=1000)
        mask = torch.ones(batch, length, dtype=torch.long)
        mask[0, length * 3 // 4 :] = 0
        return (ids, mask) if takes_mask else (ids,)

    names = ["ids", "mask"] if takes_mask else ["ids"]
    dims = [{0: "batch", 1: "length"}] * len(names)
    sizes = [{"batch": 2, "length": 40}, {"batch": 3, "length": 77}]
    if base in ("Longformer", "Nystromformer"):
        sizes = [{"batch": 2, "length": 64}, {"batch": 3, "length": 128}]
    return Architecture(settled(call), make, names, dims, sizes)


_PAIRS: dict[str, dict[str, Any]] = {
    "T5": {},
    "MT5": {},
    "UMT5": {},
    "LongT5": {},
    "Bart": {},
    "MBart": {},
    "Pegasus": {},
    "Marian": {},
    "M2M100": {},
    "Blenderbot": {"encoder_layers": 2, "decoder_layers": 2, "d_model": 1280},
    "ProphetNet": {},
    "LED": {"attention_window": 32},
    "SwitchTransformers": {},
}


@published(*(f"transformers.{name}" for name in _PAIRS))
def pair(name: str, whole: bool) -> Architecture:
    """Encoder and decoder in one call."""
    import transformers

    base = name.removeprefix("transformers.")
    config = getattr(transformers, f"{base}Config")(**_PAIRS[base])
    small = {
        "num_layers": 2,
        "num_decoder_layers": 2,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "num_encoder_layers": 2,
    }
    config = of_config(base, config, whole, small)
    module = getattr(transformers, f"{base}Model")(config)

    def run(m: Any, ids: torch.Tensor, mask: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        return m(input_ids=ids, attention_mask=mask, decoder_input_ids=out, use_cache=False)[0]

    def make(batch: int, length: int, written: int) -> tuple:
        mask = torch.ones(batch, length, dtype=torch.long)
        mask[0, length * 3 // 4 :] = 0
        return tokens(batch, length, below=1000), mask, tokens(batch, written, below=1000)

    dims = [{0: "batch", 1: "length"}, {0: "batch", 1: "length"}, {0: "batch", 1: "written"}]
    sizes = [{"batch": 2, "length": 32, "written": 7}, {"batch": 3, "length": 64, "written": 12}]
    return Architecture(settled(Call(module, run)), make, ["ids", "mask", "written"], dims, sizes)


class Recognizer(nn.Module):
    """CRNN: columns of a picture of text through two bidirectional recurrent layers (arXiv:1507.05717)."""

    def __init__(self, cell: type) -> None:
        super().__init__()
        widths, layers, before = [64, 128, 256, 256, 512, 512, 512], [], 1
        for i, width in enumerate(widths):
            kernel, padding = (2, 0) if i == 6 else (3, 1)
            layers += [nn.Conv2d(before, width, kernel, 1, padding), nn.ReLU()]
            if i in (2, 4, 6):
                layers.insert(-1, nn.BatchNorm2d(width))
            if i in (0, 1):
                layers.append(nn.MaxPool2d(2, 2))
            if i in (3, 5):
                layers.append(nn.MaxPool2d((2, 2), (2, 1), (0, 1)))
            before = width
        self.columns = nn.Sequential(*layers)
        self.recurrent = cell(512, 256, 2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(512, 37)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        columns = self.columns(image).squeeze(2).permute(0, 2, 1)
        return self.out(self.recurrent(columns)[0])


@published("crnn_lstm", "crnn_gru")
def recognizer(name: str, whole: bool) -> Architecture:
    from architecture import picture

    module = Recognizer(nn.GRU if name.endswith("gru") else nn.LSTM)
    return Architecture(
        settled(module),
        lambda batch, width: (picture(batch, 32, width, 1),),
        ["image"],
        [{0: "batch", 3: "width"}],
        [{"batch": 2, "width": 100}, {"batch": 3, "width": 144}],
    )


class Tagger(nn.Module):
    def __init__(self, cell: type) -> None:
        super().__init__()
        self.embed = nn.Embedding(5000, 300)
        self.recurrent = cell(300, 256, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(512, 50)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.recurrent(self.embed(ids))[0])


@published("tagger_lstm", "tagger_gru", "tagger_rnn")
def tagger(name: str, whole: bool) -> Architecture:
    cells = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
    module = Tagger(cells[name.removeprefix("tagger_")])
    return Architecture(
        settled(module),
        lambda batch, length: (tokens(batch, length, below=5000),),
        ["ids"],
        [{0: "batch", 1: "length"}],
        [{"batch": 2, "length": 20}, {"batch": 3, "length": 33}],
    )


@published("torch.transformer")
def transformer(name: str, whole: bool) -> Architecture:
    module = nn.Transformer(256, 8, 2, 2, 1024, batch_first=True)
    return Architecture(
        settled(module),
        lambda batch, length, written: (torch.randn(batch, length, 256), torch.randn(batch, written, 256)),
        ["source", "target"],
        [{0: "batch", 1: "length"}, {0: "batch", 1: "written"}],
        [{"batch": 2, "length": 10, "written": 5}, {"batch": 3, "length": 17, "written": 8}],
    )
