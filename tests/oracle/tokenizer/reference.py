# SPDX-License-Identifier: Apache-2.0
"""tiktoken with the Kimi pattern, and rank files for it.

Two synthetic rank files are meant to show a piece cut at the wrong place, which tokens trained
after cutting seldom do: `broad_ranks` merges across the pattern's cuts, in many scripts, and
`pair_ranks` makes a token of any two bytes.
"""
import base64
import collections
import functools
import heapq
import random

import tiktoken

UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
TAIL = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN = "|".join([
    r"[\p{Han}]+",
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{TAIL}",
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{TAIL}",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
])
SPECIAL_TEXTS = ["[BOS]", "[EOS]", "<|end_of_msg|>", "<|open|>", "<|close|>", "<|sep|>",
                 "<|media_pad|>", "[PAD]", "</s>", " x ", "\u00e9\u00e9"]

# Characters of the planes that have scripts.
ASSIGNED = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x33480), *range(0xE0000, 0xE0200)]))


def single_bytes():
    return {bytes([b]): b for b in range(256)}


def encoding(ranks):
    """Special tokens leave gaps above the ranks, as released ones do."""
    specials = {text: len(ranks) + 3 * i for i, text in enumerate(SPECIAL_TEXTS)}
    return tiktoken.Encoding("reference", pat_str=PATTERN, mergeable_ranks=ranks,
                             special_tokens=specials)


@functools.lru_cache(maxsize=None)
def members(pattern):
    """The characters that match a regular expression, as a string: what does not gives no token."""
    probe = tiktoken.Encoding("probe", pat_str=pattern, mergeable_ranks=single_bytes(),
                              special_tokens={})
    return probe.decode(probe.encode_ordinary(ASSIGNED))


def load_ranks(path):
    with open(path, encoding="ascii") as file:
        return {base64.b64decode(token): int(rank) for token, rank in map(str.split, file)}


def save_ranks(ranks, path):
    with open(path, "w", encoding="ascii") as file:
        for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
            file.write(f"{base64.b64encode(token).decode()} {rank}\n")


def pair_ranks(seed=1):
    """All single bytes and all pairs of bytes, in shuffled order of rank."""
    tokens = [bytes([b]) for b in range(256)]
    tokens += [bytes([a, b]) for a in range(256) for b in range(256)]
    random.Random(seed).shuffle(tokens)
    return {token: rank for rank, token in enumerate(tokens)}


def broad_ranks(texts, count, seed=1):
    """Byte-pair merges learned from chunks of `texts` that are cut anywhere, even in characters."""
    r = random.Random(seed)
    words = []
    for text in texts:
        data = text.encode()
        while data:
            size = r.randint(4, 40)
            words.append([bytes([b]) for b in data[:size]])
            data = data[size:]
    return _merge(words, count)


def _merge(words, count):
    ranks = single_bytes()
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for at, word in enumerate(words):
        for pair in zip(word, word[1:]):
            pairs[pair] += 1
            where[pair].add(at)
    heap = [(-n, pair) for pair, n in pairs.items()]
    heapq.heapify(heap)
    while len(ranks) < count and heap:
        n, pair = heapq.heappop(heap)
        if pairs[pair] != -n:  # counted again since
            if pairs[pair] > 0:
                heapq.heappush(heap, (-pairs[pair], pair))
            continue
        ranks.setdefault(pair[0] + pair[1], len(ranks))
        changed = set()
        for at in where.pop(pair):
            before = words[at]
            after = words[at] = _join(before, pair)
            for p in zip(before, before[1:]):
                pairs[p] -= 1
            for p in zip(after, after[1:]):
                pairs[p] += 1
                where[p].add(at)
            changed.update(zip(after, after[1:]))
        for p in changed:
            heapq.heappush(heap, (-pairs[p], p))
    return ranks


def _join(word, pair):
    out, i = [], 0
    while i < len(word):
        if i + 1 < len(word) and (word[i], word[i + 1]) == pair:
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return out
