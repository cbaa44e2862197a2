// SPDX-License-Identifier: Apache-2.0
//
// Amounts of memory, said with their unit.

package ai.waste;

/** An amount of memory. Immutable. */
public final class DataSize {
  private final long bytes;

  private DataSize(long bytes) {
    if (bytes < 0) throw new IllegalArgumentException(bytes + " bytes");
    this.bytes = bytes;
  }

  /** That many bytes. */
  public static DataSize ofBytes(long bytes) {
    return new DataSize(bytes);
  }

  /** That many times 1024 x 1024 bytes. */
  public static DataSize mib(long count) {
    return new DataSize(Math.multiplyExact(count, 1L << 20));
  }

  /** That many times 1024 x 1024 x 1024 bytes. */
  public static DataSize gib(long count) {
    return new DataSize(Math.multiplyExact(count, 1L << 30));
  }

  /** The amount in bytes. */
  public long toBytes() {
    return bytes;
  }

  @Override
  public String toString() {
    return bytes + " bytes";
  }
}
