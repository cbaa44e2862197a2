# SPDX-License-Identifier: Apache-2.0
"""train.pt to a release-layout folder: `python export.py TRAIN_FOLDER OUT`."""

import os
import shutil
import sys

import torch

import tokenizer
from model import Config, Model, save_release


def main():
    source, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    saved = torch.load(source + "/train.pt")
    model = Model(Config(**saved["cfg"]))
    model.load_state_dict(saved["model"])
    save_release(model, out, tokenizer.SPECIALS["<|end_of_msg|>"])
    for name in ("tiktoken.model", "tokenizer_config.json"):
        shutil.copy(f"{source}/{name}", out)


if __name__ == "__main__":
    main()
