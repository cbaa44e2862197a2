// SPDX-License-Identifier: Apache-2.0
//
// Counters: waste_stats.

package ai.waste;

import java.time.Duration;
import java.time.temporal.ChronoUnit;

/**
 * Counters since a model, a session or an answer was made; each counts its own work. Fields that do
 * not apply are 0. Immutable.
 */
public final class Stats {
  private final FinishReason finishReason;
  private final long position;
  private final long contextTokens;
  private final long promptTokens;
  private final long generatedTokens;
  private final Duration prefillTime;
  private final Duration decodeTime;
  private final long expertsHit;
  private final long expertsMissed;
  private final long bytesRead;
  private final Duration readTime;
  private final long memoryBytes;
  private final long peakRssBytes;
  private final long expertsForeseen;
  private final long speculativeReads;
  private final long speculativeBytes;
  private final long readStalls;

  Stats(waste_stats from) {
    finishReason = FinishReason.of(from.getFinish_reason());
    position = from.getPosition();
    contextTokens = from.getContext();
    promptTokens = from.getPrompt_tokens();
    generatedTokens = from.getGenerated_tokens();
    prefillTime = Duration.of(from.getPrefill_us(), ChronoUnit.MICROS);
    decodeTime = Duration.of(from.getDecode_us(), ChronoUnit.MICROS);
    expertsHit = from.getExperts_hit();
    expertsMissed = from.getExperts_missed();
    bytesRead = from.getBytes_read();
    readTime = Duration.of(from.getRead_us(), ChronoUnit.MICROS);
    memoryBytes = from.getMemory_bytes();
    peakRssBytes = from.getPeak_rss_bytes();
    expertsForeseen = from.getExperts_foreseen();
    speculativeReads = from.getSpeculative_reads();
    speculativeBytes = from.getSpeculative_bytes();
    readStalls = from.getRead_stalls();
  }

  /** Of an answer: why it ended. */
  public FinishReason finishReason() {
    return finishReason;
  }

  /** Tokens that the session holds. */
  public long position() {
    return position;
  }

  /** Most tokens that the session can hold. */
  public long contextTokens() {
    return contextTokens;
  }

  /** Tokens that were prefilled. */
  public long promptTokens() {
    return promptTokens;
  }

  /** Tokens that were generated. */
  public long generatedTokens() {
    return generatedTokens;
  }

  /** Time spent on prefill. */
  public Duration prefillTime() {
    return prefillTime;
  }

  /** Time spent on generated tokens. */
  public Duration decodeTime() {
    return decodeTime;
  }

  /** Uses of experts that were served from memory. */
  public long expertsHit() {
    return expertsHit;
  }

  /** Uses of experts that were read from disk. */
  public long expertsMissed() {
    return expertsMissed;
  }

  /** Bytes of experts that were read, those read ahead included. */
  public long bytesRead() {
    return bytesRead;
  }

  /** Time spent waiting for those reads. */
  public Duration readTime() {
    return readTime;
  }

  /** Of a model: charged to its budget now; of a session: its own share. */
  public long memoryBytes() {
    return memoryBytes;
  }

  /** Of a model: the peak of the whole process, as the system tells. */
  public long peakRssBytes() {
    return peakRssBytes;
  }

  /** Of those missed, the uses whose read lookahead had begun, or ended. */
  public long expertsForeseen() {
    return expertsForeseen;
  }

  /** Reads of lookahead that ended, needed in the end or not. */
  public long speculativeReads() {
    return speculativeReads;
  }

  /** Bytes of those reads; part of {@link #bytesRead}. */
  public long speculativeBytes() {
    return speculativeBytes;
  }

  /** Times that a step had nothing to do but wait for a read. */
  public long readStalls() {
    return readStalls;
  }

  interface Read {
    int call(long object, waste_stats out, byte[] error);
  }

  static Stats read(Handle handle, Object owner, Read read) {
    final long entered = handle.enter(owner);
    try {
      return of(entered, read);
    } finally {
      handle.leave();
    }
  }

  static Stats of(long object, Read read) {
    final NativeError error = new NativeError();
    final waste_stats out = new waste_stats();
    try {
      error.check(read.call(object, out, error.image));
      return new Stats(out);
    } finally {
      out.delete();
    }
  }
}
