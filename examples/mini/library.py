# SPDX-License-Identifier: Apache-2.0
"""As much of libwaste as the evaluation needs, by ctypes; nothing but the standard library.

A `Container` is an opened model with one session. It looks like a tiktoken Encoding where that is
asked for (`encode_ordinary`). Errors of the library are raised as LibraryError with its message.
"""

import ctypes as c
import os


class Error(c.Structure):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("code", c.c_int32),
        ("needed_bytes", c.c_int64),
        ("message", c.c_char * 500),
    ]


class OpenOptions(c.Structure):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("threads", c.c_int32),
        ("budget_bytes", c.c_int64),
        ("context", c.c_int64),
        ("io", c.c_int32),
        ("verify", c.c_int32),
        ("lookahead", c.c_int32),
        ("arithmetic", c.c_int32),
        ("isa", c.c_int32),
        ("reserved", c.c_int32),
    ]


class Info(c.Structure):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("vocab_size", c.c_int32),
        ("layer_count", c.c_int32),
        ("hidden_size", c.c_int32),
        ("expert_count", c.c_int32),
        ("experts_per_token", c.c_int32),
        ("context", c.c_int64),
        ("expert_bytes", c.c_int64),
        ("container_bytes", c.c_int64),
        ("budget_bytes", c.c_int64),
        ("cache_slots", c.c_int64),
        ("threads", c.c_int32),
        ("isa", c.c_int32),
        ("direct_io", c.c_int32),
        ("thinking", c.c_int32),
        ("eos_token", c.c_int32),
        ("has_chat", c.c_int32),
    ]


ARITHMETIC_FAST = 0
ARITHMETIC_EXACT = 1
ABI_VERSION = 0
TEXT = (c.c_char_p, c.c_int64)
TOKENS = (c.POINTER(c.c_int32), c.c_int64)
HANDLE = c.c_void_p
SIGNATURES = {
    "waste_abi_version": (c.c_int32, ()),
    "waste_open": (c.c_int32, (*TEXT, c.POINTER(OpenOptions), c.POINTER(HANDLE), c.POINTER(Error))),
    "waste_model_info": (c.c_int32, (HANDLE, c.POINTER(Info), c.POINTER(Error))),
    "waste_session_create": (c.c_int32, (HANDLE, HANDLE, c.POINTER(HANDLE), c.POINTER(Error))),
    "waste_session_reset": (c.c_int32, (HANDLE, c.POINTER(Error))),
    "waste_tokenize": (c.c_int64, (HANDLE, *TEXT, *TOKENS, c.POINTER(Error))),
    "waste_tokenize_markup": (c.c_int64, (HANDLE, *TEXT, *TOKENS, c.POINTER(Error))),
    "waste_eval": (
        c.c_int64,
        (HANDLE, *TOKENS, c.POINTER(c.c_float), c.c_int64, c.POINTER(Error)),
    ),
    "waste_free": (None, (HANDLE,)),
}


class LibraryError(Exception):
    pass


class Container:
    """A container, opened with a context of `context` tokens, for exact or fast arithmetic."""

    def __init__(self, library, folder, context=512, exact=True):
        self.lib = c.CDLL(os.path.abspath(library))
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments
        if self.lib.waste_abi_version() != ABI_VERSION:
            raise LibraryError(f"{library} has another ABI")
        self.model, self.session = HANDLE(), HANDLE()
        options = OpenOptions(struct_size=c.sizeof(OpenOptions), context=context)
        options.arithmetic = ARITHMETIC_EXACT if exact else ARITHMETIC_FAST
        path = os.fsencode(folder)
        self.call("waste_open", path, len(path), c.byref(options), c.byref(self.model))
        self.call("waste_session_create", self.model, None, c.byref(self.session))
        info = Info(struct_size=c.sizeof(Info))
        self.call("waste_model_info", self.model, c.byref(info))
        self.vocab = info.vocab_size

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lib.waste_free(self.session)
        self.lib.waste_free(self.model)

    def call(self, name, *arguments):
        """The function's result, which is not an error."""
        error = Error(struct_size=c.sizeof(Error))
        result = getattr(self.lib, name)(*arguments, c.byref(error))
        if result < 0:
            raise LibraryError(f"{name}: {error.message.decode()} ({error.code})")
        return result

    def encode_ordinary(self, text):
        return self.tokenize("waste_tokenize", text)

    def encode_special(self, text):
        """The id of one special token."""
        (token,) = self.tokenize("waste_tokenize_markup", text)
        return token

    def tokenize(self, function, text):
        raw = text.encode()
        buffer = (c.c_int32 * max(1, len(raw)))()  # a token has at least one byte
        count = self.call(function, self.model, raw, len(raw), buffer, len(buffer))
        return list(buffer[:count])

    def likeliest(self, ids, count):
        """The likeliest tokens after each of the last `count` of `ids`, from an empty session."""
        self.call("waste_session_reset", self.session)
        return self.go_on(ids, count)

    def likeliest_written(self, ids, count):
        """The same with the tokens after the first answer given one by one, as they are written."""
        self.call("waste_session_reset", self.session)
        prompt = len(ids) - count + 1
        found = self.go_on(ids[:prompt], 1)
        for token in ids[prompt:]:
            found += self.go_on([token], 1)
        return found

    def likeliest_at(self, ids, places):
        """The likeliest tokens at these places of `ids`, read at once, from an empty session."""
        self.call("waste_session_reset", self.session)
        first = min(places)
        return self.go_on(ids[:-1], len(ids) - first, [place - first for place in places])

    def go_on(self, ids, count, rows=None):
        """The likeliest tokens after the last `count` of `ids`, or after those `rows` of them."""
        tokens = (c.c_int32 * len(ids))(*ids)
        logits = (c.c_float * (count * self.vocab))()
        self.call("waste_eval", self.session, tokens, len(ids), logits, len(logits))
        found = []
        for row in range(count) if rows is None else rows:
            of_row = logits[row * self.vocab : (row + 1) * self.vocab]
            found.append(of_row.index(max(of_row)))
        return found
