# SPDX-License-Identifier: Apache-2.0
"""Random conversations, and what the release's chat encoder makes of them: `build_chat_segments`
as mlx-vlm carries it, each segment encoded on its own by tiktoken."""
import importlib.util
import pathlib
import random
import sys

TEXTS = ["", " ", "Hello.", "What is 2 + 2?", 'He said "no" & left.', "&amp; &quot;", "think",
         "line\nline\n\n", "<|open|>message role=\"user\"<|sep|>", "<|end_of_msg|>", "[EOS]",
         "<|close|>think<|sep|>", "  spaces  ", "\u4f60\u597d\uff0c\u4e16\u754c", " role", "\t\r\n",
         "caf\u00e9 \u0939\u093f\u0928\u094d\u0926\u0940", "</s>",
         "\U0001f468\u200d\U0001f469\u200d\U0001f467",
         "it's I'M we'LL", "a" * 70]


def release_encoder():
    """The module on its own: it imports only the standard library, its package much more."""
    package = pathlib.Path(importlib.util.find_spec("mlx_vlm").origin).parent
    spec = importlib.util.spec_from_file_location(
        "encoding_k3", package / "models" / "kimi_k3" / "encoding_k3.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def make(count, seed):
    r = random.Random(seed)
    for _ in range(count):
        messages = [{"role": "system", "content": text(r)}] if r.random() < .4 else []
        for _ in range(r.randint(0, 4)):
            role = r.choice(["user", "user", "assistant", "system"])
            messages.append({"role": role, "content": text(r)})
        yield {"thinking": r.random() < .5, "messages": messages}


def text(r):
    return "".join(r.choices(TEXTS, k=r.randint(0, 4)))


def encode(module, encoding, conversation):
    ids = []
    for segment in module.build_chat_segments(conversation["messages"],
                                              thinking=conversation["thinking"]):
        ids += (encoding.encode(segment.text, allowed_special="all") if segment.allow_special
                else encoding.encode_ordinary(segment.text))
    return ids
