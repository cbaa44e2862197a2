# SPDX-License-Identifier: Apache-2.0
"""Writes the expected ids that tests/golden/tokenizer_golden_test.cc checks without Python.

    python make_golden.py FOLDER

ranks and specials.json are the tokenizer; text, markup and chat hold records: a string (32-bit
size, bytes) and its ids (32-bit count, 16 bits each), little-endian, as tiktoken and the release's
chat encoder give them. The ranks are learned from this machine's texts too, so another machine
writes other files that are as good.
"""
import json
import pathlib
import struct
import sys

import compare
import conversations
import records
import reference
import strings

RANKS = 4_000
SEED = 77


def save(path, texts, lists):
    with open(path, "wb") as file:
        for text, ids in zip(texts, lists):
            file.write(records.pack_strings([text]) + struct.pack(f"<I{len(ids)}H", len(ids), *ids))


def main(folder):
    name, ranks = next(compare.rank_sets([]))
    assert name == "broad"
    ranks = {token: rank for token, rank in ranks.items() if rank < RANKS}
    encoding = reference.encoding(ranks)
    reference.save_ranks(ranks, folder / "ranks")
    specials = [{"id": encoding.encode_single_token(text), "text": text}
                for text in reference.SPECIAL_TEXTS]
    (folder / "specials.json").write_text(json.dumps(specials, indent=1) + "\n", encoding="ascii")

    makers = strings.Makers(SEED)
    texts = [makers.make() for _ in range(2_000)]
    save(folder / "text", texts, encoding.encode_ordinary_batch(texts))
    marked = list(strings.with_specials(texts[:100], SEED))
    save(folder / "markup", marked, [encoding.encode(t, allowed_special="all") for t in marked])
    module = conversations.release_encoder()
    made = list(conversations.make(60, SEED))
    save(folder / "chat", [json.dumps(c) for c in made],
         [conversations.encode(module, encoding, c) for c in made])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
