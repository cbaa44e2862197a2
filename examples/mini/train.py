# SPDX-License-Identifier: Apache-2.0
"""Trains the mini model: `python train.py OUT MINUTES`.

OUT holds the tokenizer; with OUT/train.pt there, training goes on from it (`LR=0.0016` in the
environment sets the learning rate). Muon for matrices, AdamW for the rest; the router is balanced
by its bias, without a loss. The last part adds noise of the size of the container's quantisation
error to the weights, so that 3-bit experts and a 4-bit trunk cost little.
"""

import math
import os
import random
import sys
import time

import torch
import torch.nn.functional as F

import corpus
import tokenizer
from model import Config, Model

BATCH, TOKENS = 12, 192
SEED = 1
NOISE_EXPERTS, NOISE_TRUNK = 0.18, 0.08  # of a row's root mean square
CONFIG = dict(
    vocab_size=tokenizer.VOCAB,
    hidden_size=192,
    num_hidden_layers=8,
    num_attention_heads=3,
    kda_heads=3,
    latent=96,
    moe_intermediate_size=96,
    intermediate_size=384,
)


class Muon(torch.optim.Optimizer):
    """Orthogonalised momentum (Jordan et al. 2024), scaled to an RMS of 0.2 as in Moonlight.

    Takes matrices [..., M, N]. Moonlight: arXiv 2502.16982.
    """

    def __init__(self, params, lr, momentum=0.95, wd=0.05):
        super().__init__(params, dict(lr=lr, momentum=momentum, wd=wd))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                m.lerp_(p.grad, 1 - group["momentum"])
                update = orthogonal(p.grad.lerp(m, group["momentum"]))
                p.mul_(1 - group["lr"] * group["wd"])
                p.add_(update, alpha=-group["lr"] * 0.2 * math.sqrt(max(p.shape[-2:])))


def orthogonal(x):
    """The nearest matrix whose singular values are about 1, by a Newton-Schulz iteration."""
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.flatten(-2).norm(dim=-1)[..., None, None] + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
    return x.mT if tall else x


def batches(encoding, r):
    """(ids, weights) [BATCH, TOKENS + 1]: what the user says weighs a tenth."""
    rows = []
    while True:
        ids, weights = [], []
        while len(ids) < TOKENS + 1:
            document = corpus.document(r)
            raw = len(document) == 2
            learnt = raw
            for i, (text, is_markup) in enumerate(document):
                begins = is_markup and text == "<|open|>" and document[i + 1][0] == "message"
                if not raw and begins:
                    learnt = document[i + 4][0] == "assistant"
                tokens = corpus.encode(encoding, [(text, is_markup)], tokenizer.SPECIALS)
                ids += tokens
                weights += [1.0 if learnt or is_markup else 0.1] * len(tokens)
        rows.append((ids[: TOKENS + 1], weights[: TOKENS + 1]))
        if len(rows) == BATCH:
            yield torch.tensor([i for i, _ in rows]), torch.tensor([w for _, w in rows])
            rows = []


def is_muon(name, p):
    adam = any(part in name for part in ("embed", "lm_head", ".gate.", "conv1d"))
    return p.ndim >= 2 and min(p.shape[-2:]) >= 16 and not adam


class Noise:
    """Weights with noise for the length of a forward and backward pass."""

    def __init__(self, params):
        self.params = [(p, NOISE_EXPERTS if p.ndim == 3 else NOISE_TRUNK) for p in params]
        self.clean = {}

    @torch.no_grad()
    def add(self):
        for p, size in self.params:
            self.clean[p] = p.detach().clone()
            rms = p.pow(2).mean(-1, keepdim=True).sqrt()
            p.add_(torch.randn_like(p) * rms, alpha=size)

    @torch.no_grad()
    def remove(self):
        for p, _ in self.params:
            p.copy_(self.clean[p])


def weighted_loss(model, ids, weights):
    logits = model(ids[:, :-1])
    losses = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    weights = weights[:, 1:].flatten()
    return (losses * weights).sum() / weights.sum()


def report(step, average, lr, seen, start, moes, experts):
    load = torch.stack([moe.load.float() / moe.load.sum() * experts for moe in moes])
    speed = seen / (time.time() - start)
    print(
        f"step {step} loss {average:.4f} lr {lr:.2e} tokens {seen} {speed:.0f} tok/s "
        f"max load {load.max():.1f} min {load.min():.2f}",
        flush=True,
    )


def main():
    out, minutes = sys.argv[1], float(sys.argv[2])
    top_lr = float(os.environ.get("LR", 4e-3))
    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    encoding = tokenizer.load(out)
    config = Config(**CONFIG)
    model = Model(config)
    saved = out + "/train.pt"
    resumed = os.path.exists(saved)
    if resumed:
        model.load_state_dict(torch.load(saved)["model"])
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters", flush=True)
    matrices = [p for n, p in model.named_parameters() if is_muon(n, p)]
    rest = [p for n, p in model.named_parameters() if not is_muon(n, p)]
    adam = torch.optim.AdamW(rest, top_lr, betas=(0.9, 0.95), weight_decay=0.01)
    optimisers = [Muon(matrices, top_lr), adam]
    moes = [layer.mlp for layer in model.layers if not layer.dense]
    noise = Noise(matrices)

    def save(step):
        torch.save(dict(model=model.state_dict(), cfg=CONFIG, step=step), saved)

    start, step, seen, average = time.time(), 0, 0, None
    for ids, weights in batches(encoding, random.Random(SEED + resumed)):
        done = (time.time() - start) / (minutes * 60)
        if done >= 1:
            break
        lr = top_lr * min(1, (step + 1) / 60) * (1 - done)
        for optimiser in optimisers:
            for group in optimiser.param_groups:
                group["lr"] = lr
        noisy = resumed or done > 0.6
        if noisy:
            noise.add()
        loss = weighted_loss(model, ids, weights)
        loss.backward()
        if noisy:
            noise.remove()
        torch.nn.utils.clip_grad_norm_(rest, 1.0)
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        rate = (3e-4 if resumed else 1e-3) * (1 - done)
        for moe in moes:
            pull = torch.sign(moe.load.float().mean() - moe.load)
            moe.gate.e_score_correction_bias += rate * pull
        step += 1
        seen += ids.numel()
        average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
        if step % 20 == 0:
            report(step, average, lr, seen, start, moes, config.num_experts)
        if step % 200 == 0:
            save(step)
    save(step)
    print("done", step, seen, average)


if __name__ == "__main__":
    main()
