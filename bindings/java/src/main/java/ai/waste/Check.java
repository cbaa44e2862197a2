// SPDX-License-Identifier: Apache-2.0
//
// What builders say about a value that cannot be. Upper limits are the library's to know.

package ai.waste;

final class Check {
  private Check() {}

  static void that(boolean good, String what, Object value) {
    if (!good) throw new IllegalArgumentException(what + " is " + value);
  }
}
