// SPDX-License-Identifier: Apache-2.0
//
// Java: arrays are copied and never pinned, since a pinned one stops the collector for a whole
// token; a null array is (NULL, 0). Handles are longs, T **out is a long[1], the error is a
// byte[520] that receives the struct's image. Everything is package-private in ai.waste, beside
// the layer that people see; nothing has a finalizer.
%javaconst(1);
%pragma(java) moduleclassmodifiers="final class"
%pragma(java) jniclassclassmodifiers="final class"
%typemap(javaclassmodifiers) SWIGTYPE "final class"
%typemap(javafinalize) SWIGTYPE ""

%define WASTE_ARRAY(T, P, N)
%typemap(jni) (P, N) "jarray"
%typemap(jtype) (P, N) "T[]"
%typemap(jstype) (P, N) "T[]"
%typemap(javain) (P, N) "$javainput"
%enddef

%define WASTE_INPUT(J, T, G, P, N)
WASTE_ARRAY(T, P, N)
%typemap(in, noblock=1) (P, N) {
  $1 = $input ? (void *)(*jenv)->Get##J##ArrayElements(jenv, $input, 0) : 0;
  if ($input && !$1) return $null; /* an OutOfMemoryError is pending */
  $2 = $1 ? (*jenv)->GetArrayLength(jenv, $input) : 0;
}
%typemap(freearg, noblock=1) (P, N) {
  if ($1) (*jenv)->Release##J##ArrayElements(jenv, $input, (void *)$1, JNI_ABORT);
}
%enddef

// Every function returns how many elements there are: what was written of them goes back, and
// nothing comes in.
%define WASTE_OUTPUT(J, T, G, P, N)
WASTE_ARRAY(T, P, N)
%typemap(in, noblock=1) (P, N) {
  $2 = $input ? (*jenv)->GetArrayLength(jenv, $input) : 0;
  $1 = $2 ? malloc(sizeof *$1 * (size_t)$2) : 0;
  if ($2 && !$1) {
    jclass type = (*jenv)->FindClass(jenv, "java/lang/OutOfMemoryError");
    (*jenv)->ThrowNew(jenv, type, "a buffer of libwaste");
    return $null;
  }
}
%typemap(argout, noblock=1) (P, N) {
  if ($1 && result > 0)
    (*jenv)->Set##J##ArrayRegion(jenv, $input, 0, (jsize)(result < $2 ? result : $2),
                                 (const void *)$1);
}
%typemap(freearg, noblock=1) (P, N) { free($1); }
%enddef

%define WASTE_LONG(P)
%typemap(jni) P "jlong"
%typemap(jtype) P "long"
%typemap(jstype) P "long"
%typemap(javain) P "$javainput"
%typemap(in) P %{ $1 = ($1_ltype)(intptr_t)$input; %}
%enddef
WASTE_LONG(void *object)

%define WASTE_HANDLE(T)
WASTE_LONG(T *)
%typemap(jni) T **out "jlongArray"
%typemap(jtype) T **out "long[]"
%typemap(jstype) T **out "long[]"
%typemap(javain) T **out "$javainput"
%typemap(in, noblock=1) T **out (T *handle = 0) { $1 = &handle; }
%typemap(argout, noblock=1) T **out {
  if (handle$argnum) {
    const jlong address = (jlong)(intptr_t)handle$argnum;
    (*jenv)->SetLongArrayRegion(jenv, $input, 0, 1, &address);
  }
}
%enddef

%typemap(jni) waste_error *error "jbyteArray"
%typemap(jtype) waste_error *error "byte[]"
%typemap(jstype) waste_error *error "byte[]"
%typemap(javain) waste_error *error "$javainput"
%typemap(in, noblock=1) waste_error *error (waste_error failure) {
  memset(&failure, 0, sizeof failure);
  failure.struct_size = (uint32_t)sizeof failure;
  $1 = &failure;
}
%typemap(argout, noblock=1) waste_error *error {
  if ($input && failure$argnum.code)
    (*jenv)->SetByteArrayRegion(jenv, $input, 0, (jsize)sizeof failure$argnum,
                                (const jbyte *)&failure$argnum);
}
