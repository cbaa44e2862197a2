# SPDX-License-Identifier: Apache-2.0
"""The files that tokenize_file reads and writes, and a call of it."""
import json
import pathlib
import struct
import subprocess

import reference


def pack_strings(texts):
    return b"".join(struct.pack("<I", len(data)) + data for data in (t.encode() for t in texts))


def unpack_ids(data):
    """Lists of ids from counts and ids of 32 bits."""
    words, lists, at = struct.unpack(f"<{len(data) // 4}I", data), [], 0
    while at < len(words):
        lists.append(list(words[at + 1:at + 1 + words[at]]))
        at += 1 + words[at]
    return lists


class Tool:
    """tokenize_file over one set of ranks, and `encoding`, tiktoken's over the same."""

    def __init__(self, program, folder, ranks):
        self.program, self.folder = program, pathlib.Path(folder)
        self.encoding = reference.encoding(ranks)
        reference.save_ranks(ranks, self.folder / "ranks")
        specials = [{"id": self.encoding.encode_single_token(text), "text": text}
                    for text in reference.SPECIAL_TEXTS]
        (self.folder / "specials").write_text(json.dumps(specials), encoding="ascii")

    def run(self, mode, texts):
        (self.folder / "strings").write_bytes(pack_strings(texts))
        files = [self.folder / "ranks", self.folder / "specials", mode, self.folder / "strings",
                 self.folder / "ids"]
        subprocess.run([self.program, *files], check=True)
        return unpack_ids((self.folder / "ids").read_bytes())
