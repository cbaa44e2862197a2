# SPDX-License-Identifier: Apache-2.0
"""Compares the tokenizer with tiktoken over more than 100,000 strings.

    python compare.py TOKENIZE_FILE [--ranks RANK_FILE]... [--text FILE]...

TOKENIZE_FILE is the program that tests/oracle/tokenize_file.cc builds. Two synthetic rank files are
always used (reference.py says which); --ranks adds real ones, --text more text to compare on.
Prints `N strings, D differences` for each; exit code 1 if any differs.
"""
import argparse
import pathlib
import sys
import tempfile

import records
import reference
import strings

SEED = 20250101
MADE = 60_000
REAL = 12_000
BROAD_RANKS = 6_000


def all_strings(text_files):
    makers = strings.Makers(SEED)
    made = [makers.make() for _ in range(MADE)]
    texts = list(strings.short_strings()) + made + strings.real_texts(REAL)
    for path in text_files:
        text = pathlib.Path(path).read_text(encoding="utf-8")
        texts += [text[i:i + 500] for i in range(0, len(text), 500)]
    return texts


def rank_sets(rank_files):
    makers = strings.Makers(SEED + 1)
    sample = [makers.make() for _ in range(10_000)] + strings.real_texts(200)
    yield "broad", reference.broad_ranks(sample, BROAD_RANKS)
    yield "pairs", reference.pair_ranks()
    for path in rank_files:
        yield path, reference.load_ranks(path)


def report(name, texts, expected, got):
    differing = [i for i in range(len(texts)) if expected[i] != got[i]]
    print(f"{name}: {len(texts)} strings, {len(differing)} differences", flush=True)
    for i in differing[:5]:
        print(f"  {texts[i]!r}\n    expected {expected[i]}\n    got      {got[i]}")
    return len(differing)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("tool")
    parser.add_argument("--ranks", action="append", default=[])
    parser.add_argument("--text", action="append", default=[])
    options = parser.parse_args()
    texts = all_strings(options.text)
    marked = list(strings.with_specials(texts[::3], SEED))
    differences = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, ranks in rank_sets(options.ranks):
            tool = records.Tool(options.tool, folder, ranks)
            encode = tool.encoding.encode
            differences += report(f"{name}, text", texts,
                                  tool.encoding.encode_ordinary_batch(texts),
                                  tool.run("text", texts))
            differences += report(f"{name}, markup", marked,
                                  [encode(t, allowed_special="all") for t in marked],
                                  tool.run("markup", marked))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
