// SPDX-License-Identifier: Apache-2.0
//
// The SWIG interface of libwaste, over the C header itself. One file a language beside this one
// says how the header's few kinds of parameter cross: arrays with their count, handles, sized
// structs, and the caller's error. No strings, no exceptions and no callbacks cross, so nothing
// that SWIG makes of those is used. bindings/swig/generate.sh runs it; docs/binding.md explains
// it.
#ifdef SWIGGO
%module cwaste
#else
%module WasteNative
#endif

%{
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
%}

#ifdef SWIGGO
// cgo, and a vendored module, see nothing but the files of the package's own folder.
%{
#include "waste.h"
%}
#else
%{
#include "waste/waste.h"
%}
#endif

%include <stdint.i>
#if defined(SWIGJAVA)
%include "waste_java.i"
#elif defined(SWIGCSHARP)
%include "waste_csharp.i"
#elif defined(SWIGGO)
%include "waste_go.i"
#endif

#ifndef SWIGXML
// JNI's name, Java's and C#'s, Go's, the pair. Names are the ABI's: a typemap matches on them, so a
// parameter of another name is left alone, and the check for SWIGTYPE_p_ in generate.sh finds it.
WASTE_INPUT(Byte, byte, byte, const char *path, int64_t path_size)
WASTE_INPUT(Byte, byte, byte, const char *source, int64_t source_size)
WASTE_INPUT(Byte, byte, byte, const char *target, int64_t target_size)
WASTE_INPUT(Byte, byte, byte, const char *shape, int64_t shape_size)
WASTE_INPUT(Byte, byte, byte, const char *prompt, int64_t prompt_size)
WASTE_INPUT(Byte, byte, byte, const char *text, int64_t text_size)
WASTE_INPUT(Int, int, int32, const int32_t *tokens, int64_t token_count)
WASTE_OUTPUT(Byte, byte, byte, char *buffer, int64_t buffer_size)
WASTE_OUTPUT(Int, int, int32, int32_t *tokens, int64_t token_count)
WASTE_OUTPUT(Int, int, int32, int32_t *sizes, int64_t size_count)
WASTE_OUTPUT(Float, float, float32, float *logits, int64_t logit_count)
WASTE_OUTPUT(Double, double, float64, double *logprobs, int64_t logprob_count)
WASTE_HANDLE(waste_model)
WASTE_HANDLE(waste_session)
WASTE_HANDLE(waste_generation)
WASTE_HANDLE(waste_job)

// A struct is made zeroed and sized on the C side; its proxy is small and is deleted by layer 2.
%define WASTE_STRUCT_MADE(T)
%ignore T::struct_size;
%ignore T::reserved;
%extend T {
  T() {
    T *made = (T *)calloc(1, sizeof *made);
    if (made) made->struct_size = (uint32_t)sizeof *made;
    return made;
  }
}
%enddef
%define WASTE_STRUCT(T)
WASTE_STRUCT_MADE(T)
%extend T {
  ~T() { free($self); }
}
%enddef

// The one text within a struct: bytes and their count go in, and the struct owns a copy. A NUL
// among them would end the list unseen, so the library gets '?' to refuse. -1: there is no memory.
%ignore waste_open_options::cpu_list;
%extend waste_open_options {
  ~waste_open_options() {
    free((char *)$self->cpu_list);
    free($self);
  }
  int32_t set_cpu_list(const char *text, int64_t text_size) {
    char *made = (char *)malloc((size_t)text_size + 1);
    int64_t i;
    if (!made) return -1;
    for (i = 0; i < text_size; ++i) made[i] = text[i] ? text[i] : '?';
    made[text_size] = 0;
    free((char *)$self->cpu_list);
    $self->cpu_list = made;
    return 0;
  }
}
%ignore waste_error;
%ignore waste_open_options_init;
%ignore waste_session_options_init;
%ignore waste_generation_options_init;
%ignore waste_convert_options_init;
%ignore waste_synthesis_options_init;
WASTE_STRUCT_MADE(waste_open_options)
WASTE_STRUCT(waste_session_options)
WASTE_STRUCT(waste_generation_options)
WASTE_STRUCT(waste_memory_plan)
WASTE_STRUCT(waste_info)
WASTE_STRUCT(waste_stats)
WASTE_STRUCT(waste_token)
WASTE_STRUCT(waste_convert_options)
WASTE_STRUCT(waste_progress)
WASTE_STRUCT(waste_synthesis_options)

// What waste_abi_sizes must answer: the sizes of the header that this wrapper was compiled with. A
// wrapper that meets a library of another header finds out before it passes a struct.
%inline %{
static int64_t waste_wrapper_sizes(int32_t *sizes, int64_t size_count) {
  static const int32_t own[] = {
      sizeof(waste_error),     sizeof(waste_open_options), sizeof(waste_session_options),
      sizeof(waste_generation_options), sizeof(waste_memory_plan), sizeof(waste_info),
      sizeof(waste_stats),     sizeof(waste_token),        sizeof(waste_convert_options),
      sizeof(waste_progress),  sizeof(waste_synthesis_options)};
  const int64_t count = (int64_t)(sizeof own / sizeof own[0]);
  if (sizes && size_count > 0)
    memcpy(sizes, own, sizeof own[0] * (size_t)(size_count < count ? size_count : count));
  return count;
}
%}
#endif

%include "waste/waste.h"
