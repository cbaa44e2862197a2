# SPDX-License-Identifier: Apache-2.0
"""Writes the golden containers of tests/golden/container_v0 and what they decode to.

Written from the format's page (docs/format.md) and sharing no code with the C++ writer, whose bytes
must equal these, and whose reader must find the values in *.expected.bin: f32, the trunk tensors in
the manifest's order, then of every expert gate, up and down. Weights come from one linear
congruential generator, in the order of the files, so that the C++ test can draw the same.

    python3 make_container_v0.py            writes into the folder container_v0 beside this file
    python3 make_container_v0.py --check    compares with what is there; exits 1 on a difference
"""

import json
import pathlib
import struct
import sys
import zlib

import numpy as np

F32, F16, Q8G, Q4G, Q3G = 0, 1, 2, 3, 7
GROUP = 128
PAGE = 4096

# What json must escape or print as Python does; the C++ test parses the same text.
CONFIG = json.loads(
    r"""{"model_type":"tiny","num_hidden_layers":2,"first_k_dense_replace":1,"num_experts":2,
    "rms_norm_eps":1e-5,"rope_theta":1e16,"scale":2.0,"lower_bound":-5.0,"third":0.3333333333333333,
    "flag":true,"off":false,"nothing":null,"empty":[],"none":{},
    "_outer":{"name":"caf\u00e9 \u65e5\u672c \ud83d\ude00 \"quoted\"\n\u007f",
    "list":[1,[2,{"k":3}]]}}"""
)


class Generator:
    """x <- 1664525 x + 1013904223 mod 2^32; only the upper bits are used."""

    def __init__(self, seed):
        self.x = seed

    def bits(self, count):
        self.x = (self.x * 1664525 + 1013904223) % 2**32
        return self.x >> (32 - count)

    def weights(self, count):
        """f32 in [-1, 1), multiples of 2^-23: exact in f32."""
        numbers = [self.bits(24) - 2**23 for _ in range(count)]
        return np.array(numbers, np.float32) / np.float32(2**23)

    def halves(self, count):
        """Bit patterns of f16 scales from 2^-15 (subnormal) to about 0.03."""
        return np.array([0x0200 + self.bits(13) for _ in range(count)], np.uint16)


def half(values):
    return np.asarray(values, np.float32).astype(np.float16)


def pack_integers(fmt, q):
    """One row of integers [groups * 128] as bytes."""
    if fmt == Q8G:
        return q.astype(np.int8).tobytes()
    if fmt == Q4G:
        nibbles = (q + 8).astype(np.uint8)
        return (nibbles[0::2] | nibbles[1::2] << 4).tobytes()
    number = sum(int(value) + 4 << 3 * i for i, value in enumerate(q))
    return number.to_bytes((3 * len(q) + 7) // 8 + 1, "little")


def encode_tensor(fmt, weights):
    """[rows, columns] -> payload, scales, decoded."""
    rows, columns = weights.shape
    if fmt == F32:
        return weights.tobytes(), b"", weights
    if fmt == F16:
        return half(weights).tobytes(), b"", half(weights).astype(np.float32)
    low, high = {Q8G: (-127, 127), Q4G: (-8, 7), Q3G: (-4, 3)}[fmt]
    groups = -(-columns // GROUP)
    padded = np.zeros((rows, groups, GROUP), np.float32)
    padded.reshape(rows, -1)[:, :columns] = weights
    amax = np.maximum(np.abs(padded).max(axis=2, keepdims=True), np.float32(1e-8))
    scale = (amax / np.float32(high)).astype(np.float32)
    q = np.clip(np.rint(padded / scale), low, high).astype(np.int64)
    scales = half(scale[:, :, 0])
    decoded = q.astype(np.float32) * scales.astype(np.float32)[:, :, None]
    payload = b"".join(pack_integers(fmt, row) for row in q.reshape(rows, -1))
    return payload, scales.tobytes(), decoded.reshape(rows, -1)[:, :columns]


def write_trunk(tensors, generator):
    """Tensors by name -> (fmt, shape): trunk.bin, the manifest's index, decoded values."""
    data, index, decoded = b"", [], []
    for name in sorted(tensors):
        fmt, shape = tensors[name]
        weights = generator.weights(int(np.prod(shape))).reshape(-1, shape[-1])
        payload, scales, values = encode_tensor(fmt, weights)
        entry = {"name": name, "fmt": fmt, "off": len(data), "shape": shape}
        if scales:
            entry |= {"group": GROUP, "scale_off": len(data) + len(payload)}
        entry["bytes"] = len(payload) + len(scales)
        data += payload + scales
        index.append(entry)
        decoded.append(values)
    return data, index, decoded


def pack_vector(packed, stages):
    if not packed:
        return bytes(stages)
    s0, s1, s2, s3 = stages
    return bytes([(s0 | s1 << 6) % 256, (s1 >> 2 | s2 << 4) % 256, (s2 >> 4 | s3 << 2) % 256])


def draw_matrix(packed, stage_count, rows, columns, generator):
    """Random indices [rows, columns / 8, stages] and their bytes in blocks of 64 rows."""
    index_bits = 6 if packed else 8
    indices = np.zeros((rows, columns // 8, stage_count), np.int64)
    for r in range(rows):
        for v in range(columns // 8):
            for s in range(stage_count):
                indices[r, v, s] = generator.bits(index_bits)
    data = b""
    for block in range(-(-rows // 64)):
        for v in range(columns // 8):
            for r in range(block * 64, block * 64 + 64):
                row = [int(i) for i in indices[r, v]] if r < rows else [0] * stage_count
                data += pack_vector(packed, row)
    return indices, data


def decode_matrix(indices, scales, books):
    """scale * (C_0[i_0] + C_1[i_1] + ...), each step in f32."""
    total = books[0][indices[:, :, 0]]
    for s in range(1, indices.shape[2]):
        total = total + books[s][indices[:, :, s]]
    rows = indices.shape[0]
    return scales.view(np.float16).astype(np.float32)[:, None] * total.reshape(rows, -1)


def write_record(layer, expert, packed, stage_count, base, inner, outer, books, generator):
    """One expert's record, and the weights of its three matrices."""
    shapes = [(inner, outer), (inner, outer), (outer, inner)]
    body, offsets, matrices = b"", [], []
    for rows, columns in shapes:
        indices, data = draw_matrix(packed, stage_count, rows, columns, generator)
        offsets.append(48 + len(body))
        body += data
        matrices.append(indices)
    offsets.append(48 + len(body))
    scales = [generator.halves(rows) for rows, _ in shapes]
    body += b"".join(s.tobytes() for s in scales)
    pages = -(-(48 + len(body)) // PAGE)
    header = struct.pack("<IHHBBHHHIIIIIIII", 0x50584557, layer, expert, 8 if packed else 4, 0,
                         base, 0, 0, pages, *offsets, zlib.crc32(body), 0, 0)
    kinds = [books[base + k * stage_count:base + (k + 1) * stage_count] for k in range(3)]
    decoded = [decode_matrix(*parts) for parts in zip(matrices, scales, kinds)]
    return (header + body).ljust(pages * PAGE, b"\0"), decoded


def write_book(number, entries, generator):
    """The record of one book, and its values as decoded; the first are subnormal halves."""
    weights = generator.weights(entries * 8)
    weights[:4] *= np.float32(2**-16)
    header = struct.pack("<IHBBII", 0x4B424357, number, 4, 8, entries, 0)
    return header + half(weights).tobytes(), half(weights).astype(np.float32).reshape(entries, 8)


def make_container(seed, packed, stage_count, layers, experts, inner, outer, tensors, side_files):
    generator = Generator(seed)
    entries = 64 if packed else 256
    files = {}
    files["trunk.bin"], index, decoded = write_trunk(tensors, generator)
    files["codebooks.bin"] = b""
    books, banks = [], {}
    for layer in layers:
        base = len(books)
        for _ in range(3 * stage_count):
            data, values = write_book(len(books), entries, generator)
            files["codebooks.bin"] += data
            books.append(values)
        bank = b""
        for expert in range(experts):
            record, values = write_record(layer, expert, packed, stage_count, base, inner, outer,
                                          books, generator)
            bank += record
            decoded += values
        name = f"experts-L{layer}.bin"
        files[name] = bank
        banks[str(layer)] = {"file": name, "experts": experts, "bytes": len(bank),
                             "codebook_base": base}
    index_bits = 6 if packed else 8
    manifest = {
        "format_version": 0,
        "arch": "kimi-linear",
        "tensor_prefix": "",
        "config": CONFIG,
        "expert_quant": {"fmt": "VQ4P" if packed else "VQ3R", "stages": stage_count, "vec_dim": 8,
                         "entries": entries, "index_block": 64, "index_bits": index_bits,
                         "bits_per_weight": stage_count * index_bits / 8},
        "layers": banks,
        "trunk": index,
    }
    files["manifest.json"] = json.dumps(manifest, indent=1).encode()
    files |= side_files
    return files, b"".join(values.astype("<f4").tobytes() for values in decoded)


def make_all():
    specials = [{"id": 3, "text": "[BOS]"}, {"id": 4, "text": "<|caf\u00e9\n\U0001f600|>"}]
    side_files = {"tokenizer.model": b"IQ== 0\nIg== 1\nIw== 2\n",
                  "specials.json": json.dumps(specials, indent=1).encode(),
                  "chat.json": b'{"user": ["<u>", "</u>"], "open": "<a>"}\n'}
    tensors = {
        "model.a.weight": (Q4G, [3, 130]),
        "model.b.weight": (Q8G, [2, 128]),
        "model.c.weight": (Q3G, [3, 130]),
        "model.conv.weight": (F32, [4, 1, 3]),
        "model.half.weight": (F16, [2, 5]),
        "model.norm.weight": (F32, [24]),
        "model.patch.weight": (Q4G, [2, 1, 2, 40]),
        "Model.upper.weight": (F32, [2]),
    }
    return {
        "vq3r": make_container(1, False, 3, [1], 2, 72, 24, tensors, side_files),
        "vq4p": make_container(2, True, 4, [1], 2, 16, 136, {"n": (F32, [1])}, {}),
    }


def main():
    folder = pathlib.Path(__file__).parent / "container_v0"
    check = "--check" in sys.argv[1:]
    wrong = 0
    for name, (files, expected) in make_all().items():
        for path, data in [(folder / name / f, data) for f, data in files.items()] + [
                (folder / f"{name}.expected.bin", expected)]:
            if check:
                same = path.is_file() and path.read_bytes() == data
                wrong += not same
                print("same" if same else "DIFFERENT", path.relative_to(folder))
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
