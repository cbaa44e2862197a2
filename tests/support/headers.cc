// SPDX-License-Identifier: Apache-2.0
//
// Nothing of its own: CMake compiles the precompiled headers of the tests (tests/CMakeLists.txt)
// for this file, and every test program reuses them. A test must still include what it uses.
