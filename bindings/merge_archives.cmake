# SPDX-License-Identifier: Apache-2.0
#
# Writes OUTPUT, one archive of all members of ARCHIVES and of OBJECTS, with the archiver AR.
set(script "CREATE ${OUTPUT}\n")
foreach(archive IN LISTS ARCHIVES)
  string(APPEND script "ADDLIB ${archive}\n")
endforeach()
foreach(object IN LISTS OBJECTS)
  string(APPEND script "ADDMOD ${object}\n")
endforeach()
string(APPEND script "SAVE\nEND\n")
file(WRITE ${OUTPUT}.mri "${script}")
file(REMOVE ${OUTPUT})
execute_process(COMMAND ${AR} -M INPUT_FILE ${OUTPUT}.mri COMMAND_ERROR_IS_FATAL ANY)
