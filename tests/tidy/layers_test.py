# SPDX-License-Identifier: Apache-2.0
"""The layers of core/LAYERS.txt hold in the tree, and the rule finds what breaks them."""
import unittest

import layers
import tree

LAYERS = {"base": set(), "os": {"base"}, "stream": {"base", "os"},
          "model": {"base", "stream/expert_source.h"}, "engine": {"base", "model"}}
ALLOWED = [
    ("core/os/file.cc", '#include "os/file.h"\n#include <vector>\n#include "base/status.h"\n'),
    ("core/model/moe.cc", '#include "stream/expert_source.h"\n'),
    ("capi/model.cc", '#include "engine/model.h"\n#include "waste/waste.h"\n'),
    ("examples/cli/main.cc", '#include "waste/waste.h"\n#include "answer.h"\n'),
    ("tests/unit/os/file_test.cc", '#include "model/moe.h"\n'),
]
REFUSED = [
    ("core/base/status.cc", '#include "os/file.h"\n'),
    ("core/model/moe.cc", '#include "stream/cache.h"\n'),
    ("core/engine/model.cc", '#include "stream/expert_source.h"\n'),
    ("core/os/file.cc", '#include "file.h"\n'),
    ("core/os/file.cc", '#include "waste/waste.h"\n'),
    ("core/os/file.cc", '  #  include <waste/waste.h>\n'),
    ("core/os/file.cc", '#include "capi/handle.h"\n'),
    ("core/other/file.cc", '#include "base/status.h"\n'),
    ("core/os/file.cc", '#include "other/file.h"\n'),
    ("capi/model.cc", '#include "model/moe.h"\n'),
    ("examples/cli/main.cc", '#include "base/status.h"\n'),
    ("examples/cli/main.cc", '#include "../../core/base/status.h"\n'),
]


class Layers(unittest.TestCase):
    def setUp(self):
        self.layers = layers.read_layers((tree.ROOT / "core/LAYERS.txt").read_text())

    def test_every_include_of_the_tree_is_allowed(self):
        found = []
        for path, text in tree.sources(tree.CPP_SUFFIXES):
            found += layers.problems(path, text, self.layers)
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_every_module_folder_is_a_layer(self):
        folders = {name.split("/")[1] for name in tree.files() if name.count("/") > 1 and
                   name.startswith("core/")}
        self.assertEqual(folders - set(self.layers), set())

    def test_layers_have_no_cycle(self):
        self.assertIsNone(layers.find_cycle(self.layers))


class LayersRule(unittest.TestCase):
    def test_allowed_includes_pass(self):
        for path, text in ALLOWED:
            with self.subTest(path=path, text=text):
                self.assertEqual(layers.problems(path, text, LAYERS), [])

    def test_refused_includes_are_found(self):
        for path, text in REFUSED:
            with self.subTest(path=path, text=text):
                self.assertEqual(len(layers.problems(path, text, LAYERS)), 1)

    def test_a_cycle_is_found(self):
        self.assertEqual(layers.find_cycle({"a": {"b/x.h"}, "b": {"c"}, "c": {"a"}}), "a")
        self.assertIsNone(layers.find_cycle(LAYERS))


if __name__ == "__main__":
    unittest.main()
