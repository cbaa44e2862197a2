// SPDX-License-Identifier: Apache-2.0
//
// How a model is opened, a checkpoint converted and a model synthesized, as values. nil leaves a
// field to the library.

import CWaste

/// A number of bytes that reads well: `.gib(4)`.
public struct ByteCount: Sendable, Hashable, ExpressibleByIntegerLiteral {
  /// The number.
  public var bytes: Int64

  /// A number of single bytes.
  public init(_ bytes: Int64) { self.bytes = bytes }
  /// A number of single bytes.
  public init(integerLiteral value: Int64) { bytes = value }

  /// Units of 1,048,576 bytes.
  public static func mib(_ count: Double) -> ByteCount { scaled(count, shift: 20) }
  /// Units of 1,073,741,824 bytes.
  public static func gib(_ count: Double) -> ByteCount { scaled(count, shift: 30) }

  /// Too much for 64 bits, or no number, is -1: the library refuses it by name.
  private static func scaled(_ count: Double, shift: Int64) -> ByteCount {
    ByteCount(Int64(exactly: (count * Double(Int64(1) << shift)).rounded()) ?? -1)
  }
}

/// How files of experts are read.
public enum IOMode: Sendable, Hashable {
  /// Direct where the drive allows it.
  case automatic
  /// Past the page cache of the system.
  case direct
  /// Through the page cache of the system.
  case buffered

  var raw: RawIO {
    switch self {
    case .automatic: .auto
    case .direct: .direct
    case .buffered: .buffered
    }
  }
}

/// Which numbers matrices are multiplied in.
public enum Arithmetic: Sendable, Hashable {
  /// The quickest that keeps the accuracy of the format.
  case fast
  /// 32-bit floats over dequantised weights. In this version the same as `fast`.
  case exact

  var raw: RawArithmetic { self == .fast ? .fast : .exact }
}

/// A family of processor instructions.
public enum InstructionSet: Sendable, Hashable {
  /// The best that the machine has.
  case best
  /// None beyond the basic ones.
  case scalar
  /// Of x86-64.
  case avx2
  /// Of x86-64.
  case avx512
  /// Of arm64.
  case neon
  /// Of x86-64: AVX-512 with VBMI and VNNI.
  case avx512Vbmi

  var raw: RawISA {
    switch self {
    case .best: .best
    case .scalar: .scalar
    case .avx2: .avx2
    case .avx512: .avx512
    case .neon: .neon
    case .avx512Vbmi: .avx512Vbmi
    }
  }

  init?(_ raw: Int32) {
    switch RawISA(rawValue: raw) {
    case .best: self = .best
    case .scalar: self = .scalar
    case .avx2: self = .avx2
    case .avx512: self = .avx512
    case .neon: self = .neon
    case .avx512Vbmi: self = .avx512Vbmi
    case nil: return nil
    }
  }
}

/// How a model is opened.
public struct OpenOptions: Sendable, Hashable {
  /// RAM for everything of this model. nil: automatic, see `WasteModel.plan`.
  public var ramBudget: ByteCount?
  /// Positions a session may hold. nil: the model's maximum, at most 8192.
  public var contextTokens: Int?
  /// nil: one for each CPU of `cpuList`, or without it one for each core granted to this process
  /// that is not slow.
  public var threads: Int?
  /// How files of experts are read.
  public var io: IOMode
  /// Checks the checksum of every record that is read, not only of headers.
  public var verifiesReads: Bool
  /// Reads experts that the next layer is likely to need.
  public var looksAhead: Bool
  /// Which numbers matrices are multiplied in.
  public var arithmetic: Arithmetic
  /// One that the machine lacks is `WasteError.unsupported`.
  public var instructionSet: InstructionSet
  /// Experts read at once, at most 32. nil: 2, 4 or 8, as measured at open.
  public var readLanes: Int?
  /// The CPUs to compute on, as in "0-3,8"; Linux only. A thread that computes is put back where it
  /// was after each step. nil: where the system puts them, but on no slow CPU unless `threads` are
  /// asked for.
  public var cpuList: String?

  /// All fields have defaults that suit most machines.
  public init(
    ramBudget: ByteCount? = nil, contextTokens: Int? = nil, threads: Int? = nil,
    io: IOMode = .automatic, verifiesReads: Bool = false, looksAhead: Bool = true,
    arithmetic: Arithmetic = .fast, instructionSet: InstructionSet = .best, readLanes: Int? = nil,
    cpuList: String? = nil
  ) {
    self.ramBudget = ramBudget
    self.contextTokens = contextTokens
    self.threads = threads
    self.io = io
    self.verifiesReads = verifiesReads
    self.looksAhead = looksAhead
    self.arithmetic = arithmetic
    self.instructionSet = instructionSet
    self.readLanes = readLanes
    self.cpuList = cpuList
  }

  func raw() throws(WasteError) -> waste_open_options {
    var raw = waste_open_options.sized()
    raw.threads = try narrow(explicit(threads, "threads"), "threads")
    raw.budget_bytes = try explicit(ramBudget?.bytes, "ramBudget")
    raw.context = Int64(try explicit(contextTokens, "contextTokens"))
    raw.io = io.raw.rawValue
    raw.verify = verifiesReads ? 1 : 0
    raw.lookahead = looksAhead ? 1 : 2
    raw.arithmetic = arithmetic.raw.rawValue
    raw.isa = instructionSet.raw.rawValue
    raw.read_lanes = try narrow(explicit(readLanes, "readLanes"), "readLanes")
    if cpuList == "" { throw .argument("cpuList is empty; leave it out for the default") }
    if cpuList?.utf8.contains(0) == true { throw .argument("cpuList has a NUL") }
    return raw
  }

  /// `raw` with the list of CPUs, which lives as long as `body` runs.
  func use<Result>(
    _ raw: waste_open_options, _ body: (UnsafePointer<waste_open_options>) -> Result
  ) -> Result {
    guard let cpuList else { return withUnsafePointer(to: raw, body) }
    return cpuList.withCString { list in
      var raw = raw
      raw.cpu_list = list
      return withUnsafePointer(to: raw, body)
    }
  }
}

/// How a checkpoint is converted. nil leaves a number to the library.
public struct ConvertOptions: Sendable, Hashable {
  /// nil: the cores granted to this process.
  public var threads: Int?
  /// Codebooks in a row for experts: 2, 3, 4 or 6. nil: 3.
  public var stages: Int?
  /// Bits of an index: 8, or 6 for four stages of 64 entries. nil: 8.
  public var indexBits: Int?
  /// Bits of trunk matrices: 3, 4 or 8. nil: 4. Embedding and head have 8.
  public var trunkBits: Int?
  /// Search width of the expert encoder; 1 is greedy. nil: 16.
  public var expertBeam: Int?
  /// Trunk tensors with fewer elements stay 32-bit floats. nil: 65536.
  public var quantiseFrom: Int?

  /// All fields have the library's defaults.
  public init(
    threads: Int? = nil, stages: Int? = nil, indexBits: Int? = nil, trunkBits: Int? = nil,
    expertBeam: Int? = nil, quantiseFrom: Int? = nil
  ) {
    self.threads = threads
    self.stages = stages
    self.indexBits = indexBits
    self.trunkBits = trunkBits
    self.expertBeam = expertBeam
    self.quantiseFrom = quantiseFrom
  }

  func raw() throws(WasteError) -> waste_convert_options {
    var raw = waste_convert_options.sized()
    raw.threads = try narrow(explicit(threads, "threads"), "threads")
    raw.stages = try narrow(explicit(stages, "stages"), "stages")
    raw.index_bits = try narrow(explicit(indexBits, "indexBits"), "indexBits")
    raw.trunk_bits = try narrow(explicit(trunkBits, "trunkBits"), "trunkBits")
    raw.expert_beam = try narrow(explicit(expertBeam, "expertBeam"), "expertBeam")
    raw.quantise_from = Int64(try explicit(quantiseFrom, "quantiseFrom"))
    return raw
  }
}

/// How much of a shape is synthesized. nil leaves a number to the shape.
public struct SynthesisOptions: Sendable, Hashable {
  /// The first so many layers, at true width. nil: all.
  public var layers: Int?
  /// Experts of each layer. nil: all.
  public var experts: Int?
  /// Same seed, same bytes. 0 to 4,294,967,295.
  public var seed: Int64

  /// All fields have defaults: the whole shape.
  public init(layers: Int? = nil, experts: Int? = nil, seed: Int64 = 0) {
    self.layers = layers
    self.experts = experts
    self.seed = seed
  }

  func raw() throws(WasteError) -> waste_synthesis_options {
    var raw = waste_synthesis_options.sized()
    raw.layers = try narrow(explicit(layers, "layers"), "layers")
    raw.experts = try narrow(explicit(experts, "experts"), "experts")
    raw.seed = seed
    return raw
  }
}
