# SPDX-License-Identifier: Apache-2.0
"""The container's quantisation, simulated in PyTorch.

Residual vector quantisation of experts (3 stages of 256 entries, vectors of 8), groups of 128 for
trunk matrices. `quantise` replaces a model's weights in place.
"""

import torch

STAGES, ENTRIES, VECTOR, GROUP = 3, 256, 8, 128


def kmeans(x, count, iterations=10, seed=0):
    generator = torch.Generator().manual_seed(seed)
    centres = x[torch.randperm(len(x), generator=generator)[:count]].clone()
    for _ in range(iterations):
        owner = nearest(x, centres)
        sizes = torch.bincount(owner, minlength=count)
        sums = torch.zeros_like(centres).index_add_(0, owner, x)
        means = sums / sizes.clamp(min=1)[:, None]
        anywhere = x[torch.randint(len(x), (count,), generator=generator)]
        centres = torch.where(sizes[:, None] > 0, means, anywhere)
    return centres


def nearest(x, centres):
    return ((centres * centres).sum(1) - 2 * x @ centres.t()).argmin(1)


def beam_encode(x, books, width):
    """x [n, 8] -> what is decoded; keeps the `width` best partial sums after each stage."""
    count = len(x)
    rest = x[:, None]  # [n, beams, 8]
    for book in books:
        # [n, beams, entries]
        distance = (
            (rest * rest).sum(-1)[..., None] - 2 * rest @ book.t() + (book * book).sum(1)
        )
        beams = min(width, distance.shape[1] * distance.shape[2])
        best = distance.flatten(1).topk(beams, largest=False)[1]
        parent = torch.arange(count)[:, None], best // len(book)
        rest = rest[parent] - book[best % len(book)]
    best = (rest * rest).sum(-1).argmin(1)
    return x - rest[torch.arange(count), best]


def quantise_experts(w, beam):
    """w [experts, M, N] -> quantised copy; the experts of a layer and kind share their books."""
    scale = w.abs().amax(-1, keepdim=True).clamp(min=1e-8)
    vectors = (w / scale).reshape(-1, VECTOR)
    rest, books = vectors.clone(), []
    for stage in range(STAGES):
        book = kmeans(rest, ENTRIES, seed=stage)
        books.append(book)
        rest = rest - book[nearest(rest, book)]
    decoded = torch.cat([beam_encode(part, books, beam) for part in vectors.split(2048)])
    return decoded.reshape(w.shape) * scale


def quantise_groups(w, bits=4):
    rows, columns = w.reshape(-1, w.shape[-1]).shape
    padded = torch.nn.functional.pad(w.reshape(rows, columns), (0, (-columns) % GROUP))
    groups = padded.reshape(rows, -1, GROUP)
    top = 2 ** (bits - 1) - 1
    scale = groups.abs().amax(-1, keepdim=True).clamp(min=1e-8) / top
    decoded = (groups / scale).round().clamp(-top - 1, top) * scale
    return decoded.reshape(rows, -1)[:, :columns].reshape(w.shape)


@torch.no_grad()
def quantise(model, beam):
    """Returns the relative error of the experts' weights."""
    error = total = 0
    for name, p in model.named_parameters():
        if p.ndim == 3 and name.endswith((".w1", ".w2", ".w3")):
            decoded = quantise_experts(p.data, beam)
            error += (decoded - p).pow(2).sum()
            total += p.pow(2).sum()
            p.copy_(decoded)
        elif "embed" in name or "lm_head" in name:
            p.copy_(quantise_groups(p.data, 8))
        elif p.ndim == 2 and p.numel() > 8192:
            p.copy_(quantise_groups(p.data))
    return (error / total).sqrt().item()
