# SPDX-License-Identifier: Apache-2.0
#
# Windows programs built on Debian by MinGW-w64 and run by Wine; the preset `windows` uses it. The
# libraries that consist of headers alone come from the host (host_headers.cmake).
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-static")
# MinGW's GCC aligns no stack for 32-byte vectors (bug 54412): what kernels spill must not need it.
set(CMAKE_CXX_FLAGS_INIT "-Wa,-muse-unaligned-vector-move")
find_program(WASTE_WINE NAMES wine64 PATHS /usr/lib/wine NO_CMAKE_FIND_ROOT_PATH)
if(WASTE_WINE)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${WASTE_WINE})
endif()
include(${CMAKE_CURRENT_LIST_DIR}/host_headers.cmake)
