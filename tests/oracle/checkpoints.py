# SPDX-License-Identifier: Apache-2.0
"""Small random checkpoints of both families in the release's layout, every switch on somewhere.

Sizes are awkward on purpose: rows no multiple of 64, columns no multiple of 128, more than one
group a row. `CASES` says what each one is there for; `write(case, folder)` makes config.json,
sharded safetensors, a rank file and tokenizer_config.json, the same bytes for the same case.
"""

import base64
import dataclasses
import json
import pathlib

import torch
from safetensors.torch import save_file

VOCAB = 268  # 256 bytes, 4 merges, 8 places for special tokens
RANKS = 260
SPECIALS = ["[BOS]", "[EOS]", "<|end_of_msg|>", "<|open|>", "<|close|>", "<|sep|>"]
KIMI_LINEAR_SPECIALS = ["[BOS]", "[EOS]", "<|im_end|>", "<|im_user|>", "<|im_assistant|>",
                        "<|im_system|>", "<|im_middle|>"]
MERGES = ["th", "the", " t", " the"]


@dataclasses.dataclass(frozen=True)
class Case:
    """A checkpoint, and how it is converted. The defaults are Kimi-Linear's."""

    name: str
    purpose: str
    seed: int
    family: str = "kimi_linear"
    hidden: int = 72
    layers: int = 4
    mla_layers: tuple = (3,)  # 1-based, as in the config
    dense_layers: int = 1
    dense_inner: int = 104
    mla_heads: int = 3
    q_lora: int | None = None
    kv_lora: int = 40
    nope: int = 16
    rope: int = 8
    value: int = 24
    output_gate: bool = False
    kda_heads: int = 3
    kda_dim: int = 24
    conv: int = 4
    lower_bound: float | None = None
    full_rank_gate: bool = False
    experts: int = 6
    top_k: int = 3
    inner: int = 40
    latent: int | None = None
    latent_norm: bool = False
    shared: int = 1
    scale: float = 2.446
    renormalise: bool = True
    blocks: int | None = None  # attn_res_block_size
    linear_beta: float | None = 25.0
    eps: float = 1e-5
    dtype: torch.dtype = torch.bfloat16
    shards: int = 1
    golden: bool = False
    # conversion
    stages: int = 3
    index_bits: int = 8
    trunk_bits: int = 4
    quantise_from: int = 1024

    @property
    def prefix(self):
        return "language_model." if self.family == "kimi_k3" else ""

    def is_mla(self, layer):
        return layer + 1 in self.mla_layers

    def is_moe(self, layer):
        return layer >= self.dense_layers


def k3(name, purpose, seed, **fields):
    """Kimi K3's own switches, where a case does not say otherwise."""
    defaults = dict(
        family="kimi_k3", q_lora=40, output_gate=True, lower_bound=-5.0, full_rank_gate=True,
        latent=56, latent_norm=True, shared=2, scale=1.3, blocks=3,
    )
    return Case(name, purpose, seed, **(defaults | fields))


# For golden files: a few heads and channels.
SMALL = dict(
    hidden=40, dense_inner=40, mla_heads=2, kv_lora=24, nope=8, value=16, kda_heads=2, kda_dim=16,
    inner=24, experts=5, golden=True,
)

CASES = [
    Case("linear", "Kimi-Linear's own switches; two groups a row", seed=1, hidden=136, layers=5,
         mla_layers=(3, 5), experts=12, inner=72, dense_inner=200, shards=3),
    Case("linear-q-lora", "low-rank queries, top 4, no dense layer, 3-bit trunk, six stages, "
         "convolution of 3", seed=2, layers=3, mla_layers=(2,), dense_layers=0, q_lora=32, top_k=4,
         kda_dim=40, conv=3, renormalise=False, stages=6, trunk_bits=3, eps=1e-6,
         dtype=torch.float16),
    Case("linear-vq4p", "packed 6-bit indices, F32 trunk", seed=3, mla_layers=(4,), inner=72,
         dense_inner=72, stages=4, index_bits=6, quantise_from=1 << 40, dtype=torch.float32),
    Case("linear-mla-first", "MLA first and last, two dense layers, top 1, two shared experts, "
         "weights not renormalised, 8-bit trunk", seed=4, layers=3, mla_layers=(1, 3),
         dense_layers=2, top_k=1, shared=2, scale=1.0, renormalise=False, stages=2, trunk_bits=8,
         dtype=torch.float32, **SMALL),
    Case("linear-small", "Kimi-Linear's own switches, packed 6-bit indices", seed=5, layers=4,
         mla_layers=(3,), dense_layers=3, index_bits=6, stages=4, **SMALL),
    k3("k3", "Kimi K3's own switches; two groups a row", seed=6, hidden=136, layers=7,
       mla_layers=(3, 7), experts=12, inner=72, dense_inner=200, shards=2),
    k3("k3-blocks-of-2", "blocks of 2, low-rank gate, top 4, F32 trunk, six stages", seed=7,
       layers=6, mla_layers=(1, 4), blocks=2, full_rank_gate=False, top_k=4, stages=6,
       quantise_from=1 << 40, dtype=torch.float16),
    k3("k3-mla-first", "MLA first and last, one shared expert, no low-rank query, no norm in the "
       "latent, no lower bound, low-rank gate, top 1, blocks of 2", seed=8,
       layers=4, mla_layers=(1, 4), dense_layers=3, q_lora=None, latent=32, latent_norm=False,
       lower_bound=None, full_rank_gate=False, shared=1, top_k=1, blocks=2, renormalise=False,
       scale=1.0, stages=2, **SMALL),
    k3("k3-no-latent", "experts on the hidden state, no output gate, no linear beta, top 4, every "
       "layer a block, 3-bit trunk, four stages", seed=9, layers=3, mla_layers=(3,), latent=None,
       latent_norm=False, output_gate=False, linear_beta=None, top_k=4, blocks=1, q_lora=24,
       stages=4, trunk_bits=3, dense_layers=2, dtype=torch.float32, **SMALL),
    k3("k3-plain", "no attention residuals, packed 6-bit indices, one head of KDA", seed=10,
       layers=3, mla_layers=(2,), blocks=None, dense_layers=2, q_lora=24, latent=32, stages=4,
       index_bits=6, **(SMALL | dict(kda_heads=1, kda_dim=40))),
    k3("k3-small", "Kimi K3's own switches", seed=11, layers=4, mla_layers=(2, 4), dense_layers=3,
       q_lora=24, latent=32, **SMALL),
]


def config(case):
    """config.json in the release's own keys."""
    every = range(1, case.layers + 1)
    text = dict(
        model_type="kimi_linear",
        vocab_size=VOCAB,
        hidden_size=case.hidden,
        num_hidden_layers=case.layers,
        num_attention_heads=case.mla_heads,
        num_key_value_heads=case.mla_heads,
        intermediate_size=case.dense_inner,
        first_k_dense_replace=case.dense_layers,
        moe_layer_freq=1,
        kv_lora_rank=case.kv_lora,
        q_lora_rank=case.q_lora,
        qk_nope_head_dim=case.nope,
        qk_rope_head_dim=case.rope,
        v_head_dim=case.value,
        mla_use_nope=True,
        num_experts=case.experts,
        num_experts_per_token=case.top_k,
        moe_intermediate_size=case.inner,
        num_shared_experts=case.shared,
        moe_renormalize=case.renormalise,
        moe_router_activation_func="sigmoid",
        num_expert_group=1,
        topk_group=1,
        use_grouped_topk=True,
        routed_scaling_factor=case.scale,
        rms_norm_eps=case.eps,
        bos_token_id=RANKS,
        eos_token_id=RANKS + 2,
        pad_token_id=VOCAB - 1,
        model_max_length=4096,
        tie_word_embeddings=False,
        num_nextn_predict_layers=0,
        linear_attn_config=dict(
            num_heads=case.kda_heads,
            head_dim=case.kda_dim,
            short_conv_kernel_size=case.conv,
            kda_layers=[i for i in every if i not in case.mla_layers],
            full_attn_layers=list(case.mla_layers),
        ),
    )
    if case.family == "kimi_linear":
        return dict(architectures=["KimiLinearForCausalLM"], hidden_act="silu") | text

    text |= dict(
        hidden_act="situ",
        activation_situ_beta=4.0,
        activation_situ_linear_beta=case.linear_beta,
        mla_use_output_gate=case.output_gate,
        routed_expert_hidden_size=case.latent,
        latent_moe_use_norm=case.latent_norm,
        attn_res_block_size=case.blocks,
    )
    text["linear_attn_config"] |= dict(
        gate_lower_bound=case.lower_bound, use_full_rank_gate=case.full_rank_gate
    )
    return dict(
        architectures=["KimiK3ForConditionalGeneration"], model_type="kimi_k3", text_config=text
    )


class Weights:
    """Draws tensors in a fixed order from one seed."""

    def __init__(self, case):
        self.case = case
        self.generator = torch.Generator().manual_seed(case.seed)
        self.tensors = {}

    def normal(self, name, *shape, mean=0.0, std=0.08, keep=False):
        value = torch.randn(shape, generator=self.generator) * std + mean
        value = value if keep else value.to(self.case.dtype)
        self.tensors[self.case.prefix + name] = value

    def matrix(self, name, rows, columns):
        """Outputs of about the size of the inputs, whatever the number of columns."""
        self.normal(name + ".weight", rows, columns, std=0.8 / columns**0.5)

    def norm(self, name, size):
        self.normal(name + ".weight", size, mean=1.0, std=0.1)

    def ffn(self, name, inner):
        self.matrix(name + ".gate_proj", inner, self.case.hidden)
        self.matrix(name + ".up_proj", inner, self.case.hidden)
        self.matrix(name + ".down_proj", self.case.hidden, inner)


def tensors(case):
    """name -> tensor, as the release stores them."""
    w = Weights(case)
    w.normal("model.embed_tokens.weight", VOCAB, case.hidden, std=1.0)
    for layer in range(case.layers):
        name = f"model.layers.{layer}."
        (mla if case.is_mla(layer) else kda)(w, case, name + "self_attn.")
        if case.is_moe(layer):
            moe(w, case, name + "block_sparse_moe.")
        else:
            w.ffn(name + "mlp", case.dense_inner)
        w.norm(name + "input_layernorm", case.hidden)
        w.norm(name + "post_attention_layernorm", case.hidden)
        if case.blocks:
            residual(w, case, name + "self_attention_res")
            residual(w, case, name + "mlp_res")
    if case.blocks:
        residual(w, case, "model.output_attn_res")
    w.norm("model.norm", case.hidden)
    w.matrix("lm_head", VOCAB, case.hidden)
    return w.tensors


def kda(w, case, name):
    width = case.kda_heads * case.kda_dim
    for part in "qkv":
        w.matrix(f"{name}{part}_proj", width, case.hidden)
        w.normal(f"{name}{part}_conv1d.weight", width, 1, case.conv, std=0.4)
    w.matrix(name + "f_a_proj", case.kda_dim, case.hidden)
    w.matrix(name + "f_b_proj", width, case.kda_dim)
    w.matrix(name + "b_proj", case.kda_heads, case.hidden)
    if case.full_rank_gate:
        w.matrix(name + "g_proj", width, case.hidden)
    else:
        w.matrix(name + "g_a_proj", case.kda_dim, case.hidden)
        w.matrix(name + "g_b_proj", width, case.kda_dim)
    # Kimi K3 pads A_log to a head's size, Kimi-Linear has it as four dimensions.
    a_log = (max(case.kda_dim, case.kda_heads),)
    if case.family == "kimi_linear":
        a_log = (1, 1, case.kda_heads, 1)
    w.normal(name + "A_log", *a_log, std=0.5, keep=True)
    w.normal(name + "dt_bias", width, mean=-1.0, std=1.0, keep=True)
    w.norm(name + "o_norm", case.kda_dim)
    w.matrix(name + "o_proj", case.hidden, width)


def mla(w, case, name):
    query = case.mla_heads * (case.nope + case.rope)
    if case.q_lora:
        w.matrix(name + "q_a_proj", case.q_lora, case.hidden)
        w.norm(name + "q_a_layernorm", case.q_lora)
        w.matrix(name + "q_b_proj", query, case.q_lora)
    else:
        w.matrix(name + "q_proj", query, case.hidden)
    w.matrix(name + "kv_a_proj_with_mqa", case.kv_lora + case.rope, case.hidden)
    w.norm(name + "kv_a_layernorm", case.kv_lora)
    w.matrix(name + "kv_b_proj", case.mla_heads * (case.nope + case.value), case.kv_lora)
    if case.output_gate:
        w.matrix(name + "g_proj", case.mla_heads * case.value, case.hidden)
    w.matrix(name + "o_proj", case.hidden, case.mla_heads * case.value)


def moe(w, case, name):
    outer = case.latent or case.hidden
    w.matrix(name + "gate", case.experts, case.hidden)
    w.normal(name + "gate.e_score_correction_bias", case.experts, std=0.1, keep=True)
    if case.latent:
        w.matrix(name + "routed_expert_down_proj", case.latent, case.hidden)
        w.matrix(name + "routed_expert_up_proj", case.hidden, case.latent)
        if case.latent_norm:
            w.norm(name + "routed_expert_norm", case.latent)
    for expert in range(case.experts):
        w.matrix(f"{name}experts.{expert}.w1", case.inner, outer)
        w.matrix(f"{name}experts.{expert}.w3", case.inner, outer)
        w.matrix(f"{name}experts.{expert}.w2", outer, case.inner)
    if case.shared:
        w.ffn(name + "shared_experts", case.inner * case.shared)


def residual(w, case, name):
    w.norm(name + "_norm", case.hidden)
    w.matrix(name + "_proj", 1, case.hidden)


def rank_file():
    ranks = [bytes([byte]) for byte in range(256)] + [merge.encode() for merge in MERGES]
    lines = [f"{base64.b64encode(b).decode()} {rank}\n" for rank, b in enumerate(ranks)]
    return "".join(lines)


def tokenizer_config(case):
    names = SPECIALS if case.family == "kimi_k3" else KIMI_LINEAR_SPECIALS
    added = {str(RANKS + i): {"content": text, "special": True} for i, text in enumerate(names)}
    return dict(
        added_tokens_decoder=added, bos_token="[BOS]", eos_token="[EOS]",
        tokenizer_class="TikTokenTokenizer",
    )


def write(case, folder):
    """Writes the checkpoint into `folder`, which is made."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(case), indent=1))
    (folder / "tiktoken.model").write_text(rank_file())
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config(case), indent=1))
    save(tensors(case), folder, case.shards)


def save(weights, folder, shards=1):
    """safetensors in one file, or in several with an index."""
    if shards == 1:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names, index = sorted(weights), {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = {name: weights[name] for name in names[shard::shards]}
        index |= dict.fromkeys(part, file)
        save_file(part, folder / file, metadata={"format": "pt"})
    text = json.dumps(dict(metadata={}, weight_map=index), indent=1)
    (folder / "model.safetensors.index.json").write_text(text)


def token_ids(case, count, attempt=0):
    """A text to run: any token, ordinary or special."""
    generator = torch.Generator().manual_seed(1000 * (attempt + 1) + case.seed)
    return torch.randint(0, VOCAB, (count,), generator=generator)
