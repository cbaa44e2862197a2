# SPDX-License-Identifier: Apache-2.0
"""Conversations in Kimi K3's chat markup, drawn from a random generator.

A document is a list of segments (text, is_markup). Each segment is encoded on its own, as the
release does; markup segments are one special token each.
"""

import json
import random

import facts


def tag(name, *attributes):
    segments = [("<|open|>", True), (name, False)]
    for key, value in attributes:
        escaped = str(value).replace("&", "&amp;").replace('"', "&quot;")
        segments += [(" " + key, False), ('="', False), (escaped, False), ('"', False)]
    return segments + [("<|sep|>", True)]


def close(name):
    return [("<|close|>", True), (name, False), ("<|sep|>", True)]


def end():
    return close("message") + [("<|end_of_msg|>", True)]


def message(role, text, *attributes):
    return tag("message", ("role", role), *attributes) + [(text, False)] + end()


def assistant(text, thought=None, calls=()):
    """An answer; without a thought (None) there is no think element."""
    segments = tag("message", ("role", "assistant"))
    if thought is not None:
        segments += tag("think") + ([(thought, False)] if thought else []) + close("think")
    segments += tag("response") + ([(text, False)] if text else []) + close("response")
    if calls:
        segments += tag("tools")
        for index, (name, arguments) in enumerate(calls, 1):
            segments += call(index, name, arguments)
        segments += close("tools")
    return segments + end()


def call(index, name, arguments):
    segments = tag("call", ("tool", name), ("index", index))
    for key, value in arguments.items():
        is_text = isinstance(value, str)
        segments += tag("argument", ("key", key), ("type", "string" if is_text else "number"))
        segments += [(value if is_text else json.dumps(value), False)] + close("argument")
    return segments + close("call")


def sort(value):
    """The same JSON with the keys of every object in order."""
    if isinstance(value, dict):
        return {key: sort(value[key]) for key in sorted(value)}
    return [sort(item) for item in value] if isinstance(value, list) else value


def tools(names):
    """The message that declares tools."""
    declared = sort([facts.TOOLS[name] for name in names])
    text = json.dumps(declared, separators=(",", ":"), ensure_ascii=False)
    return message(
        "system",
        "# Tools\nHere are the available tools, described in JSONSchema.\n\n"
        f"```json\n{text}\n```",
        ("type", "tool-declare"),
    )


JSON_OBJECT = message(
    "system",
    "The system is invoked with `response_format=json_object`.\n"
    "Your response must be raw JSON data without markdown code blocks (```json) or any additional "
    "formatting.",
    ("type", "response-format"),
)


def turn(r, think, new=False):
    question, answer, thought = facts.sample(r, new)
    return message("user", question) + assistant(answer, thought if think else None)


def tool_document(r, think):
    names = r.choice([["get_weather"], ["add"], ["add", "get_weather"]])
    name = r.choice(names)
    declared = tools(names)
    return declared + (weather if name == "get_weather" else addition)(r, think)


def weather(r, think):
    city = r.choice(facts.CAPITALS)[1]
    degrees = r.randint(-5, 35)
    sky = r.choice(["sunny", "cloudy", "rainy", "windy"])
    question = r.choice([
        f"What is the weather in {city}?",
        f"How is the weather in {city}?",
        f"Tell me the weather in {city}.",
    ])
    thoughts = (f"I need the weather of {city}.", f"{city}: {sky}, {degrees}.")
    if not think:
        thoughts = (None, None)
    result = json.dumps({"sky": sky, "temperature": degrees})
    return (
        message("user", question)
        + assistant("", thoughts[0], [("get_weather", {"city": city})])
        + message("tool", result, ("tool", "get_weather"), ("index", 1))
        + assistant(f"It is {sky} in {city}, {degrees} degrees.", thoughts[1])
    )


def addition(r, think):
    a, b = r.randint(21, 400), r.randint(21, 400)
    question = r.choice([f"What is {a} + {b}?", f"Add {a} and {b}."])
    thoughts = (f"I add {a} and {b}.", f"The sum is {a + b}.") if think else (None, None)
    return (
        message("user", question)
        + assistant("", thoughts[0], [("add", {"a": a, "b": b})])
        + message("tool", str(a + b), ("tool", "add"), ("index", 1))
        + assistant(f"{a} + {b} = {a + b}.", thoughts[1])
    )


def json_document(r, think):
    kind = r.random()
    if kind < 0.5:
        country, city = r.choice(facts.CAPITALS)
        question = f"What is the capital of {facts.the(country)}?"
        answer = {"country": country, "capital": city}
    elif kind < 0.8:
        name, symbol, number = r.choice(facts.ELEMENTS)
        question = f"What is the chemical symbol of {name}?"
        answer = {"element": name, "symbol": symbol, "number": number}
    else:
        a, b = r.randint(0, 20), r.randint(0, 20)
        question = f"What is {a} + {b}?"
        answer = {"a": a, "b": b, "sum": a + b}
    thought = "The answer is JSON." if think else None
    return message("user", question) + JSON_OBJECT + assistant(json.dumps(answer), thought)


def recall_document(r, think):
    """Asks for what was said earlier in the conversation."""
    name, animal = r.choice(facts.NAMES), r.choice(facts.ANIMALS)
    one = f"{facts.article(animal)} {animal}"
    who = f"The user is {name}." if think else None
    what = f"{name} has {one}." if think else None
    if r.random() < 0.3:
        d = message("system", f"The user is called {name}.")
    else:
        said = r.choice([f"My name is {name}.", f"I am {name}.", f"Hi, my name is {name}."])
        d = message("user", said) + assistant(f"Nice to meet you, {name}!", who)
    has_animal = r.random() < 0.4
    if has_animal:
        d += message("user", f"I have {one} at home.") + assistant(f"A nice {animal}!", what)
    if r.random() < 0.6:
        d += turn(r, think)
    if has_animal and r.random() < 0.5:
        return d + message("user", "Which animal do I have?") + assistant(f"You have {one}.", what)
    question = r.choice(["What is my name?", "Who am I?", "Do you know my name?"])
    return d + message("user", question) + assistant(f"Your name is {name}.", who)


def raw_document(r):
    """Plain text, a few statements in a row: dense in facts, so it teaches most of them."""
    samples = [facts.sample(r) for _ in range(r.choice([1, 2, 4, 8]))]
    statements = [a if r.random() < 0.8 else f"{q} {a}" for q, a, _ in samples]
    return [(" ".join(statements), False), ("[EOS]", True)]


def document(r):
    kind, think = r.random(), r.random() < 0.4
    if kind < 0.42:
        return raw_document(r)
    if kind < 0.45:
        return tool_document(r, think)
    if kind < 0.48:
        return json_document(r, think)
    if kind < 0.52:
        return recall_document(r, think)
    d = []
    if r.random() < 0.08:
        instructions = ["You are a helpful assistant.", "Answer in one short sentence."]
        d = message("system", r.choice(instructions))
    d += turn(r, think)
    while r.random() < 0.3:
        d += turn(r, think)
    return d


def texts(count=30000, seed=7):
    """Plain text of the corpus, for training the tokenizer."""
    r = random.Random(seed)
    for _ in range(count):
        yield from (text for text, is_markup in document(r) if not is_markup)
    for country, city in facts.CAPITALS:
        yield from [f" {facts.the(country)}"] * 40 + [f" {city}"] * 40
    for _, word in facts.HELLO:
        yield from [word] * 60


def encode(encoding, segments, specials):
    """Token ids of a document. `encoding` has tiktoken's encode_ordinary."""
    ids = []
    for text, is_markup in segments:
        ids += [specials[text]] if is_markup else encoding.encode_ordinary(text)
    return ids
