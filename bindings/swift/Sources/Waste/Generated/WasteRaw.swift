// SPDX-License-Identifier: Apache-2.0
//
// Written by bindings/swig/generate.sh from waste.i over waste.h (SWIG's parser and
// swiggen.py). Changes belong there.

import CWaste

enum RawStatus: Int32, Sendable, CaseIterable {
  case ok = 0
  case io = -1
  case format = -2
  case corrupt = -3
  case unsupported = -4
  case argument = -5
  case ramBudget = -6
  case noMemory = -7
  case contextFull = -8
  case busy = -9
  case cancelled = -10
  case version = -11
  case `internal` = -12
}

enum RawRole: Int32, Sendable, CaseIterable {
  case system = 0
  case user = 1
  case assistant = 2
}

enum RawChannel: Int32, Sendable, CaseIterable {
  case response = 0
  case thinking = 1
  case tool = 2
}

enum RawFinish: Int32, Sendable, CaseIterable {
  case none = 0
  case stop = 1
  case length = 2
  case cancelled = 3
}

enum RawIO: Int32, Sendable, CaseIterable {
  case auto = 0
  case direct = 1
  case buffered = 2
}

enum RawArithmetic: Int32, Sendable, CaseIterable {
  case fast = 0
  case exact = 1
}

enum RawISA: Int32, Sendable, CaseIterable {
  case best = 0
  case scalar = 1
  case avx2 = 2
  case avx512 = 3
  case neon = 4
  case avx512Vbmi = 5
}

enum RawConstant {
  static let abiVersion: Int32 = 0
  static let running: Int32 = 1
}

/// A struct of the header: its first field is its size, zero elsewhere the default.
protocol RawStruct {
  init()
  var struct_size: UInt32 { get set }
}

extension RawStruct {
  static func sized() -> Self {
    var made = Self()
    made.struct_size = UInt32(MemoryLayout<Self>.size)
    return made
  }
}

extension waste_error: RawStruct {}
extension waste_open_options: RawStruct {}
extension waste_session_options: RawStruct {}
extension waste_generation_options: RawStruct {}
extension waste_memory_plan: RawStruct {}
extension waste_info: RawStruct {}
extension waste_stats: RawStruct {}
extension waste_token: RawStruct {}
extension waste_convert_options: RawStruct {}
extension waste_progress: RawStruct {}
extension waste_synthesis_options: RawStruct {}

/// What waste_abi_sizes must answer: the sizes that this module was compiled with.
let rawStructSizes: [Int32] = [
  Int32(MemoryLayout<waste_error>.size),
  Int32(MemoryLayout<waste_open_options>.size),
  Int32(MemoryLayout<waste_session_options>.size),
  Int32(MemoryLayout<waste_generation_options>.size),
  Int32(MemoryLayout<waste_memory_plan>.size),
  Int32(MemoryLayout<waste_info>.size),
  Int32(MemoryLayout<waste_stats>.size),
  Int32(MemoryLayout<waste_token>.size),
  Int32(MemoryLayout<waste_convert_options>.size),
  Int32(MemoryLayout<waste_progress>.size),
  Int32(MemoryLayout<waste_synthesis_options>.size),
]

/// The functions of the header, in its order: an array and its count are one buffer.
enum Raw {
  static func abiVersion() -> Int32 { CWaste.waste_abi_version() }

  static func version(
    buffer: UnsafeMutableBufferPointer<CChar>
  ) -> Int64 {
    CWaste.waste_version(buffer.baseAddress, Int64(buffer.count))
  }

  static func abiSizes(
    sizes: UnsafeMutableBufferPointer<Int32>
  ) -> Int64 {
    CWaste.waste_abi_sizes(sizes.baseAddress, Int64(sizes.count))
  }

  static func free(
    _ object: UnsafeMutableRawPointer?
  ) {
    CWaste.waste_free(object)
  }

  static func cancel(
    _ object: UnsafeMutableRawPointer?
  ) {
    CWaste.waste_cancel(object)
  }

  static func plan(
    path: UnsafeBufferPointer<CChar>,
    options: UnsafePointer<waste_open_options>?,
    out: UnsafeMutablePointer<waste_memory_plan>?,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_plan(path.baseAddress, Int64(path.count), options, out, error)
  }

  static func open(
    path: UnsafeBufferPointer<CChar>,
    options: UnsafePointer<waste_open_options>?,
    out: UnsafeMutablePointer<OpaquePointer?>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_open(path.baseAddress, Int64(path.count), options, out, error)
  }

  static func openJob(
    path: UnsafeBufferPointer<CChar>,
    options: UnsafePointer<waste_open_options>?,
    out: UnsafeMutablePointer<OpaquePointer?>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_open_job(path.baseAddress, Int64(path.count), options, out, error)
  }

  static func jobModel(
    _ job: OpaquePointer?,
    out: UnsafeMutablePointer<OpaquePointer?>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_job_model(job, out, error)
  }

  static func modelInfo(
    _ model: OpaquePointer?,
    out: UnsafeMutablePointer<waste_info>?,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_model_info(model, out, error)
  }

  static func modelStats(
    _ model: OpaquePointer?,
    out: UnsafeMutablePointer<waste_stats>?,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_model_stats(model, out, error)
  }

  static func modelName(
    _ model: OpaquePointer?,
    buffer: UnsafeMutableBufferPointer<CChar>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> Int64 {
    CWaste.waste_model_name(model, buffer.baseAddress, Int64(buffer.count), error)
  }

  static func convert(
    source: UnsafeBufferPointer<CChar>,
    target: UnsafeBufferPointer<CChar>,
    options: UnsafePointer<waste_convert_options>?,
    out: UnsafeMutablePointer<OpaquePointer?>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_convert(source.baseAddress, Int64(source.count), target.baseAddress, Int64(target.count), options, out, error)
  }

  static func synthesize(
    shape: UnsafeBufferPointer<CChar>,
    target: UnsafeBufferPointer<CChar>,
    options: UnsafePointer<waste_synthesis_options>?,
    out: UnsafeMutablePointer<OpaquePointer?>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_synthesize(shape.baseAddress, Int64(shape.count), target.baseAddress, Int64(target.count), options, out, error)
  }

  static func verify(
    path: UnsafeBufferPointer<CChar>,
    out: UnsafeMutablePointer<OpaquePointer?>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_verify(path.baseAddress, Int64(path.count), out, error)
  }

  static func jobProgress(
    _ job: OpaquePointer?,
    out: UnsafeMutablePointer<waste_progress>?,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_job_progress(job, out, error)
  }

  static func jobWait(
    _ job: OpaquePointer?,
    timeout_ms: Int64,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_job_wait(job, timeout_ms, error)
  }

  static func logNext(
    _ object: UnsafeMutableRawPointer?,
    buffer: UnsafeMutableBufferPointer<CChar>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> Int64 {
    CWaste.waste_log_next(object, buffer.baseAddress, Int64(buffer.count), error)
  }

  static func tokenize(
    _ model: OpaquePointer?,
    text: UnsafeBufferPointer<CChar>,
    tokens: UnsafeMutableBufferPointer<Int32>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> Int64 {
    CWaste.waste_tokenize(model, text.baseAddress, Int64(text.count), tokens.baseAddress, Int64(tokens.count), error)
  }

  static func tokenizeMarkup(
    _ model: OpaquePointer?,
    text: UnsafeBufferPointer<CChar>,
    tokens: UnsafeMutableBufferPointer<Int32>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> Int64 {
    CWaste.waste_tokenize_markup(model, text.baseAddress, Int64(text.count), tokens.baseAddress, Int64(tokens.count), error)
  }

  static func detokenize(
    _ model: OpaquePointer?,
    tokens: UnsafeBufferPointer<Int32>,
    buffer: UnsafeMutableBufferPointer<CChar>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> Int64 {
    CWaste.waste_detokenize(model, tokens.baseAddress, Int64(tokens.count), buffer.baseAddress, Int64(buffer.count), error)
  }

  static func sessionCreate(
    _ model: OpaquePointer?,
    options: UnsafePointer<waste_session_options>?,
    out: UnsafeMutablePointer<OpaquePointer?>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_session_create(model, options, out, error)
  }

  static func sessionAddMessage(
    _ session: OpaquePointer?,
    role: Int32,
    text: UnsafeBufferPointer<CChar>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_session_add_message(session, role, text.baseAddress, Int64(text.count), error)
  }

  static func eval(
    _ session: OpaquePointer?,
    tokens: UnsafeBufferPointer<Int32>,
    logits: UnsafeMutableBufferPointer<Float>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> Int64 {
    CWaste.waste_eval(session, tokens.baseAddress, Int64(tokens.count), logits.baseAddress, Int64(logits.count), error)
  }

  static func sessionTokens(
    _ session: OpaquePointer?,
    tokens: UnsafeMutableBufferPointer<Int32>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> Int64 {
    CWaste.waste_session_tokens(session, tokens.baseAddress, Int64(tokens.count), error)
  }

  static func sessionReset(
    _ session: OpaquePointer?,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_session_reset(session, error)
  }

  static func sessionRewind(
    _ session: OpaquePointer?,
    position: Int64,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_session_rewind(session, position, error)
  }

  static func sessionFork(
    _ session: OpaquePointer?,
    out: UnsafeMutablePointer<OpaquePointer?>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_session_fork(session, out, error)
  }

  static func sessionSave(
    _ session: OpaquePointer?,
    path: UnsafeBufferPointer<CChar>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_session_save(session, path.baseAddress, Int64(path.count), error)
  }

  static func sessionLoad(
    _ session: OpaquePointer?,
    path: UnsafeBufferPointer<CChar>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_session_load(session, path.baseAddress, Int64(path.count), error)
  }

  static func sessionStats(
    _ session: OpaquePointer?,
    out: UnsafeMutablePointer<waste_stats>?,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_session_stats(session, out, error)
  }

  static func generate(
    _ session: OpaquePointer?,
    prompt: UnsafeBufferPointer<CChar>,
    options: UnsafePointer<waste_generation_options>?,
    out: UnsafeMutablePointer<OpaquePointer?>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_generate(session, prompt.baseAddress, Int64(prompt.count), options, out, error)
  }

  static func generationAddStop(
    _ generation: OpaquePointer?,
    text: UnsafeBufferPointer<CChar>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_generation_add_stop(generation, text.baseAddress, Int64(text.count), error)
  }

  static func generationAddStopToken(
    _ generation: OpaquePointer?,
    token: Int32,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_generation_add_stop_token(generation, token, error)
  }

  static func generationAddBias(
    _ generation: OpaquePointer?,
    token: Int32,
    bias: Double,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_generation_add_bias(generation, token, bias, error)
  }

  static func next(
    _ generation: OpaquePointer?,
    buffer: UnsafeMutableBufferPointer<CChar>,
    info: UnsafeMutablePointer<waste_token>?,
    error: UnsafeMutablePointer<waste_error>?
  ) -> Int64 {
    CWaste.waste_next(generation, buffer.baseAddress, Int64(buffer.count), info, error)
  }

  static func generationTokens(
    _ generation: OpaquePointer?,
    tokens: UnsafeMutableBufferPointer<Int32>,
    logprobs: UnsafeMutableBufferPointer<Double>,
    error: UnsafeMutablePointer<waste_error>?
  ) -> Int64 {
    CWaste.waste_generation_tokens(generation, tokens.baseAddress, Int64(tokens.count), logprobs.baseAddress, Int64(logprobs.count), error)
  }

  static func generationStats(
    _ generation: OpaquePointer?,
    out: UnsafeMutablePointer<waste_stats>?,
    error: UnsafeMutablePointer<waste_error>?
  ) -> waste_status {
    CWaste.waste_generation_stats(generation, out, error)
  }
}
