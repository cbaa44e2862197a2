# SPDX-License-Identifier: Apache-2.0
"""Compares K3's chat markup with the release's encoder over random conversations.

    python compare_chat.py TOKENIZE_FILE [COUNT]

Prints `N strings, D differences`; exit code 1 if any differs.
"""
import json
import sys
import tempfile

import compare
import conversations
import records
import reference


def main(program, count=5_000):
    module = conversations.release_encoder()
    made = list(conversations.make(count, seed=3))
    with tempfile.TemporaryDirectory() as folder:
        tool = records.Tool(program, folder, reference.pair_ranks())
        texts = [json.dumps(c) for c in made]
        expected = [conversations.encode(module, tool.encoding, c) for c in made]
        return 1 if compare.report("chat", texts, expected, tool.run("chat", texts)) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:3])))
