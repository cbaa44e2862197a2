# SPDX-License-Identifier: Apache-2.0
"""Kimi K3's text architecture in PyTorch, small.

KDA and gated MLA without positions, experts in a latent, SiTU, attention residuals. Tensor names
are those of the release. Training uses the chunked delta rule; `recurrent=True` takes the step
form, which is the definition.

Shapes: B sequences, T positions, H heads, D head size.
"""

import dataclasses
import json
import math

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn


@dataclasses.dataclass
class Config:
    """The architecture's numbers. `full_attn_layers` counts from 1, as the release does."""

    vocab_size: int = 2048
    hidden_size: int = 256
    num_hidden_layers: int = 8
    num_attention_heads: int = 4
    intermediate_size: int = 512
    first_k_dense_replace: int = 1
    kda_heads: int = 4
    kda_dim: int = 64
    conv: int = 4
    gate_lower_bound: float = -5.0
    full_attn_layers: list = dataclasses.field(default_factory=lambda: [4, 8])
    q_lora_rank: int = 128
    kv_lora_rank: int = 128
    qk_nope_head_dim: int = 64
    qk_rope_head_dim: int = 32
    v_head_dim: int = 64
    num_experts: int = 32
    top_k: int = 4
    moe_intermediate_size: int = 128
    latent: int = 128
    num_shared_experts: int = 1
    routed_scaling_factor: float = 1.0
    attn_res_block_size: int = 3
    situ_beta: float = 4.0
    situ_linear_beta: float = 25.0
    eps: float = 1e-5

    def release_config(self, eos):
        """config.json in the release's own keys."""
        layers = range(1, self.num_hidden_layers + 1)
        linear = dict(
            num_heads=self.kda_heads,
            head_dim=self.kda_dim,
            short_conv_kernel_size=self.conv,
            kda_layers=[i for i in layers if i not in self.full_attn_layers],
            full_attn_layers=list(self.full_attn_layers),
            gate_lower_bound=self.gate_lower_bound,
            use_full_rank_gate=True,
        )
        text = dict(
            model_type="kimi_linear",
            vocab_size=self.vocab_size,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
            num_key_value_heads=self.num_attention_heads,
            intermediate_size=self.intermediate_size,
            first_k_dense_replace=self.first_k_dense_replace,
            moe_layer_freq=1,
            kv_lora_rank=self.kv_lora_rank,
            q_lora_rank=self.q_lora_rank,
            qk_nope_head_dim=self.qk_nope_head_dim,
            qk_rope_head_dim=self.qk_rope_head_dim,
            v_head_dim=self.v_head_dim,
            mla_use_nope=True,
            mla_use_output_gate=True,
            num_experts=self.num_experts,
            num_experts_per_token=self.top_k,
            moe_intermediate_size=self.moe_intermediate_size,
            num_shared_experts=self.num_shared_experts,
            moe_renormalize=True,
            moe_router_activation_func="sigmoid",
            num_expert_group=1,
            topk_group=1,
            use_grouped_topk=True,
            routed_scaling_factor=self.routed_scaling_factor,
            routed_expert_hidden_size=self.latent,
            latent_moe_use_norm=True,
            attn_res_block_size=self.attn_res_block_size,
            hidden_act="situ",
            activation_situ_beta=self.situ_beta,
            activation_situ_linear_beta=self.situ_linear_beta,
            rms_norm_eps=self.eps,
            eos_token_id=eos,
            tie_word_embeddings=False,
            num_nextn_predict_layers=0,
            linear_attn_config=linear,
        )
        return dict(
            architectures=["KimiK3ForConditionalGeneration"],
            model_type="kimi_k3",
            text_config=text,
        )

    @classmethod
    def from_release(cls, text):
        """The other way, from a config.json's text_config."""
        linear = text["linear_attn_config"]
        return cls(
            vocab_size=text["vocab_size"],
            hidden_size=text["hidden_size"],
            num_hidden_layers=text["num_hidden_layers"],
            num_attention_heads=text["num_attention_heads"],
            intermediate_size=text["intermediate_size"],
            first_k_dense_replace=text["first_k_dense_replace"],
            kda_heads=linear["num_heads"],
            kda_dim=linear["head_dim"],
            conv=linear["short_conv_kernel_size"],
            gate_lower_bound=linear["gate_lower_bound"],
            full_attn_layers=linear["full_attn_layers"],
            q_lora_rank=text["q_lora_rank"],
            kv_lora_rank=text["kv_lora_rank"],
            qk_nope_head_dim=text["qk_nope_head_dim"],
            qk_rope_head_dim=text["qk_rope_head_dim"],
            v_head_dim=text["v_head_dim"],
            num_experts=text["num_experts"],
            top_k=text["num_experts_per_token"],
            moe_intermediate_size=text["moe_intermediate_size"],
            latent=text["routed_expert_hidden_size"],
            num_shared_experts=text["num_shared_experts"],
            routed_scaling_factor=text["routed_scaling_factor"],
            attn_res_block_size=text["attn_res_block_size"],
            situ_beta=text["activation_situ_beta"],
            situ_linear_beta=text["activation_situ_linear_beta"],
            eps=text["rms_norm_eps"],
        )


def linear(inputs, outputs, std=0.02):
    layer = nn.Linear(inputs, outputs, bias=False)
    nn.init.normal_(layer.weight, std=std)
    return layer


class RMSNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight, self.eps)


def situ(gate, up, beta, linear_beta):
    gate = beta * torch.tanh(gate / beta) * torch.sigmoid(gate)
    return gate * (linear_beta * torch.tanh(up / linear_beta))


def unit(x):
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def kda_recurrent(q, k, v, g, beta):
    """q, k, v, g [B, H, T, D], beta [B, H, T] -> [B, H, T, D]: the definition."""
    batch, heads, tokens, size = q.shape
    state = q.new_zeros(batch, heads, size, v.shape[-1])
    out = []
    for t in range(tokens):
        state = state * g[:, :, t].exp().unsqueeze(-1)
        recalled = (state * k[:, :, t].unsqueeze(-1)).sum(-2)
        delta = beta[:, :, t].unsqueeze(-1) * (v[:, :, t] - recalled)
        state = state + k[:, :, t].unsqueeze(-1) * delta.unsqueeze(-2)
        out.append((state * q[:, :, t].unsqueeze(-1)).sum(-2))
    return torch.stack(out, 2)


def kda_chunked(q, k, v, g, beta, size=16):
    """The same by chunks: inside one, the delta rule is a unit lower-triangular solve.

    Decays are factored as exp(G_i) exp(-G_j); with a log-decay above -5 and 16 tokens a chunk both
    factors stay inside f32.
    """
    batch, heads, tokens, _ = q.shape
    padding = (-tokens) % size
    if padding:
        q, k, v, g = (F.pad(x, (0, 0, 0, padding)) for x in (q, k, v, g))
        beta = F.pad(beta, (0, padding))
    chunks = (tokens + padding) // size
    q, k, v, g = (x.reshape(batch, heads, chunks, size, -1) for x in (q, k, v, g))
    beta = beta.reshape(batch, heads, chunks, size, 1)

    total = g.cumsum(3)  # log-decay since the chunk began
    grown = k * (-total).exp()
    weighted = k * beta * total.exp()
    lower = torch.ones(size, size, dtype=torch.bool).tril()
    system = (weighted @ grown.transpose(-1, -2)).masked_fill(~lower.tril(-1), 0)
    right = torch.cat([v * beta, weighted], -1)
    solved = torch.linalg.solve_triangular(
        torch.eye(size) + system, right, upper=False, unitriangular=True
    )
    values, keys = solved[..., : v.shape[-1]], solved[..., v.shape[-1] :]
    decayed_q = q * total.exp()
    inside = (decayed_q @ grown.transpose(-1, -2)).masked_fill(~lower, 0)
    last = total[:, :, :, -1:]
    kept = k * (last - total).exp()
    decay = last.exp().transpose(-1, -2)

    state = q.new_zeros(batch, heads, q.shape[-1], v.shape[-1])
    out = []
    for n in range(chunks):
        new = values[:, :, n] - keys[:, :, n] @ state
        out.append(decayed_q[:, :, n] @ state + inside[:, :, n] @ new)
        state = state * decay[:, :, n] + kept[:, :, n].transpose(-1, -2) @ new
    return torch.stack(out, 2).reshape(batch, heads, chunks * size, -1)[:, :, :tokens]


class KDA(nn.Module):
    """Kimi Delta Attention with a bounded forget gate and a full-rank output gate."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        hidden, width, size = c.hidden_size, c.kda_heads * c.kda_dim, c.kda_dim
        for name in ("q", "k", "v"):
            setattr(self, name + "_proj", linear(hidden, width))
            conv = nn.Module()
            conv.weight = nn.Parameter(torch.randn(width, 1, c.conv) * 0.3)
            conv.weight.data[:, 0, -1] += 1
            setattr(self, name + "_conv1d", conv)
        self.f_a_proj = linear(hidden, size)
        self.f_b_proj = linear(size, width)
        self.b_proj = linear(hidden, c.kda_heads)
        self.g_proj = linear(hidden, width)
        self.o_proj = linear(width, hidden, 0.02 / math.sqrt(2 * c.num_hidden_layers))
        self.A_log = nn.Parameter(torch.zeros(c.kda_heads))
        self.dt_bias = nn.Parameter(torch.linspace(-5, -1, width)[torch.randperm(width)])
        self.o_norm = RMSNorm(size, c.eps)

    def convolve(self, x, conv):
        """Causal, one filter a channel."""
        padded = F.pad(x.transpose(1, 2), (self.c.conv - 1, 0))
        return F.silu(F.conv1d(padded, conv.weight, groups=x.shape[-1]).transpose(1, 2))

    def forward(self, x, recurrent=False):
        c = self.c
        batch, tokens, _ = x.shape

        def split(y):
            return y.view(batch, tokens, c.kda_heads, c.kda_dim).transpose(1, 2)

        q = split(self.convolve(self.q_proj(x), self.q_conv1d))
        k = split(self.convolve(self.k_proj(x), self.k_conv1d))
        v = split(self.convolve(self.v_proj(x), self.v_conv1d))
        z = self.f_b_proj(self.f_a_proj(x)) + self.dt_bias
        g = c.gate_lower_bound * torch.sigmoid(self.A_log.exp().view(1, -1, 1, 1) * split(z))
        beta = torch.sigmoid(self.b_proj(x)).transpose(1, 2)
        rule = kda_recurrent if recurrent else kda_chunked
        o = rule(unit(q) * c.kda_dim**-0.5, unit(k), v, g, beta)
        gate = torch.sigmoid(self.g_proj(x).view(batch, tokens, c.kda_heads, c.kda_dim))
        o = self.o_norm(o.transpose(1, 2)) * gate
        return self.o_proj(o.reshape(batch, tokens, -1))


class MLA(nn.Module):
    """Latent attention without positions, low-rank queries and an output gate."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        hidden, heads = c.hidden_size, c.num_attention_heads
        query = c.qk_nope_head_dim + c.qk_rope_head_dim
        self.q_a_proj = linear(hidden, c.q_lora_rank)
        self.q_a_layernorm = RMSNorm(c.q_lora_rank, 1e-6)
        self.q_b_proj = linear(c.q_lora_rank, heads * query, 0.06)
        self.kv_a_proj_with_mqa = linear(hidden, c.kv_lora_rank + c.qk_rope_head_dim)
        self.kv_a_layernorm = RMSNorm(c.kv_lora_rank, 1e-6)
        key_value = c.qk_nope_head_dim + c.v_head_dim
        self.kv_b_proj = linear(c.kv_lora_rank, heads * key_value, 0.06)
        self.g_proj = linear(hidden, heads * c.v_head_dim)
        out_std = 0.02 / math.sqrt(2 * c.num_hidden_layers)
        self.o_proj = linear(heads * c.v_head_dim, hidden, out_std)

    def forward(self, x, recurrent=False):
        c = self.c
        batch, tokens, _ = x.shape
        heads, nope = c.num_attention_heads, c.qk_nope_head_dim
        q = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x)))
        q = q.view(batch, tokens, heads, -1).transpose(1, 2)
        latent, shared = self.kv_a_proj_with_mqa(x).split(
            [c.kv_lora_rank, c.qk_rope_head_dim], dim=-1
        )
        kv = self.kv_b_proj(self.kv_a_layernorm(latent))
        kv = kv.view(batch, tokens, heads, -1).transpose(1, 2)
        k = torch.cat([kv[..., :nope], shared.unsqueeze(1).expand(-1, heads, -1, -1)], -1)
        v = kv[..., nope:]
        scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        future = ~torch.ones(tokens, tokens, dtype=torch.bool).tril()
        weights = scores.masked_fill(future, float("-inf")).softmax(-1)
        o = (weights @ v).transpose(1, 2).reshape(batch, tokens, -1)
        return self.o_proj(o * torch.sigmoid(self.g_proj(x)))


class FFN(nn.Module):
    def __init__(self, c, inner):
        super().__init__()
        self.c = c
        self.gate_proj = linear(c.hidden_size, inner)
        self.up_proj = linear(c.hidden_size, inner)
        out_std = 0.02 / math.sqrt(2 * c.num_hidden_layers)
        self.down_proj = linear(inner, c.hidden_size, out_std)

    def forward(self, x):
        inner = situ(self.gate_proj(x), self.up_proj(x), self.c.situ_beta, self.c.situ_linear_beta)
        return self.down_proj(inner)


class MoE(nn.Module):
    """Routed experts in a latent, beside a shared one. `load` counts the last batch's choices."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        experts, inner, latent = c.num_experts, c.moe_intermediate_size, c.latent
        self.gate = linear(c.hidden_size, experts, 0.05)
        self.gate.register_buffer("e_score_correction_bias", torch.zeros(experts))
        self.routed_expert_down_proj = linear(c.hidden_size, latent, 0.05)
        self.routed_expert_norm = RMSNorm(latent, c.eps)
        self.routed_expert_up_proj = linear(latent, c.hidden_size, 0.02)
        self.w1 = nn.Parameter(torch.randn(experts, inner, latent) * 0.06)
        self.w3 = nn.Parameter(torch.randn(experts, inner, latent) * 0.06)
        self.w2 = nn.Parameter(torch.randn(experts, latent, inner) * 0.06)
        self.shared_experts = FFN(c, inner * c.num_shared_experts)
        self.load = None

    def forward(self, x, recurrent=False):
        c = self.c
        batch, tokens, _ = x.shape
        rows = x.reshape(-1, c.hidden_size)
        scores = torch.sigmoid(self.gate(rows))
        chosen = (scores + self.gate.e_score_correction_bias).topk(c.top_k, -1)[1]
        weights = scores.gather(1, chosen)
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20) * c.routed_scaling_factor

        # Rows sorted by expert, so that each expert is one product.
        h = self.routed_expert_down_proj(rows)
        flat = chosen.reshape(-1)
        order = flat.argsort()
        self.load = flat.bincount(minlength=c.num_experts)
        sorted_rows = h[order // c.top_k]
        w1, w3, w2 = self.w1.unbind(0), self.w3.unbind(0), self.w2.unbind(0)
        outs, start = [], 0
        for expert, count in enumerate(self.load.tolist()):
            if count:
                part = sorted_rows[start : start + count]
                gate, up = part @ w1[expert].t(), part @ w3[expert].t()
                inner = situ(gate, up, c.situ_beta, c.situ_linear_beta)
                outs.append(inner @ w2[expert].t())
                start += count
        y = torch.cat(outs) * weights.reshape(-1)[order].unsqueeze(-1)
        y = torch.zeros_like(h).index_add(0, order // c.top_k, y)
        routed = self.routed_expert_up_proj(self.routed_expert_norm(y))
        return (routed + self.shared_experts(rows)).view(batch, tokens, -1)


class Residual(nn.Module):
    """Attention over the residual history: one learnt query over normalised blocks."""

    def __init__(self, c):
        super().__init__()
        self.norm = RMSNorm(c.hidden_size, c.eps)
        self.proj = linear(c.hidden_size, 1, 0.0)

    def forward(self, blocks, partial):
        values = torch.stack(blocks + [partial], 2)
        return (self.proj(self.norm(values)).softmax(2) * values).sum(2)


class Layer(nn.Module):
    def __init__(self, c, index):
        super().__init__()
        self.c = c
        self.index = index
        self.dense = index < c.first_k_dense_replace
        self.self_attn = MLA(c) if index + 1 in c.full_attn_layers else KDA(c)
        self.mlp = FFN(c, c.intermediate_size) if self.dense else MoE(c)
        self.input_layernorm = RMSNorm(c.hidden_size, c.eps)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.eps)
        self.self_attention_res = Residual(c)
        self.mlp_res = Residual(c)

    def forward(self, x, blocks, recurrent):
        partial = x
        if blocks:
            x = self.self_attention_res(blocks, partial)
        starts_block = self.index % self.c.attn_res_block_size == 0
        if starts_block:
            blocks = blocks + [partial]
        attention = self.self_attn(self.input_layernorm(x), recurrent)
        partial = attention if starts_block else partial + attention
        x = self.mlp_res(blocks, partial)
        return partial + self.mlp(self.post_attention_layernorm(x)), blocks


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        nn.init.normal_(self.embed_tokens.weight, std=0.3)
        self.layers = nn.ModuleList(Layer(c, i) for i in range(c.num_hidden_layers))
        self.output_attn_res = Residual(c)
        self.norm = RMSNorm(c.hidden_size, c.eps)
        self.lm_head = linear(c.hidden_size, c.vocab_size)

    def forward(self, ids, recurrent=False, hidden=None):
        """Logits [B, T, vocab]; `hidden`, a list, gets what each layer hands to the next."""
        x = self.embed_tokens(ids)
        blocks = []
        for layer in self.layers:
            x, blocks = layer(x, blocks, recurrent)
            if hidden is not None:
                hidden.append(x)
        return self.lm_head(self.norm(self.output_attn_res(blocks, x)))

    def release_tensors(self):
        """name -> tensor, as the release stores them. Experts are copies."""
        out = {}
        for name, tensor in self.state_dict().items():
            tensor, name = tensor.detach(), self.release_name(name)
            stem, last = name.rsplit(".", 1)
            if last in ("w1", "w2", "w3"):
                for expert in range(tensor.shape[0]):
                    out[f"{stem}.experts.{expert}.{last}.weight"] = tensor[expert].contiguous()
            else:
                out[name] = tensor
        return out

    def release_name(self, name):
        if name.startswith("lm_head"):
            return "language_model." + name
        name = "language_model.model." + name
        for part in ("self_attention_res", "mlp_res", "output_attn_res"):
            name = name.replace(f"{part}.norm", f"{part}_norm")
            name = name.replace(f"{part}.proj", f"{part}_proj")
        if ".layers." in name:
            index = int(name.split(".layers.")[1].split(".")[0])
            if not self.layers[index].dense:
                name = name.replace(".mlp.", ".block_sparse_moe.")
        return name

    @torch.no_grad()
    def load_tensors(self, weights):
        """Takes weights under the release's names."""
        for name, tensor in self.release_tensors().items():
            tensor.copy_(weights[name])
        for index, layer in enumerate(self.layers):
            if layer.dense:
                continue
            stem = f"language_model.model.layers.{index}.block_sparse_moe.experts"
            for kind in ("w1", "w2", "w3"):
                parts = [
                    weights[f"{stem}.{expert}.{kind}.weight"].float()
                    for expert in range(self.c.num_experts)
                ]
                getattr(layer.mlp, kind).copy_(torch.stack(parts))


def save_release(model, folder, eos):
    """Writes config.json and model.safetensors: bf16, but f32 where the release has f32."""
    with open(folder + "/config.json", "w") as file:
        json.dump(model.c.release_config(eos), file, indent=1)
    keep = ("A_log", "dt_bias", "e_score_correction_bias")
    tensors = {
        name: (t.float() if name.endswith(keep) else t.bfloat16()).contiguous()
        for name, t in model.release_tensors().items()
    }
    save_file(tensors, folder + "/model.safetensors", metadata={"format": "pt"})


def load_release(folder):
    """The model of a release-layout folder, in f32."""
    with open(folder + "/config.json") as file:
        text = json.load(file)["text_config"]
    model = Model(Config.from_release(text))
    model.load_tensors(load_file(folder + "/model.safetensors"))
    return model.eval()
