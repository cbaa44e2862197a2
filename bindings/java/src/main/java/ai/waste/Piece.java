// SPDX-License-Identifier: Apache-2.0
//
// One step of an answer.

package ai.waste;

/** Some text of an answer, whole characters only. Immutable. */
public final class Piece {
  private final String text;
  private final Channel channel;
  private final int token;
  private final int tokenCount;
  private final long firstIndex;
  private final double logprob;
  private final long position;

  Piece(String text, waste_token info) {
    this.text = text;
    channel = Channel.of(info.getChannel());
    token = info.getId();
    tokenCount = info.getCount();
    firstIndex = info.getFirst_index();
    logprob = info.getLogprob();
    position = info.getPosition();
  }

  /** The text; never empty. */
  public String text() {
    return text;
  }

  /** The part of the answer that the text belongs to. */
  public Channel channel() {
    return channel;
  }

  /** The last token that the piece consumed. */
  public int token() {
    return token;
  }

  /** Tokens consumed: several for an emoji, none for the rest of a long text. */
  public int tokenCount() {
    return tokenCount;
  }

  /** Index in the answer of the first token consumed. */
  public long firstIndex() {
    return firstIndex;
  }

  /** Natural logarithm of the probability of {@link #token()}; 0 unless asked for. */
  public double logprob() {
    return logprob;
  }

  /** Tokens that the session holds after this piece. */
  public long position() {
    return position;
  }

  @Override
  public String toString() {
    return text;
  }
}
