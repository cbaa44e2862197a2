// SPDX-License-Identifier: Apache-2.0
//
// The caller's waste_error, as the bytes that SWIG's wrapper copies out, and the exception that a
// status becomes. One instance is for one call at a time.

package ai.waste;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

final class NativeError {
  private static final int SIZE = 520;
  private static final int NEEDED_BYTES = 8;
  private static final int MESSAGE = 16;

  final byte[] image = new byte[SIZE];

  /** Passes a result on, or throws what a negative one stands for. */
  long check(long result) {
    if (result < 0) throw exception(result);
    return result;
  }

  WasteException exception(long code) {
    final Status status = Status.of(code);
    final String message = message();
    switch (status) {
      case FORMAT:
      case CORRUPT:
      case VERSION:
        return new ModelFormatException(status, message);
      case RAM_BUDGET:
        final ByteBuffer bytes = ByteBuffer.wrap(image).order(ByteOrder.nativeOrder());
        return new RamBudgetException(message, bytes.getLong(NEEDED_BYTES));
      case CONTEXT_FULL:
        return new ContextFullException(message);
      case BUSY:
        return new SessionBusyException(message);
      case CANCELLED:
        return new OperationCancelledException(message);
      default:
        return new WasteException(status, message);
    }
  }

  private String message() {
    int end = MESSAGE;
    while (end < SIZE && image[end] != 0) end++;
    return new String(image, MESSAGE, end - MESSAGE, StandardCharsets.UTF_8);
  }
}
