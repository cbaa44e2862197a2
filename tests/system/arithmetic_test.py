# SPDX-License-Identifier: Apache-2.0
"""The gate of fast arithmetic: on the mini model's own evaluation the tokens that are likeliest are
those of exact arithmetic, and a prompt read at once gives what its tokens give one by one."""

import os
import pathlib
import sys
import unittest

import program

sys.path.insert(0, str(program.ROOT / "examples" / "mini"))

import corpus  # noqa: E402
import evaluate  # noqa: E402
import library  # noqa: E402
import tokenizer  # noqa: E402

LIBRARY = pathlib.Path(os.path.dirname(program.WASTE)) / "libwaste.so"
QUESTIONS = 6  # of each kind
MANY = 64  # tokens, which are not computed as an answer's are


class Fast(unittest.TestCase):
    def likeliest(self, exact, written):
        """The likeliest tokens at each place of every answer."""
        with library.Container(LIBRARY, program.MINI, exact=exact) as container:
            specials = {text: container.encode_special(text) for text in tokenizer.SPECIALS}
            ask = container.likeliest_written if written else container.likeliest
            found = []

            def judge(conversations):
                for segments, given in conversations:
                    ids = corpus.encode(container, segments, specials)
                    start = len(corpus.encode(container, given, specials))
                    found.append(ask(ids[:-1], len(ids) - start))
                return [True] * len(conversations)

            evaluate.accuracy(judge, QUESTIONS)
            return found

    def in_a_row(self, exact):
        """The same in texts of many questions, which are read as prompts."""
        with library.Container(LIBRARY, program.MINI, exact=exact) as container:
            specials = {text: container.encode_special(text) for text in tokenizer.SPECIALS}
            found = []

            def judge(conversations):
                for ids, answers in evaluate.in_a_row(container, specials, conversations, 512):
                    self.assertGreater(len(ids), MANY)
                    places = [place for answer in answers for place in answer]
                    found.extend(container.likeliest_at(ids, places))
                return [True] * len(conversations)

            evaluate.accuracy(judge, QUESTIONS)
            return found

    def test_prompts_say_what_exact_arithmetic_says(self):
        exact = self.in_a_row(exact=True)
        self.assertEqual(self.in_a_row(exact=False), exact)
        self.assertGreater(len(exact), 100)

    def test_the_evaluation_says_what_exact_arithmetic_says(self):
        exact = self.likeliest(exact=True, written=True)
        self.assertEqual(self.likeliest(exact=False, written=True), exact)
        self.assertEqual(self.likeliest(exact=True, written=False), exact)
        self.assertGreater(sum(map(len, exact)), 100)


if __name__ == "__main__":
    unittest.main()
