// SPDX-License-Identifier: Apache-2.0
//
// What a model is: waste_info.

package ai.waste;

/** What an open model is. Immutable. */
public final class ModelInfo {
  private final String name;
  private final int vocabularySize;
  private final int layerCount;
  private final int hiddenSize;
  private final int expertCount;
  private final int expertsPerToken;
  private final long contextTokens;
  private final long expertBytes;
  private final long containerBytes;
  private final long budgetBytes;
  private final long cacheSlots;
  private final int threads;
  private final ModelOptions.InstructionSet instructionSet;
  private final boolean directIo;
  private final boolean canThink;
  private final int endToken;
  private final boolean hasChat;
  private final long tokenTrunkBytes;
  private final long tokenFlops;
  private final int readLanes;

  ModelInfo(String name, waste_info from) {
    this.name = name;
    vocabularySize = from.getVocab_size();
    layerCount = from.getLayer_count();
    hiddenSize = from.getHidden_size();
    expertCount = from.getExpert_count();
    expertsPerToken = from.getExperts_per_token();
    contextTokens = from.getContext();
    expertBytes = from.getExpert_bytes();
    containerBytes = from.getContainer_bytes();
    budgetBytes = from.getBudget_bytes();
    cacheSlots = from.getCache_slots();
    threads = from.getThreads();
    instructionSet = ModelOptions.InstructionSet.of(from.getIsa());
    directIo = from.getDirect_io() != 0;
    canThink = from.getThinking() != 0;
    endToken = from.getEos_token();
    hasChat = from.getHas_chat() != 0;
    tokenTrunkBytes = from.getToken_trunk_bytes();
    tokenFlops = from.getToken_flops();
    readLanes = from.getRead_lanes();
  }

  /** The architecture, as the container names it. */
  public String name() {
    return name;
  }

  /** Tokens of the vocabulary; also the length of a row of logits. */
  public int vocabularySize() {
    return vocabularySize;
  }

  /** Layers. */
  public int layerCount() {
    return layerCount;
  }

  /** Width of the residual stream. */
  public int hiddenSize() {
    return hiddenSize;
  }

  /** Experts of a layer. */
  public int expertCount() {
    return expertCount;
  }

  /** Experts of a layer that a token uses. */
  public int expertsPerToken() {
    return expertsPerToken;
  }

  /** Positions of a session unless it asks for fewer. */
  public long contextTokens() {
    return contextTokens;
  }

  /** One expert on disk, in bytes. */
  public long expertBytes() {
    return expertBytes;
  }

  /** All files of the model that are read, in bytes. */
  public long containerBytes() {
    return containerBytes;
  }

  /** The memory budget granted, in bytes. */
  public long budgetBytes() {
    return budgetBytes;
  }

  /** Experts that fit the memory granted. */
  public long cacheSlots() {
    return cacheSlots;
  }

  /** Threads that work. */
  public int threads() {
    return threads;
  }

  /** The instruction set in use. */
  public ModelOptions.InstructionSet instructionSet() {
    return instructionSet;
  }

  /** Whether direct reads were obtained. */
  public boolean directIo() {
    return directIo;
  }

  /** Whether the chat format has a thinking channel. */
  public boolean canThink() {
    return canThink;
  }

  /** The token that ends a turn, -1 if there is none. */
  public int endToken() {
    return endToken;
  }

  /** Whether the container holds a chat format. */
  public boolean hasChat() {
    return hasChat;
  }

  /** Weights that every token reads from memory, in bytes; experts are not counted. */
  public long tokenTrunkBytes() {
    return tokenTrunkBytes;
  }

  /** Operations of a token's matrices, 2 a weight, its experts included. */
  public long tokenFlops() {
    return tokenFlops;
  }

  /** Experts read at once, 0 without experts on disk. */
  public int readLanes() {
    return readLanes;
  }
}
