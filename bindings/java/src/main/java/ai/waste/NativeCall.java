// SPDX-License-Identifier: Apache-2.0
//
// The shape that most calls have: an object, and the caller's error.

package ai.waste;

interface NativeCall {
  /** A result, or a status below 0 with the error's image filled in. */
  long on(long object, byte[] error);
}
