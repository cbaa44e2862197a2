// SPDX-License-Identifier: Apache-2.0
//
// What the library says about models and about work done, as values. All sizes are bytes.

import CWaste

/// What opening a model would cost. floor = trunk + state + scratch + staging; budget = floor +
/// cache + what longer steps of prefill take.
public struct MemoryPlan: Sendable, Hashable {
  /// Whether the budget (asked for, or automatic) is at least the floor.
  public let fits: Bool
  /// The smallest budget that opens this model with one session.
  public let floorBytes: Int64
  /// Floor and two working sets of experts.
  public let recommendedBytes: Int64
  /// Shared weights and codebooks.
  public let trunkBytes: Int64
  /// One session of the context asked for.
  public let stateBytes: Int64
  /// Activations of a step, logits.
  public let scratchBytes: Int64
  /// The experts that one step of one layer needs, and those read ahead.
  public let stagingBytes: Int64
  /// Experts kept beyond that.
  public let cacheBytes: Int64
  /// RAM that this process may use, cgroup limits and `reservedBytes` counted.
  public let usableBytes: Int64
  /// Asked for, or automatic.
  public let budgetBytes: Int64
  /// Granted to other open models on this machine, and not used yet.
  public let reservedBytes: Int64

  init(_ raw: waste_memory_plan) {
    fits = raw.fits != 0
    floorBytes = raw.floor_bytes
    recommendedBytes = raw.recommended_bytes
    trunkBytes = raw.trunk_bytes
    stateBytes = raw.state_bytes
    scratchBytes = raw.scratch_bytes
    stagingBytes = raw.staging_bytes
    cacheBytes = raw.cache_bytes
    usableBytes = raw.usable_bytes
    budgetBytes = raw.budget_bytes
    reservedBytes = raw.reserved_bytes
  }
}

/// What an open model is, and how it runs here.
public struct ModelInfo: Sendable, Hashable {
  /// The manifest's name of the architecture, e.g. "kimi-k3".
  public let name: String
  /// Tokens of the vocabulary, which is the length of a row of logits.
  public let vocabularySize: Int
  /// Layers, with experts or without.
  public let layerCount: Int
  /// Numbers that a token is between layers.
  public let hiddenSize: Int
  /// In each layer that has experts.
  public let expertCount: Int
  /// Experts that a token uses in a layer.
  public let expertsPerToken: Int
  /// Positions of a session unless it asks for fewer.
  public let contextTokens: Int
  /// One record on disk.
  public let expertBytes: Int64
  /// All files of the model that are read.
  public let containerBytes: Int64
  /// RAM granted for everything of this model.
  public let budgetBytes: Int64
  /// Experts that fit the memory granted.
  public let cacheSlots: Int
  /// Threads that compute.
  public let threads: Int
  /// In use. nil: one that this package does not know.
  public let instructionSet: InstructionSet?
  /// Whether direct reads were obtained, as probed by one real read.
  public let usesDirectIO: Bool
  /// Whether the model's chat format has a thinking channel.
  public let canThink: Bool
  /// The token that ends a turn, if there is one.
  public let endToken: TokenID?
  /// Whether the container holds a chat format. Without one there is only raw text.
  public let hasChat: Bool
  /// Of weights that every token reads from memory.
  public let tokenTrunkBytes: Int64
  /// Operations of a token's matrices, those of its experts included: two a weight.
  public let tokenFlops: Int64
  /// Experts read at once. 0 without experts on disk.
  public let readLanes: Int

  init(_ raw: waste_info, name: String) {
    self.name = name
    vocabularySize = Int(raw.vocab_size)
    layerCount = Int(raw.layer_count)
    hiddenSize = Int(raw.hidden_size)
    expertCount = Int(raw.expert_count)
    expertsPerToken = Int(raw.experts_per_token)
    contextTokens = Int(raw.context)
    expertBytes = raw.expert_bytes
    containerBytes = raw.container_bytes
    budgetBytes = raw.budget_bytes
    cacheSlots = Int(raw.cache_slots)
    threads = Int(raw.threads)
    instructionSet = InstructionSet(raw.isa)
    usesDirectIO = raw.direct_io != 0
    canThink = raw.thinking != 0
    endToken = raw.eos_token < 0 ? nil : raw.eos_token
    hasChat = raw.has_chat != 0
    tokenTrunkBytes = raw.token_trunk_bytes
    tokenFlops = raw.token_flops
    readLanes = Int(raw.read_lanes)
  }
}

/// Counters since an object was made. A session's and an answer's count their own work.
public struct Statistics: Sendable, Hashable {
  /// Session: tokens held. Answer: those of its session.
  public let position: Int
  /// Session and answer: the most that the session can hold.
  public let contextTokens: Int
  /// Rows that were prefilled.
  public let promptTokens: Int
  /// Tokens that were sampled.
  public let generatedTokens: Int
  /// Time in prefill, to the microsecond.
  public let prefill: Duration
  /// Time in generating tokens, to the microsecond.
  public let decode: Duration
  /// Uses of experts served from memory.
  public let expertsHit: Int
  /// Uses of experts read from disk.
  public let expertsMissed: Int
  /// Of experts, those read ahead included.
  public let bytesRead: Int64
  /// Time spent waiting for those reads.
  public let readTime: Duration
  /// Model: charged to the budget now. Session: its own share.
  public let memoryBytes: Int64
  /// Model: of the whole process, as the system tells.
  public let peakResidentBytes: Int64
  /// Of those missed, the uses whose read lookahead had begun, or ended.
  public let expertsForeseen: Int
  /// Reads of lookahead that ended, needed in the end or not.
  public let speculativeReads: Int
  /// Of those; part of `bytesRead`.
  public let speculativeBytes: Int64
  /// Times that a step had nothing to do but wait for a read.
  public let readStalls: Int

  init(_ raw: waste_stats) {
    position = Int(raw.position)
    contextTokens = Int(raw.context)
    promptTokens = Int(raw.prompt_tokens)
    generatedTokens = Int(raw.generated_tokens)
    prefill = .microseconds(raw.prefill_us)
    decode = .microseconds(raw.decode_us)
    expertsHit = Int(raw.experts_hit)
    expertsMissed = Int(raw.experts_missed)
    bytesRead = raw.bytes_read
    readTime = .microseconds(raw.read_us)
    memoryBytes = raw.memory_bytes
    peakResidentBytes = raw.peak_rss_bytes
    expertsForeseen = Int(raw.experts_foreseen)
    speculativeReads = Int(raw.speculative_reads)
    speculativeBytes = raw.speculative_bytes
    readStalls = Int(raw.read_stalls)
  }
}

/// How far long work has come.
public struct WorkProgress: Sendable, Hashable {
  /// In units of the work: bytes for open, verify and synthesize, tensors for convert.
  public let done: Int64
  /// 0 until known.
  public let total: Int64
  /// Whether the work has ended, well or not.
  public let isFinished: Bool

  /// From 0 to 1.
  public var fraction: Double { total > 0 ? min(1, Double(done) / Double(total)) : 0 }

  init(_ raw: waste_progress) {
    done = raw.done
    total = raw.total
    isFinished = raw.finished != 0
  }
}
