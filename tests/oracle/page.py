# SPDX-License-Identifier: Apache-2.0
"""Both families' forward pass as the model pages state it, token by token, in any precision.

The third opinion: where an installed engine and ours differ, this shows which one left the
formulas, and in f64 it shows who rounds how much. It also keeps what happens inside a layer
(`Trace.parts`). Written for reading, not for speed; weights come under the release's names.

Shapes: T tokens, H heads, D head size.
"""

import dataclasses

import torch
import torch.nn.functional as F


@dataclasses.dataclass
class Trace:
    """What a run leaves behind."""

    hidden: list = dataclasses.field(default_factory=list)  # after each layer, [T, hidden]
    parts: dict = dataclasses.field(default_factory=dict)  # (layer, "attention" | "ffn")
    logits: torch.Tensor | None = None  # [T, vocab]
    margin: float = float("inf")  # of the closest routing decision


class Page:
    """A model: the release's config and weights."""

    def __init__(self, config, weights, dtype=torch.float32):
        self.prefix = "language_model." if "text_config" in config else ""
        self.config = config.get("text_config", config)
        self.linear = self.config["linear_attn_config"]
        self.eps = self.config["rms_norm_eps"]
        self.weights = {name: torch.as_tensor(w).to(dtype) for name, w in weights.items()}

    @torch.no_grad()
    def run(self, ids):
        trace = Trace()
        block_size = self.config.get("attn_res_block_size")
        blocks = []  # residuals at the start of each block, [T, hidden] each
        x = self.get("model.embed_tokens.weight")[ids]
        for layer in range(self.config["num_hidden_layers"]):
            name = f"model.layers.{layer}."
            residual, h = x, x
            if block_size and blocks:
                h = self.attend(blocks, residual, name + "self_attention_res")
            starts_block = block_size and layer % block_size == 0
            if starts_block:
                blocks.append(residual)
            attention = self.attention(layer, self.norm(h, name + "input_layernorm"))
            x = attention if starts_block else residual + attention
            h = self.attend(blocks, x, name + "mlp_res") if block_size else x
            ffn = self.ffn(name, self.norm(h, name + "post_attention_layernorm"), trace)
            x = x + ffn
            trace.hidden.append(x)
            trace.parts[layer, "attention"], trace.parts[layer, "ffn"] = attention, ffn
        if blocks:
            x = self.attend(blocks, x, "model.output_attn_res")
        trace.logits = self.project(self.norm(x, "model.norm"), "lm_head")
        return trace

    def get(self, name):
        return self.weights[self.prefix + name]

    def has(self, name):
        return self.prefix + name in self.weights

    def project(self, x, name):
        return x @ self.get(name + ".weight").t()

    def norm(self, x, name, eps=None):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + (eps or self.eps))
        return x * scale * self.get(name + ".weight")

    def attend(self, blocks, partial, name):
        """Attention over the residual history, one learnt query for all tokens."""
        values = torch.stack(blocks + [partial], 1)  # [T, blocks, hidden]
        scores = self.norm(values, name + "_norm") @ self.get(name + "_proj.weight").flatten()
        return (scores.softmax(-1).unsqueeze(-1) * values).sum(1)

    def attention(self, layer, x):
        is_kda = layer + 1 in self.linear["kda_layers"]
        return (self.kda if is_kda else self.mla)(x, f"model.layers.{layer}.self_attn.")

    def kda(self, x, name):
        """The gated delta rule (Kimi Linear, arXiv 2510.26692), in its recurrent form."""
        tokens, heads, size = len(x), self.linear["num_heads"], self.linear["head_dim"]
        shape = (tokens, heads, size)
        q, k, v = (self.convolve(self.project(x, f"{name}{p}_proj"), f"{name}{p}_conv1d")
                   .view(shape) for p in "qkv")
        z = self.project(self.project(x, name + "f_a_proj"), name + "f_b_proj")
        z = (z + self.get(name + "dt_bias")).view(shape)
        rate = self.get(name + "A_log").flatten()[:heads].exp().view(1, heads, 1)
        bound = self.linear.get("gate_lower_bound")
        if bound is None:
            decay = torch.exp(-rate * F.softplus(z))
        else:
            decay = torch.exp(bound * torch.sigmoid(rate * z))
        beta = torch.sigmoid(self.project(x, name + "b_proj")).unsqueeze(-1)  # [T, H, 1]
        q, k = unit(q) * size**-0.5, unit(k)

        state = x.new_zeros(heads, size, size)  # [H, keys, values]
        outputs = []
        for t in range(tokens):
            state = state * decay[t].unsqueeze(-1)
            recalled = (state * k[t].unsqueeze(-1)).sum(1)
            delta = beta[t] * (v[t] - recalled)
            state = state + k[t].unsqueeze(-1) * delta.unsqueeze(1)
            outputs.append((state * q[t].unsqueeze(-1)).sum(1))
        out = self.norm(torch.stack(outputs), name + "o_norm")

        if self.linear.get("use_full_rank_gate"):
            gate = self.project(x, name + "g_proj")
        else:
            gate = self.project(self.project(x, name + "g_a_proj"), name + "g_b_proj")
        out = out * torch.sigmoid(gate.view(shape))
        return self.project(out.reshape(tokens, -1), name + "o_proj")

    def convolve(self, x, name):
        """Causal, one filter a channel, newest last."""
        weight = self.get(name + ".weight")[:, 0]  # [channels, size]
        size = weight.shape[1]
        padded = torch.cat([x.new_zeros(size - 1, x.shape[1]), x])
        return F.silu(sum(padded[j : j + len(x)] * weight[:, j] for j in range(size)))

    def mla(self, x, name):
        """Latent attention without positions, absorbed: scores are taken in the latent."""
        c, tokens = self.config, len(x)
        heads, nope, value = c["num_attention_heads"], c["qk_nope_head_dim"], c["v_head_dim"]
        rank = c["kv_lora_rank"]
        if c["q_lora_rank"]:
            low = self.norm(self.project(x, name + "q_a_proj"), name + "q_a_layernorm", 1e-6)
            q = self.project(low, name + "q_b_proj")
        else:
            q = self.project(x, name + "q_proj")
        q = q.view(tokens, heads, -1)  # [T, H, nope + rope]
        cache = self.project(x, name + "kv_a_proj_with_mqa")
        latent = self.norm(cache[:, :rank], name + "kv_a_layernorm", 1e-6)
        key_value = self.get(name + "kv_b_proj.weight").view(heads, nope + value, rank)
        q_latent = torch.einsum("thn,hnr->thr", q[..., :nope], key_value[:, :nope])
        scores = torch.einsum("thr,sr->hts", q_latent, latent)
        scores = scores + torch.einsum("thr,sr->hts", q[..., nope:], cache[:, rank:])
        scores = scores * q.shape[-1] ** -0.5
        future = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, float("-inf")).softmax(-1)
        mixed = torch.einsum("hts,sr->thr", weights, latent)
        out = torch.einsum("thr,hvr->thv", mixed, key_value[:, nope:]).reshape(tokens, -1)
        if c.get("mla_use_output_gate"):
            out = out * torch.sigmoid(self.project(x, name + "g_proj"))
        return self.project(out, name + "o_proj")

    def ffn(self, name, x, trace):
        if self.has(name + "block_sparse_moe.gate.weight"):
            return self.moe(x, name + "block_sparse_moe.", trace)
        return self.feed_forward(x, name + "mlp.", ("gate_proj", "up_proj", "down_proj"))

    def moe(self, x, name, trace):
        c = self.config
        scores = torch.sigmoid(self.project(x, name + "gate"))  # [T, experts]
        biased = scores + self.get(name + "gate.e_score_correction_bias")
        top = c["num_experts_per_token"]
        ranked = biased.sort(-1, descending=True)
        chosen = ranked.indices[:, :top]
        margins = ranked.values[:, top - 1] - ranked.values[:, top]
        trace.margin = min(trace.margin, margins.min().item())
        weights = scores.gather(1, chosen)
        if c.get("moe_renormalize") and top > 1:
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        weights = weights * c["routed_scaling_factor"]

        latent = c.get("routed_expert_hidden_size")
        h = self.project(x, name + "routed_expert_down_proj") if latent else x
        y = torch.zeros_like(h)
        for expert in chosen.unique().tolist():
            rows, places = (chosen == expert).nonzero(as_tuple=True)
            out = self.feed_forward(h[rows], f"{name}experts.{expert}.", ("w1", "w3", "w2"))
            y.index_add_(0, rows, out * weights[rows, places].unsqueeze(-1))
        if latent and c.get("latent_moe_use_norm"):
            y = self.norm(y, name + "routed_expert_norm")
        if latent:
            y = self.project(y, name + "routed_expert_up_proj")
        if c.get("num_shared_experts"):
            parts = ("gate_proj", "up_proj", "down_proj")
            y = y + self.feed_forward(x, name + "shared_experts.", parts)
        return y

    def feed_forward(self, x, name, parts):
        gate, up, down = (name + part for part in parts)
        return self.project(self.activate(self.project(x, gate), self.project(x, up)), down)

    def activate(self, gate, up):
        c = self.config
        if c["hidden_act"] == "silu":
            return F.silu(gate) * up
        beta, linear_beta = c["activation_situ_beta"], c.get("activation_situ_linear_beta")
        if linear_beta:
            up = linear_beta * torch.tanh(up / linear_beta)
        return beta * torch.tanh(gate / beta) * torch.sigmoid(gate) * up


def unit(x):
    return x / torch.sqrt((x * x).sum(-1, keepdim=True) + 1e-6)
