# SPDX-License-Identifier: Apache-2.0
"""The two public engines that the forward pass is compared with, behind one function.

`run(family, config, weights, ids, folder)` loads release-named weights and returns the hidden
state after every layer, what attention and feed-forward added inside each, and the logits.
Kimi-Linear runs in transformers, Kimi K3 in mlx-lm; both in f32 on the CPU. `folder` is scratch.
"""

import json

import numpy as np
import torch
from safetensors.torch import save_file

import page

NAMES = {"kimi_linear": "transformers", "kimi_k3": "mlx-lm"}
# Of the largest value. mlx-lm is itself up to 8e-6 away from the formulas.
LIMITS = {"kimi_linear": 1e-5, "kimi_k3": 2e-5}


def run(family, config, weights, ids, folder):
    return ENGINES[family](config, weights, ids, folder)


@torch.no_grad()
def transformers(config, weights, ids, folder):
    from transformers import KimiLinearForCausalLM
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(
        {name: torch.from_numpy(w) for name, w in weights.items()},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    # Experts as a plain loop: the grouped kernels have shapes they do not take.
    model, report = KimiLinearForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager",
        output_loading_info=True,
    )
    unloaded = report["missing_keys"] or report["unexpected_keys"] or report["mismatched_keys"]
    assert not unloaded, report
    model.eval()

    trace = page.Trace()
    for index, layer in enumerate(model.model.layers):
        layer.self_attn.register_forward_hook(keep(trace.parts, (index, "attention")))
        layer.mlp.register_forward_hook(keep(trace.parts, (index, "ffn")))
        layer.register_forward_hook(lambda module, args, out: trace.hidden.append(first(out)))
    trace.logits = model(ids[None], use_cache=False).logits[0]
    return trace


def keep(parts, key):
    def hook(module, args, out):
        parts[key] = first(out)

    return hook


def first(out):
    """A layer's [1, T, hidden], alone or in a tuple, as [T, hidden]."""
    return (out[0] if isinstance(out, tuple) else out)[0]


def mlx(config, weights, ids, folder):
    import mlx.core as mx
    from mlx_lm.models import kimi_k3

    mx.set_default_device(mx.cpu)
    model = kimi_k3.Model(kimi_k3.ModelArgs.from_dict(config))
    loaded = model.sanitize({name: mx.array(w) for name, w in weights.items()})
    model.load_weights(list(loaded.items()), strict=True)
    model.eval()

    trace = page.Trace()

    def record(call, key):
        """`call`, whose result is kept."""

        def recorded(*args, **kwargs):
            out = call(*args, **kwargs)
            trace.parts[key] = torch.from_numpy(np.array(out[0]))
            return out

        return recorded

    class Layer:
        """A decoder layer that keeps what it returns."""

        def __init__(self, layer):
            self.layer = layer
            self.is_linear = layer.is_linear

        def __call__(self, *args, **kwargs):
            x, blocks = self.layer(*args, **kwargs)
            trace.hidden.append(torch.from_numpy(np.array(x[0])))
            return x, blocks

    text = model.language_model.model
    for index, layer in enumerate(text.layers):
        # A module keeps submodules as items, so a plain function takes the attribute's place.
        attention, ffn = layer.self_attn, layer.mlp
        del layer["self_attn"], layer["mlp"]
        object.__setattr__(layer, "self_attn", record(attention, (index, "attention")))
        object.__setattr__(layer, "mlp", record(ffn, (index, "ffn")))
    text.layers = [Layer(layer) for layer in text.layers]
    trace.logits = torch.from_numpy(np.array(model(mx.array(ids.numpy())[None])[0]))
    return trace


ENGINES = {"kimi_linear": transformers, "kimi_k3": mlx}
