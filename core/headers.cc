// SPDX-License-Identifier: Apache-2.0
//
// Nothing of its own: CMake compiles the precompiled headers of core (core/CMakeLists.txt) for
// this file, and every module reuses them. A module must still include what it uses.
