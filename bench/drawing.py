# SPDX-License-Identifier: MIT
"""Architectures that nobody chose: drawn by a seed from timm, torchvision and transformers, with random weights.

A name says where one comes from: "timm:convnext_small", "torchvision:video.r3d_18", "transformers:llama". Of transformers
there are the base models by their default configurations, cut to LAYERS layers, of a model that translates the encoder
alone. What is not installed is not drawn from.
"""
import importlib.util
import random
import warnings

SOURCES = ["timm", "torchvision", "transformers"]
LAYERS, TOKENS = 4, 128
DEPTHS = ["num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers", "num_encoder_layers", "num_decoder_layers"]


def split(name):
    source, _, what = name.partition(":")
    return source, what


def is_drawn(name):
    return split(name)[0] in SOURCES


# --- what there is ---


def timm_names():
    import timm
    return timm.list_models()


def torchvision_names():
    import torchvision.models as models
    found = models.list_models(module=models)
    for kind in "segmentation", "video":
        found += [f"{kind}.{name}" for name in models.list_models(module=getattr(models, kind))]
    return found


def transformers_names():
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES
    return sorted(MODEL_MAPPING_NAMES)


def names(seed, sources):
    """All of them in the order of the seed; with several sources each has its turn."""
    lists = []
    for source in sources:
        if importlib.util.find_spec(source):
            found = list({"timm": timm_names, "torchvision": torchvision_names, "transformers": transformers_names}[source]())
            random.Random(seed).shuffle(found)
            lists.append([f"{source}:{name}" for name in found])
    for i in range(max(map(len, lists), default=0)):
        yield from (found[i] for found in lists if i < len(found))


# --- making one ---


def build_transformer(what, attention):
    import transformers
    config = transformers.AutoConfig.for_model(what)
    for field in DEPTHS:
        if isinstance(getattr(config, field, None), int) and field not in config.attribute_map:
            setattr(config, field, min(getattr(config, field), LAYERS))
    config.use_cache = False
    try:
        model = transformers.AutoModel.from_config(config, attn_implementation=attention)
    except (ValueError, ImportError):  # it has the plain attention alone
        model = transformers.AutoModel.from_config(config, attn_implementation="eager")
    return model.get_encoder() if config.is_encoder_decoder else model


def build(name, attention="eager"):
    """The module, evaluating."""
    source, what = split(name)
    warnings.filterwarnings("ignore")
    if source == "timm":
        import timm
        return timm.create_model(what, pretrained=False).eval()
    if source == "transformers":
        return build_transformer(what, attention).eval()
    import torchvision.models as models
    no_weights = {"weights_backbone": None} if what.startswith("segmentation.") else {}
    kind, _, what = what.rpartition(".")
    return models.get_model_builder(what)(weights=None, **no_weights).eval() if kind else models.get_model(what, weights=None).eval()


def parameters(name):
    """How many it has; nothing is allocated, unless making it reads its own numbers."""
    import torch
    try:
        with torch.device("meta"):
            model = build(name)
    except NotImplementedError:
        model = build(name)
    return sum(p.numel() for p in model.parameters())


def first(out):
    """The first tensor of what a model gives."""
    while not hasattr(out, "shape"):
        out = next(iter(out.values())) if hasattr(out, "values") else out[0]
    return out


# --- its inputs ---


def image_size(name, model):
    source, what = split(name)
    if source == "timm":
        return list(model.default_cfg["input_size"])
    if what.startswith("video."):
        return [3, 16] + [224 if "mvit" in what or "swin" in what else 112] * 2
    return [3] + [299 if what == "inception_v3" else model.image_size if hasattr(model, "image_size") else 224] * 2


def inputs_of(name, model):
    """A function of a batch that gives named inputs, random ones."""
    import torch
    if split(name)[0] != "transformers":
        size = image_size(name, model)
        return lambda batch: {"image": torch.randn(batch, *size)}
    kind, config = model.main_input_name, model.config
    if kind == "pixel_values":
        side = getattr(config, "image_size", 224)
        side = side if isinstance(side, int) else side[0]
        return lambda batch: {kind: torch.randn(batch, getattr(config, "num_channels", 3), side, side)}
    if kind == "input_features":
        return lambda batch: {kind: torch.randn(batch, config.num_mel_bins, 2 * config.max_source_positions)}
    if kind == "input_values":
        return lambda batch: {kind: torch.randn(batch, 16000)}
    words = min(getattr(config, "vocab_size", 1000), 30000)
    return lambda batch: {kind: torch.randint(0, words, (batch, TOKENS)), "attention_mask": torch.ones(batch, TOKENS, dtype=torch.int64)}
