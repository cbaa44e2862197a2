#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# From nothing to an answer on a fresh Debian 12: installs the compiler and three libraries, builds
# libwaste and the waste program, and asks the small model of this repository a question. The last
# line is the model's answer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tests/support/packages.sh

need_packages cmake ninja-build g++ nlohmann-json3-dev libcli11-dev libedit-dev

echo "Building"
cmake --preset release -DWASTE_TESTS=OFF > /dev/null
cmake --build build/release --target waste_cli

echo "> What is the capital of Italy?"
./build/release/waste run examples/mini/mini.waste "What is the capital of Italy?"
