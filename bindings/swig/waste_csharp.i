// SPDX-License-Identifier: Apache-2.0
//
// C#: arrays are pinned by P/Invoke and their count stays a parameter of its own. A handle goes in
// as a SafeHandle, so that it lives as long as the call; T **out is `out IntPtr`, which layer 2
// wraps. The error is a byte[520] that receives the struct's image. There is no delegate anywhere:
// nothing calls back into managed code.
%csconst(1);
%pragma(csharp) moduleclassmodifiers="internal static class"
%pragma(csharp) imclassclassmodifiers="internal static class"
%typemap(csclassmodifiers) SWIGTYPE "internal class"

%define WASTE_PINNED(P, T)
%typemap(ctype) P "void *"
%typemap(imtype) P "T[]"
%typemap(cstype) P "T[]"
%typemap(csin) P "$csinput"
%typemap(in) P %{ $1 = ($1_ltype)$input; %}
%enddef

%define WASTE_INPUT(J, T, G, P, N)
WASTE_PINNED(P, T)
%enddef
%define WASTE_OUTPUT(J, T, G, P, N)
WASTE_PINNED(P, T)
%enddef

%define WASTE_SAFE(P)
%typemap(ctype) P "void *"
%typemap(imtype) P "global::System.Runtime.InteropServices.SafeHandle"
%typemap(cstype) P "global::System.Runtime.InteropServices.SafeHandle"
%typemap(csin) P "$csinput"
%typemap(in) P %{ $1 = ($1_ltype)$input; %}
%enddef
WASTE_SAFE(void *object)

%define WASTE_HANDLE(T)
WASTE_SAFE(T *)
%typemap(ctype) T **out "void **"
%typemap(imtype) T **out "out global::System.IntPtr"
%typemap(cstype) T **out "out global::System.IntPtr"
%typemap(csin) T **out "out $csinput"
%typemap(in) T **out %{ *$input = 0; $1 = ($1_ltype)$input; %}
%enddef

WASTE_PINNED(waste_error *error, byte)
%typemap(in) waste_error *error %{
  $1 = (waste_error *)$input;
  if ($1) {
    memset($1, 0, sizeof *$1);
    $1->struct_size = (uint32_t)sizeof *$1;
  }
%}

// A SafeHandle frees itself by its address.
%ignore waste_free;
%apply void *VOID_INT_PTR { void *address };
%inline %{
static void waste_free_address(void *address) { waste_free(address); }
%}
