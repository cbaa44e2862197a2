# SPDX-License-Identifier: Apache-2.0
#
# Linux programs for aarch64, built on another machine and run by qemu-user; the preset `arm64` uses
# it. The libraries that consist of headers alone come from the host (host_headers.cmake).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
find_program(WASTE_QEMU NAMES qemu-aarch64 qemu-aarch64-static NO_CMAKE_FIND_ROOT_PATH)
if(WASTE_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${WASTE_QEMU} -L /usr/aarch64-linux-gnu)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/host_headers.cmake)
