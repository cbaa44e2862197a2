// SPDX-License-Identifier: Apache-2.0
//
// The error that carries a number.

package ai.waste;

/** The memory budget is too small. */
public final class RamBudgetException extends WasteException {
  private static final long serialVersionUID = 1;

  private final long neededBytes;

  RamBudgetException(String message, long neededBytes) {
    super(Status.RAM_BUDGET, message);
    this.neededBytes = neededBytes;
  }

  /** The smallest budget that would do, in bytes. */
  public long neededBytes() {
    return neededBytes;
  }
}
