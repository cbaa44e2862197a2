# SPDX-License-Identifier: Apache-2.0
"""The whole's part of run.py: one container from end to end, as tables and a chart.

Everything resident: `waste bench` after a prompt of 512 tokens with all threads, with one after a
shorter one, then context_bench with short prompts and along a text of 4,096 positions.
Streaming: eight sessions beside one alone. A run
that would end too late is left out; what is left out is said. Shares are of limits that
`waste bench` measured in the same run of this script.
"""

import json
import pathlib
import statistics

from bar_chart import Bar, BarChart
from bench_tools import (BUILD, WASTE, elapsed, figure, machine, median_text, progress, run,
                         run_json, size_text)

CONTEXT_BENCH = BUILD / "tests/bench/context_bench"
PARTS = 4  # of the tokens written at a position: their median and spread are told
SHORT = 32  # tokens of the prompt of one of several sessions


class Lengths:
    """What is read and written; the short ones only try the script out."""

    def __init__(self, quick):
        self.texts = (["8", "8", "16", "128,256"] if quick else
                      ["16", "16", "16", "64", "64", "2048,4096"])
        self.prompt, self.one_thread_prompt = (64, 32) if quick else (512, 256)
        self.tokens = 16 if quick else 32
        self.long_tokens = 8 if quick else 24
        self.session_tokens = 4 if quick else 8
        last = int(self.texts[-1].split(",")[-1])
        self.context = last + self.long_tokens


class Row:
    """One figure: tokens a second of repeats or parts, and the limit that they stand beside."""

    def __init__(self, name, speeds, limit, result, note=""):
        self.name, self.speeds, self.limit, self.note = name, speeds, limit, note
        self.threads, self.budget = result["threads"], result["budget_bytes"]
        self.middle = statistics.median(speeds)

    def share(self):
        return f"{self.middle / self.limit:.0%}" if self.limit > 0 else "-"

    def markdown(self):
        return (f"| {self.name} | {self.threads} | {size_text(self.budget)} | "
                f"{median_text(self.speeds)} | {self.share()} | {self.note or '-'} |")

    def bar(self):
        share = f", {self.share()} of its limit" if self.limit > 0 else ""
        return Bar(f"{self.name}, {threads_text(self.threads)}", self.middle,
                   f"{figure(self.middle)} tok/s{share}", self.limit, tuple(self.speeds))


def threads_text(count):
    return f"{count} thread{'s' if count > 1 else ''}"


def plan(container, *options):
    return json.loads(run(WASTE, "plan", container, "--json", *options))


def resident_budget(container, context):
    """Bytes that hold all experts and longer steps of prefill; None, and why, if there are not so
    many."""
    manifest = json.loads((pathlib.Path(container) / "manifest.json").read_text())
    experts = sum(layer["bytes"] for layer in manifest["layers"].values())
    sizes = plan(container, "--context", context)
    least = sizes["floor_bytes"] + experts
    most = sizes["usable_bytes"] // 16 * 15  # the rest is the system's
    if least > most:
        return None, (f"Everything resident takes {size_text(least)}, and {size_text(most)} can be "
                      f"had of the {size_text(sizes['usable_bytes'])} that are free here: those "
                      "rows are left out.")
    return min(most, least + experts // 4), ""


def bench(out, name, container, threads, *options):
    """One run of `waste bench`; its limits for a token of decode and of prefill are added."""
    progress(f"{name}: waste bench {' '.join(str(option) for option in options)}")
    limited = ["--threads", threads] if threads else []
    result = run_json(out / f"{name}.json", WASTE, "bench", container, "--json", "--svg",
                      out / f"{name}.svg", *limited, *options)
    token_bytes = result["memory_bytes_s"] / result["decode_tok_s"]
    result["memory_tok_s"] = result["memory_limit_bytes_s"] / token_bytes
    return result


def decode_row(result, name):
    decode = result["decode"]
    return Row(f"decode at {name}", decode["tok_s_all"], result["memory_tok_s"], result,
               missed(decode["experts_missed"]))


def missed(count):
    return f"{count} experts were read" if count else ""


def prompt_row(result, name):
    prefill = result["prefill"]
    return Row(f"prefill {name}", prefill["tok_s_all"], result["prefill_limit_tok_s"], result,
               missed(prefill["experts_missed"]))


def short_rows(out, container, lengths, budget):
    """A prompt and decode after it with all threads, decode with one, and how much faster all are.
    Prompts are long enough to have all experts read in the first, uncounted, repeat."""
    def run_of(name, threads, prompt, repeats):
        return bench(out, name, container, threads, "--prompt-tokens", prompt, "--tokens",
                     lengths.tokens, "--context", 2 * (prompt + lengths.tokens), "--budget",
                     budget, "--repeats", repeats)

    every = run_of("decode", 0, lengths.prompt, 3)
    one = run_of("decode-one-thread", 1, lengths.one_thread_prompt, 1)
    prompt = prompt_row(every, lengths.prompt)
    rows = [decode_row(every, lengths.prompt), decode_row(one, lengths.one_thread_prompt)]
    gain = rows[0].middle / rows[1].middle
    all_threads = threads_text(every["threads"])
    return (every, prompt, rows,
            f"Decode with {all_threads} is {gain:.2f} times as fast as with one.")


def prefill_rows(result, limit):
    """Repeats of the same piece are one row; pieces of one text are added up as well."""
    pieces = {}
    for one in result["prefill"]:
        pieces.setdefault((one["begin"], one["end"]), []).append(one)
    rows = []
    for (begin, end), repeats in pieces.items():
        name = f"prefill {end:,}" if begin == 0 else f"prefill {begin:,} to {end:,}"
        rows.append(Row(name, [(end - begin) / one["seconds"] for one in repeats], limit, result,
                        missed(sum(one["experts_missed"] for one in repeats))))
    last = result["prefill"][-2:]
    if len(last) == 2 and last[1]["begin"] > last[0]["end"]:
        read = sum(one["end"] - one["begin"] for one in last)
        rows.append(Row(f"prefill {last[1]['end']:,} in all",
                        [read / sum(one["seconds"] for one in last)], limit, result,
                        "both pieces"))
    return rows


def position_rows(result, limit):
    positions = {}
    for one in result["decode"]:
        positions.setdefault(one["begin"], []).append(one)
    rows = []
    for begin, repeats in positions.items():
        seconds = [second for one in repeats for second in one["seconds"]]
        size = len(seconds) // PARTS
        parts = [seconds[part * size:(part + 1) * size] for part in range(PARTS)]
        rows.append(Row(f"decode at {begin:,}", [size / sum(part) for part in parts], limit,
                        result, missed(sum(one["experts_missed"] for one in repeats)) or
                        f"{PARTS} parts of {size} tokens"))
    return rows


def long_rows(out, container, lengths, budget, every, seconds):
    """Along one text, with all threads; the limits are those of the run `every`."""
    progress(f"context: context_bench --text {' --text '.join(lengths.texts)}")
    texts = [option for text in lengths.texts for option in ("--text", text)]
    result = run_json(out / "context.json", CONTEXT_BENCH, container, *texts, "--budget", budget,
                      "--context", lengths.context, "--tokens", lengths.long_tokens, "--warm",
                      lengths.prompt, "--seconds", max(round(seconds), 1), quiet=False)
    left_out = "".join(f"Position {position:,} is left out: it would have taken too long. "
                       for position in result["left_out"])
    return (prefill_rows(result, every["prefill_limit_tok_s"]),
            position_rows(result, every["memory_tok_s"]), left_out)


def session_rows(out, container, lengths):
    """Eight sessions that stream, on memory for three tokens' experts, beside one alone."""
    sizes = plan(container, "--context", 256)
    working_set = (sizes["recommended_bytes"] - sizes["floor_bytes"]) // 2
    budget = sizes["floor_bytes"] + 3 * working_set + 7 * sizes["state_bytes"]
    result = bench(out, "sessions", container, 0, "--prompt-tokens", SHORT, "--tokens",
                   lengths.session_tokens, "--sessions", 8, "--budget", budget, "--context", 256,
                   "--repeats", 1)
    limit = result["decode_limit_tok_s"]
    return [
        Row("one session, streaming", result["decode"]["tok_s_all"], limit, result,
            missed(result["decode"]["experts_missed"])),
        together_row(result, "eight sessions, streaming")]


def together_row(result, name):
    together = result["together"]
    return Row(name, together["tok_s_all"], 0, result,
               f"{together['gain']:.2f} times one; " + missed(together["experts_missed"]))


def resident_sessions(out, container, lengths, budget):
    """Eight sessions with everything in memory, the other seven's states included."""
    prompt = lengths.prompt // 2
    sizes = plan(container, "--context", 2 * prompt)
    budget = min(budget + 7 * sizes["state_bytes"], sizes["usable_bytes"])
    result = bench(out, "resident-sessions", container, 0, "--prompt-tokens", prompt, "--tokens",
                   lengths.session_tokens, "--sessions", 8, "--budget", budget, "--context",
                   2 * prompt, "--repeats", 1)
    return [together_row(result, "eight sessions, resident")]


def streaming_rows(out, container, lengths):
    """Where not everything fits: the automatic budget."""
    result = bench(out, "streaming", container, 0, "--prompt-tokens", 8 * SHORT, "--tokens",
                   lengths.tokens // 2, "--repeats", 1)
    return [
        Row(f"prefill {8 * SHORT}, streaming", result["prefill"]["tok_s_all"],
            result["prefill_limit_tok_s"], result),
        Row(f"decode at {8 * SHORT}, streaming", result["decode"]["tok_s_all"],
            result["decode_limit_tok_s"], result, missed(result["decode"]["experts_missed"]))]


def measure(out, container, budget, quick, seconds):
    """The tables, as Markdown, done when the script has run for `seconds`; model.svg is written."""
    lengths = Lengths(quick)
    why = ""
    if budget:
        budget = plan(container, "--budget", budget)["budget_bytes"]  # from text such as 21G
    else:
        budget, why = resident_budget(container, lengths.context)
    notes = [why] if why else []
    if why:
        progress(why)
    rows = [] if budget else streaming_rows(out, container, lengths)
    rows += session_rows(out, container, lengths)
    if budget:
        every, prompt, short, gain = short_rows(out, container, lengths, budget)
        prefill, decode, left_out = long_rows(out, container, lengths, budget, every,
                                              seconds - elapsed())
        rows = [prompt, *prefill, *short, *decode, *rows,
                *resident_sessions(out, container, lengths, budget)]
        notes += [gain, left_out]
    isa = json.loads((out / "sessions.json").read_text())["isa"]
    picture = BarChart(f"{pathlib.Path(container).name}: tokens a second",
                       [f"{machine()}, ISA {isa}", "one dot a repeat or part"])
    for word in ("prefill", "decode", "session"):
        bars = [row.bar() for row in rows if word in row.name]
        if bars:
            picture.add(word, bars)
    (out / "model.svg").write_text(picture.text())
    head = ["| run | threads | budget | tok/s, median (spread) | of its limit | |",
            "|---|---:|---:|---:|---:|---|"]
    return "\n".join([f"{machine()}. ISA {isa}. {container}.", "", *head,
                      *(row.markdown() for row in rows), "", *notes]).rstrip() + "\n"
