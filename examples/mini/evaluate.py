# SPDX-License-Identifier: Apache-2.0
"""Exact-match accuracy by kind of question: `python evaluate.py FOLDER [-n N] [--quantised]`.

Teacher-forced: if the likeliest token is the right one at every place of the answer, greedy
decoding writes exactly this answer. `--quantised` adds columns for experts in their 3-stage
vector-quantised form and the trunk in 4-bit groups, simulated. `eval`, beside this file, measures a
real container.
"""

import argparse
import random

import corpus
import facts
import tokenizer

KINDS = [kind for kind, _ in facts.KINDS if kind not in (facts.story, facts.greeting)]


def case(question, answer, thought=None):
    """Segments of a conversation, and of the part that is given."""
    given = corpus.message("user", question) + corpus.tag("message", ("role", "assistant"))
    if thought is None:
        given += corpus.tag("response")
    else:
        given += corpus.tag("think")
    return corpus.message("user", question) + corpus.assistant(answer, thought), given


def encoded(encoding, segments, given):
    """Ids of a case, and the index of the first one that has to be predicted."""
    ids = corpus.encode(encoding, segments, tokenizer.SPECIALS)
    return ids, len(corpus.encode(encoding, given, tokenizer.SPECIALS))


def in_a_row(encoding, specials, conversations, context):
    """The conversations one after the other, in texts of at most `context` tokens: ids, and the
    places of each answer."""
    texts = []
    for segments, given in conversations:
        ids = corpus.encode(encoding, segments, specials)
        start = len(corpus.encode(encoding, given, specials))
        if not texts or len(texts[-1][0]) + len(ids) > context:
            texts.append(([], []))
        text, answers = texts[-1]
        answers.append(range(len(text) + start, len(text) + len(ids)))
        text.extend(ids)
    return texts


def cases(kind, new, count, seed, think=False):
    r = random.Random(seed)
    for _ in range(count):
        question, answer, thought = kind(r, new)
        yield case(question, answer, thought if think else None)


def accuracy(right, count=60, seed=11, think=False):
    """(kind, new phrasing) -> share of cases that `right` says yes to; it takes all of a kind."""
    shares = {}
    for new in (False, True):
        for kind in KINDS:
            verdicts = right(list(cases(kind, new, count, seed, think)))
            shares[kind.__name__, new] = sum(verdicts) / count
    return shares


def torch_judge(model, encoding):
    """What `accuracy` asks, answered by a PyTorch model."""
    import torch

    @torch.no_grad()
    def right(conversations):
        batch = [encoded(encoding, *segments) for segments in conversations]
        longest = max(len(ids) for ids, _ in batch)
        x = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in batch])
        likeliest = model(x).argmax(-1)
        return [
            bool((likeliest[row, start - 1 : len(ids) - 1] == x[row, start : len(ids)]).all())
            for row, (ids, start) in enumerate(batch)
        ]

    return right


def table(columns):
    """Markdown: a row a kind, a column a model."""
    names = [kind.__name__ for kind in KINDS]
    lines = ["| kind | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for new, suffix in ((False, ""), (True, " (new phrasing)")):
        for name in names:
            shares = [f"{100 * column[name, new]:.0f}" for column in columns.values()]
            lines.append(f"| {name}{suffix} | " + " | ".join(shares) + " |")
    for new, suffix in ((False, ""), (True, " (new phrasing)")):
        means = [f"{mean(column, new):.1f}" for column in columns.values()]
        lines.append(f"| mean{suffix} | " + " | ".join(means) + " |")
    return "\n".join(lines)


def mean(shares, new):
    return 100 * sum(shares[kind.__name__, new] for kind in KINDS) / len(KINDS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="checkpoint in the release's layout")
    parser.add_argument("-n", type=int, default=60, help="questions a kind [60]")
    parser.add_argument("--quantised", action="store_true", help="simulate the container")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()

    import torch

    import model
    import quantise

    torch.set_num_threads(options.threads)
    encoding = tokenizer.load(options.folder)
    judge = torch_judge(model.load_release(options.folder), encoding)
    columns = {"f32": accuracy(judge, options.n)}
    for name, beam in (("greedy", 1), ("beam 16", 16)) if options.quantised else ():
        quantised = model.load_release(options.folder)
        error = quantise.quantise(quantised, beam)
        judge = torch_judge(quantised, encoding)
        columns[f"{name} ({100 * error:.1f} %)"] = accuracy(judge, options.n)
    print(table(columns))


if __name__ == "__main__":
    main()
