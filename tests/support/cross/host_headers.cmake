# SPDX-License-Identifier: Apache-2.0
#
# For builds of another system than the host's: the libraries that consist of headers alone come
# from the host, by the Find files beside this one. A toolchain file includes it.
list(PREPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})

# waste_host_headers(PACKAGE FOLDER): the target's headers are /usr/include/FOLDER, and none else of
# /usr/include, which holds the C library of another system.
function(waste_host_headers package target folder)
  set(link ${CMAKE_BINARY_DIR}/host-headers/${folder})
  if(EXISTS /usr/include/${folder} AND NOT EXISTS ${link})
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/host-headers)
    file(CREATE_LINK /usr/include/${folder} ${link} SYMBOLIC)
  endif()
  if(EXISTS ${link})
    add_library(${target} INTERFACE IMPORTED)
    target_include_directories(${target} INTERFACE ${CMAKE_BINARY_DIR}/host-headers)
    set(${package}_FOUND TRUE PARENT_SCOPE)
  endif()
endfunction()
