// SPDX-License-Identifier: Apache-2.0
//
// Go: arrays are slices, filled in place; a nil slice is (NULL, 0). Handles are uintptrs, T **out
// is a []uintptr of one, the error is a []byte of 520 that receives the struct's image. No Go
// pointer outlives a call.
%define WASTE_INPUT(J, T, G, P, N)
%typemap(gotype) (P, N) "[]G"
%typemap(in) (P, N) %{
  $1 = ($1_ltype)$input.array;
  $2 = $input.len;
%}
%enddef
%define WASTE_OUTPUT(J, T, G, P, N)
WASTE_INPUT(J, T, G, P, N)
%enddef

%typemap(gotype) void *object "uintptr"
%typemap(in) void *object %{ $1 = ($1_ltype)$input; %}

%define WASTE_HANDLE(T)
%typemap(gotype) T * "uintptr"
%typemap(in) T * %{ $1 = ($1_ltype)$input; %}
%typemap(gotype) T **out "[]uintptr"
%typemap(in, noblock=1) T **out (T *handle = 0) { $1 = &handle; }
%typemap(argout, noblock=1) T **out {
  if (handle$argnum && $input.len) ((uintptr_t *)$input.array)[0] = (uintptr_t)handle$argnum;
}
%enddef

%typemap(gotype) waste_error *error "[]byte"
%typemap(in, noblock=1) waste_error *error (waste_error failure) {
  memset(&failure, 0, sizeof failure);
  failure.struct_size = (uint32_t)sizeof failure;
  $1 = &failure;
}
%typemap(argout, noblock=1) waste_error *error {
  if (failure$argnum.code && $input.len >= (intgo)sizeof failure$argnum)
    memcpy($input.array, &failure$argnum, sizeof failure$argnum);
}
%typemap(gotype) int32_t, const int32_t & "int32"
