# SPDX-License-Identifier: Apache-2.0
"""Container v0, read by numpy: an implementation of docs/format.md that shares nothing with core/.

`Container(folder).tensors()` gives every weight as f32 under the name it had in the release, so
that another engine can run on exactly the weights that ours runs on. Strict: whatever the page
says is checked, and a file that disagrees raises ContainerError.
"""

import json
import pathlib
import struct
import zlib

import numpy as np

GROUP = 128  # columns of a trunk row that share a scale
VECTOR = 8  # weights of one index tuple
BLOCK = 64  # rows of a block of indices
PAGE = 4096

EXPERT_HEADER = struct.Struct("<IHHBBHHHIIIIIIII")
EXPERT_MAGIC = 0x50584557
BOOK_HEADER = struct.Struct("<IHBBII")
BOOK_MAGIC = 0x4B424357
VQ3R, VQ2R, VQ4P = 4, 5, 8


class ContainerError(Exception):
    """The container is not what the page says."""


def check(condition, *what):
    if not condition:
        raise ContainerError(" ".join(map(str, what)))


class Container:
    """A container folder; files are read when asked for."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.manifest = json.loads((self.folder / "manifest.json").read_text())
        check(self.manifest["format_version"] == 0, "format_version")
        self.config = self.manifest["config"]
        self.prefix = self.manifest["tensor_prefix"]

    def tensors(self):
        """name -> f32 array, trunk and experts."""
        out = dict(self.trunk())
        for layer in sorted(map(int, self.manifest.get("layers", {}))):
            out.update(self.bank(layer))
        return out

    def formats(self):
        """The names of the trunk formats in use."""
        names = {0: "F32", 1: "F16", 2: "Q8G", 3: "Q4G", 7: "Q3G"}
        return sorted({names[entry["fmt"]] for entry in self.manifest["trunk"]})

    def trunk(self):
        data = np.fromfile(self.folder / "trunk.bin", np.uint8)
        names = [entry["name"] for entry in self.manifest["trunk"]]
        check(names == sorted(set(names)), "trunk names are not sorted and distinct")
        for entry in self.manifest["trunk"]:
            yield entry["name"], decode_trunk(entry, data)

    def bank(self, layer):
        """name -> f32 array of one layer's experts."""
        entry = self.manifest["layers"][str(layer)]
        data = (self.folder / entry["file"]).read_bytes()
        check(len(data) == entry["bytes"], entry["file"], len(data), "bytes")
        size, rest = divmod(len(data), entry["experts"])
        check(rest == 0 and size % PAGE == 0, entry["file"], "records of", size)
        books = self.codebooks()
        out = {}
        for expert in range(entry["experts"]):
            record = data[expert * size : (expert + 1) * size]
            name = f"{self.prefix}model.layers.{layer}.block_sparse_moe.experts.{expert}"
            for kind, weight in zip(("w1", "w3", "w2"), self.record(record, layer, expert, books)):
                out[f"{name}.{kind}.weight"] = weight
        return out

    def codebooks(self):
        """[books, entries, 8] f32."""
        entries = self.manifest["expert_quant"]["entries"]
        data = (self.folder / "codebooks.bin").read_bytes()
        size = BOOK_HEADER.size + entries * VECTOR * 2
        check(len(data) % size == 0, "codebooks.bin", len(data), "bytes, books of", size)
        books = []
        for index in range(len(data) // size):
            record = data[index * size : (index + 1) * size]
            header = BOOK_HEADER.unpack_from(record)
            check(
                header == (BOOK_MAGIC, index & 0xFFFF, VQ3R, VECTOR, entries, 0),
                "codebook", index, header,
            )
            books.append(np.frombuffer(record, "<f2", offset=BOOK_HEADER.size))
        return np.stack(books).astype(np.float32).reshape(-1, entries, VECTOR)

    def record(self, record, layer, expert, books):
        """The three matrices of an expert: gate, up [inner, outer], down [outer, inner]."""
        quant = self.manifest["expert_quant"]
        stages, packed = quant["stages"], quant.get("index_bits", 8) == 6
        check(quant["vec_dim"] == VECTOR and quant["index_block"] == BLOCK, "expert_quant", quant)
        where = f"layer {layer} expert {expert}:"
        (magic, got_layer, got_expert, fmt, flags, book, lowrank, reserved, blocks, *tail) = (
            EXPERT_HEADER.unpack_from(record)
        )
        gate_off, up_off, down_off, scale_off, crc, reserved1, reserved2 = tail
        check(magic == EXPERT_MAGIC, where, "magic", hex(magic))
        check((got_layer, got_expert) == (layer, expert), where, "is", got_layer, got_expert)
        check(fmt in ((VQ4P,) if packed else (VQ3R, VQ2R)), where, "format", fmt)
        check((flags, lowrank, reserved, reserved1, reserved2) == (0, 0, 0, 0, 0), where, "flags")
        check(blocks * PAGE == len(record), where, blocks, "pages")
        check(book + 3 * stages <= len(books), where, "codebook", book)

        inner = self.config["moe_intermediate_size"]
        outer = self.config.get("routed_expert_hidden_size") or self.config["hidden_size"]
        shapes = ((inner, outer), (inner, outer), (outer, inner))
        ends = [EXPERT_HEADER.size]
        for rows, columns in shapes:
            ends.append(ends[-1] + index_bytes(rows, columns, stages, packed))
        check([gate_off, up_off, down_off, scale_off] == ends, where, "offsets", tail[:4], ends)
        end = scale_off + 2 * (inner + inner + outer)
        check(zlib.crc32(record[EXPERT_HEADER.size : end]) == crc, where, "crc")
        check(not any(record[end:]), where, "padding is not zero")

        scales = np.frombuffer(record[scale_off:end], "<f2").astype(np.float32)
        check(np.isfinite(scales).all(), where, "scales")
        weights = []
        for kind, (rows, columns) in enumerate(shapes):
            data = np.frombuffer(record[ends[kind] : ends[kind + 1]], np.uint8)
            indices = unpack_indices(data, rows, columns, stages, packed)
            total = 0
            for stage in range(stages):
                total = total + books[book + kind * stages + stage][indices[..., stage]]
            weight = total.reshape(rows, columns) * scales[:rows, None]
            weights.append(np.ascontiguousarray(weight, np.float32))
            scales = scales[rows:]
        return weights


def index_bytes(rows, columns, stages, packed):
    blocks = -(-rows // BLOCK)
    return blocks * BLOCK * (columns // VECTOR) * (3 if packed else stages)


def unpack_indices(data, rows, columns, stages, packed):
    """[rows, columns / 8, stages]."""
    width = 3 if packed else stages
    data = data.reshape(-1, columns // VECTOR, BLOCK, width)  # [block, vector, row, bytes]
    if packed:
        word = data.astype(np.int64)
        word = word[..., 0] | word[..., 1] << 8 | word[..., 2] << 16
        data = np.stack([word >> (6 * stage) & 63 for stage in range(4)], -1)
    by_row = data.transpose(0, 2, 1, 3).reshape(-1, columns // VECTOR, data.shape[-1])
    check(not by_row[rows:].any(), "indices of rows that do not exist")
    return by_row[:rows]


def decode_trunk(entry, data):
    """One trunk tensor as f32, in its own shape."""
    shape, columns = entry["shape"], entry["shape"][-1]
    rows = int(np.prod(shape[:-1], dtype=np.int64))
    span = data[entry["off"] : entry["off"] + entry["bytes"]]
    check(len(span) == entry["bytes"], entry["name"], "lies outside trunk.bin")
    if entry["fmt"] in (0, 1):
        kind = "<f4" if entry["fmt"] == 0 else "<f2"
        return span.view(kind).astype(np.float32).reshape(shape)

    check(entry["group"] == GROUP, entry["name"], "group", entry["group"])
    groups = -(-columns // GROUP)
    payload_size = entry["scale_off"] - entry["off"]
    check(entry["bytes"] == payload_size + rows * groups * 2, entry["name"], "bytes")
    payload = span[:payload_size].reshape(rows, -1)
    scales = span[payload_size:].view("<f2").astype(np.float32).reshape(rows, groups)
    values = DECODERS[entry["fmt"]](payload, groups * GROUP).astype(np.float32)
    values = values.reshape(rows, groups, GROUP) * scales[..., None]
    return np.ascontiguousarray(values.reshape(rows, -1)[:, :columns]).reshape(shape)


def decode_q8(payload, count):
    check(payload.shape[1] == count, "Q8G row of", payload.shape[1])
    return payload.view(np.int8)


def decode_q4(payload, count):
    check(payload.shape[1] == count // 2, "Q4G row of", payload.shape[1])
    return np.stack([payload & 15, payload >> 4], -1).reshape(len(payload), -1).astype(np.int8) - 8


def decode_q3(payload, count):
    check(payload.shape[1] == (count * 3 + 7) // 8 + 1, "Q3G row of", payload.shape[1])
    bits = np.unpackbits(payload, axis=1, bitorder="little")[:, : 3 * count]
    bits = bits.reshape(len(payload), count, 3).astype(np.int8)
    return bits[..., 0] + 2 * bits[..., 1] + 4 * bits[..., 2] - 4


DECODERS = {2: decode_q8, 3: decode_q4, 7: decode_q3}
