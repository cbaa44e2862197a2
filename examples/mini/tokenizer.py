# SPDX-License-Identifier: Apache-2.0
"""A byte-pair tokenizer in the release's form.

A tiktoken rank file, the release's pre-tokenisation pattern, special tokens above the ranks.
`python tokenizer.py OUT` trains it on the corpus; writes tiktoken.model and tokenizer_config.json.
"""

import base64
import collections
import json
import os
import sys

UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN = "|".join([
    r"[\p{Han}]+",
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{ENDING}",
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{ENDING}",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
])

RANKS = 1984
# At the release's places above the ranks.
SPECIALS = {
    "[BOS]": 0, "[EOS]": 1, "<|end_of_msg|>": 2, "<|open|>": 3, "<|close|>": 4, "<|sep|>": 5,
    "<|media_begin|>": 18, "<|media_content|>": 19, "<|media_end|>": 20, "<|media_pad|>": 21,
    "[UNK]": 62, "[PAD]": 63,
}
SPECIALS = {text: RANKS + place for text, place in SPECIALS.items()}
VOCAB = RANKS + 64


def train(texts, count=RANKS):
    """Bytes and merges -> ranks, by frequency; among equals the smaller pair."""
    import regex

    pattern = regex.compile(PATTERN, regex.V1)
    words = collections.Counter(piece for text in texts for piece in pattern.findall(text))
    words = [([bytes([b]) for b in word.encode()], n) for word, n in words.items()]
    ranks = {bytes([b]): b for b in range(256)}
    while len(ranks) < count:
        pairs = collections.Counter()
        for word, n in words:
            for pair in zip(word, word[1:]):
                pairs[pair] += n
        if not pairs:
            raise SystemExit(f"the corpus gives only {len(ranks)} ranks")
        (a, b), _ = min(pairs.items(), key=lambda item: (-item[1], item[0]))
        ranks[a + b] = len(ranks)
        for word, _ in words:
            i = 0
            while i + 1 < len(word):
                if word[i] == a and word[i + 1] == b:
                    word[i : i + 2] = [a + b]
                i += 1
    return ranks


def load(folder):
    """tiktoken's Encoding of a folder that holds a rank file."""
    import tiktoken

    with open(folder + "/tiktoken.model") as file:
        lines = [line.split() for line in file]
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    return tiktoken.Encoding(
        "mini", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=SPECIALS
    )


def save(ranks, folder):
    with open(folder + "/tiktoken.model", "w") as file:
        for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
            file.write(base64.b64encode(token).decode() + f" {rank}\n")
    added = {str(i): {"content": text, "special": True} for text, i in SPECIALS.items()}
    config = {
        "added_tokens_decoder": added,
        "bos_token": "[BOS]",
        "eos_token": "[EOS]",
        "tokenizer_class": "TikTokenTokenizer",
    }
    with open(folder + "/tokenizer_config.json", "w") as file:
        json.dump(config, file, indent=1)


def main():
    import corpus

    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    ranks = train(corpus.texts())
    save(ranks, out)
    encoding = load(out)
    text = "The capital of Italy is Rome. 12 + 7 = 19. 👨‍👩‍👧‍👦 こんにちは"
    ids = encoding.encode(text)
    if encoding.decode(ids) != text:
        raise SystemExit("the tokenizer does not give back what it is given")
    print(len(ranks), [encoding.decode_single_token_bytes(i) for i in ids][:20])


if __name__ == "__main__":
    main()
