// SPDX-License-Identifier: Apache-2.0
//
// What an open would cost: waste_memory_plan.

package ai.waste;

/** What an open would cost, in bytes: floor = trunk + state + scratch + staging. Immutable. */
public final class MemoryPlan {
  private final boolean fits;
  private final long floorBytes;
  private final long recommendedBytes;
  private final long trunkBytes;
  private final long stateBytes;
  private final long scratchBytes;
  private final long stagingBytes;
  private final long cacheBytes;
  private final long usableBytes;
  private final long budgetBytes;
  private final long reservedBytes;

  MemoryPlan(waste_memory_plan from) {
    fits = from.getFits() != 0;
    floorBytes = from.getFloor_bytes();
    recommendedBytes = from.getRecommended_bytes();
    trunkBytes = from.getTrunk_bytes();
    stateBytes = from.getState_bytes();
    scratchBytes = from.getScratch_bytes();
    stagingBytes = from.getStaging_bytes();
    cacheBytes = from.getCache_bytes();
    usableBytes = from.getUsable_bytes();
    budgetBytes = from.getBudget_bytes();
    reservedBytes = from.getReserved_bytes();
  }

  /** Whether the budget (asked for, or automatic) is at least the floor. */
  public boolean fits() {
    return fits;
  }

  /** The smallest budget that opens this model with one session. */
  public long floorBytes() {
    return floorBytes;
  }

  /** The floor and two working sets of experts. */
  public long recommendedBytes() {
    return recommendedBytes;
  }

  /** Shared weights and codebooks. */
  public long trunkBytes() {
    return trunkBytes;
  }

  /** One session of the context asked for. */
  public long stateBytes() {
    return stateBytes;
  }

  /** Activations of a step, and logits. */
  public long scratchBytes() {
    return scratchBytes;
  }

  /** The experts that one step of one layer needs, and those read ahead. */
  public long stagingBytes() {
    return stagingBytes;
  }

  /** Experts kept beyond that. */
  public long cacheBytes() {
    return cacheBytes;
  }

  /** Memory that this process may use, limits of containers and {@link #reservedBytes} counted. */
  public long usableBytes() {
    return usableBytes;
  }

  /** Asked for, or automatic. */
  public long budgetBytes() {
    return budgetBytes;
  }

  /** Granted to other open models on this machine, and not used yet. */
  public long reservedBytes() {
    return reservedBytes;
  }
}
