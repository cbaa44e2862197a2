// SPDX-License-Identifier: Apache-2.0
//
// The named module that --enable-native-access=ai.waste refers to. What SWIG generates lies in the
// same package and is package-private, so that exporting it shows the hand-written layer only.

/** Runs mixture-of-experts language models larger than memory. */
module ai.waste {
  exports ai.waste;
}
