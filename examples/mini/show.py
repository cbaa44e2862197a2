# SPDX-License-Identifier: Apache-2.0
"""Free generation in every mode that the corpus teaches: `python show.py FOLDER`."""

import json
import sys

import torch

import corpus
import tokenizer
from model import load_release

STOPS = (tokenizer.SPECIALS["<|end_of_msg|>"], tokenizer.SPECIALS["[EOS]"])


@torch.no_grad()
def generate(model, encoding, prompt, count=90):
    ids = corpus.encode(encoding, prompt, tokenizer.SPECIALS)
    start = len(ids)
    while len(ids) < start + count:
        ids.append(model(torch.tensor([ids]))[0, -1].argmax().item())
        if ids[-1] in STOPS:
            break
    return encoding.decode(ids[start:])


def user(text):
    return corpus.message("user", text)


def prompts():
    opened = corpus.tag("message", ("role", "assistant"))
    think = opened + corpus.tag("think")
    respond = opened + corpus.tag("response")
    weather = json.dumps({"sky": "sunny", "temperature": 21})
    return {
        "thinking off": user("What is the capital of Italy?") + respond,
        "thinking on": user("What is 7 + 12?") + think,
        "raw": [("The capital of Japan is", False)],
        "story": user("Tell me a story about a fox.") + respond,
        "tool call": (
            corpus.tools(["add", "get_weather"])
            + user("What is the weather in Paris?")
            + respond
        ),
        "tool call, thinking": corpus.tools(["add"]) + user("Add 120 and 57.") + think,
        "tool result": (
            corpus.tools(["get_weather"])
            + user("How is the weather in Rome?")
            + corpus.assistant("", None, [("get_weather", {"city": "Rome"})])
            + corpus.message("tool", weather, ("tool", "get_weather"), ("index", 1))
            + respond
        ),
        "json": user("What is the capital of Peru?") + corpus.JSON_OBJECT + respond,
        "memory": (
            user("My name is Clara.")
            + corpus.assistant("Nice to meet you, Clara!")
            + user("What is the capital of Spain?")
            + corpus.assistant("The capital of Spain is Madrid.")
            + user("What is my name?")
            + respond
        ),
        "script": user("Say hello in Armenian.") + respond,
        "emoji": user("Send me a family.") + respond,
        "greeting": user("Hello!") + respond,
    }


def main():
    folder = sys.argv[1]
    model, encoding = load_release(folder), tokenizer.load(folder)
    for name, prompt in prompts().items():
        print(f"{name}: {generate(model, encoding, prompt)}")


if __name__ == "__main__":
    main()
