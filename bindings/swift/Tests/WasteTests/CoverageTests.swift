// SPDX-License-Identifier: Apache-2.0
//
// What the matrix does not ask for: facts, counters, options, tokenizer, jobs, errors.

import Foundation
import Testing
import Waste

extension AllTests {
  @Suite(.timeLimit(.minutes(2))) struct Coverage {
    @Test func libraryTellsItsVersion() throws {
      #expect(WasteLibrary.version.split(separator: ".").count == 3)
      #expect(WasteLibrary.abiVersion == 0)
      try WasteLibrary.check()
    }

    @Test func planAddsUp() throws {
      let plan = try WasteModel.plan(Place.mini, options: .init(contextTokens: 256))
      #expect(plan.fits && plan.trunkBytes > 0 && plan.stateBytes > 0 && plan.usableBytes > 0)
      #expect(
        plan.floorBytes
          == plan.trunkBytes + plan.stateBytes + plan.scratchBytes + plan.stagingBytes)
      #expect(plan.budgetBytes >= plan.floorBytes + plan.cacheBytes)
      #expect(plan.recommendedBytes > plan.floorBytes && plan.reservedBytes >= 0)
      #expect(throws: WasteError.self) { try WasteModel.plan(URL(fileURLWithPath: "none.waste")) }
    }

    @Test func infoAndStatisticsOfTheMini() async throws {
      let options = OpenOptions(
        ramBudget: .mib(64), contextTokens: 300, threads: 2, io: .buffered, verifiesReads: true,
        looksAhead: false, arithmetic: .exact, instructionSet: .scalar, readLanes: 3)
      let model = try await WasteModel.open(Place.mini, options: options)
      let info = try model.info
      #expect(info.name == "kimi-k3" && info.vocabularySize == 2048 && info.layerCount == 8)
      #expect(info.hiddenSize == 192 && info.expertCount == 32 && info.expertsPerToken == 4)
      #expect(info.contextTokens == 300 && info.budgetBytes == 64 << 20 && info.threads == 2)
      #expect(info.instructionSet == .scalar && !info.usesDirectIO && info.canThink && info.hasChat)
      #expect(info.endToken == 1986 && info.cacheSlots > 0 && info.expertBytes % 4096 == 0)
      #expect(info.containerBytes > 1 << 20 && info.readLanes == 3)
      // Three quarters of the mini's weights are experts, of which a token uses an eighth.
      #expect(info.tokenTrunkBytes > 1 << 19 && info.tokenTrunkBytes < info.containerBytes)
      #expect(info.tokenFlops > info.tokenTrunkBytes)
      let session = try model.makeSession()
      let stream = session.streamResponse(to: "What is the capital of Italy?")
      #expect(try stream.statistics == nil)
      let answer = try await stream.collect()
      #expect(answer.usage.generatedTokens == 15 && answer.usage.promptTokens == 28)
      #expect(answer.timings.prefill > .zero && answer.timings.decode > .zero)
      #expect(answer.statistics.position == 43)
      #expect(answer.statistics.expertsHit + answer.statistics.expertsMissed > 0)
      #expect(try stream.statistics == answer.statistics)
      let (ofSession, ofModel) = (try session.statistics, try model.statistics)
      #expect(ofSession.generatedTokens == 15 && ofModel.generatedTokens == 15)
      #expect(ofSession.memoryBytes > 0 && ofModel.memoryBytes > ofSession.memoryBytes)
      #expect(ofModel.peakResidentBytes > 1 << 20)
    }

    @Test(arguments: [true, false])
    func everyUseOfAnExpertIsCountedOnce(looksAhead: Bool) async throws {
      var options = OpenOptions(contextTokens: 256, looksAhead: looksAhead)
      // Then nothing fills the cache.
      let floor = try WasteModel.plan(Place.mini, options: options).floorBytes
      options.ramBudget = ByteCount(floor)
      let model = try await WasteModel.open(Place.mini, options: options)
      let session = try model.makeSession()
      for _ in 1...3 { try await session.eval([65]) }
      let (statistics, expertBytes) = (try model.statistics, try model.info.expertBytes)
      let missed = statistics.expertsMissed
      let unforeseen = missed - statistics.expertsForeseen
      #expect(statistics.expertsHit + missed == 3 * 7 * 4, "3 tokens, 7 layers with experts")
      #expect(statistics.expertsForeseen >= 0 && unforeseen > 0, "the first reads are not")
      #expect(statistics.speculativeBytes == Int64(statistics.speculativeReads) * expertBytes)
      let least = Int64(unforeseen) * expertBytes + statistics.speculativeBytes
      #expect(statistics.bytesRead >= least)
      #expect(statistics.readStalls > 0 || statistics.readTime == .zero)
      #expect(statistics.readStalls <= missed + statistics.speculativeReads)
      if !looksAhead {
        #expect(statistics.expertsForeseen == 0 && statistics.speculativeReads == 0)
      }
    }

    @Test func statisticsCanBeReadInTheMiddle() async throws {
      let session = try await openScript(endless).makeSession()
      let stream = session.streamResponse(to: "x")
      for try await piece in stream {
        let statistics = try #require(try stream.statistics)
        #expect(statistics.position == piece.position && piece.token == 256)
        #expect(stream.response == nil && session.isResponding)
        if piece.firstIndex == 5 { break }
      }
    }

    @Test func tokenizerAgreesWithItself() async throws {
      let tokenizer = try await WasteModel.open(Place.mini).tokenizer
      let text = "Grüße 你好 🐝\0 <|open|>"
      #expect(try tokenizer.decode(tokenizer.encode(text)) == text)
      #expect(try tokenizer.encode(utf8: Array(text.utf8)) == tokenizer.encode(text))
      #expect(try tokenizer.encodeMarkup("<|open|>") == [1987])
      let half = try tokenizer.encode("🐝").prefix(1)
      #expect(try tokenizer.decodeBytes(Array(half)).first == 0xF0)
      #expect(try tokenizer.decode(Array(half)).contains("\u{FFFD}"))
      #expect(try tokenizer.decodeBytes([]) == [])
      let long = String(repeating: "a long text of many words, ", count: 4000)
      #expect(try tokenizer.decode(tokenizer.encode(long)) == long)
      let error = #expect(throws: WasteError.self) { try tokenizer.decode([2048]) }
      #expect(error?.code == -5)
    }

    @Test func logprobsAreThoseOfThePieces() async throws {
      let session = try await WasteModel.open(Place.mini).makeSession()
      let options = GenerationOptions(includesLogprobs: true)
      let stream = session.streamResponse(to: "What is the capital of Italy?", options: options)
      var pieces: [Piece] = []
      for try await piece in stream { pieces.append(piece) }
      let response = try #require(stream.response)
      #expect(response.logprobs.count == response.tokens.count)
      #expect(response.logprobs.allSatisfy { $0 <= 0 })
      for piece in pieces where piece.tokenCount == 1 {
        #expect(response.logprobs[piece.firstIndex] == piece.logprob)
        #expect(response.tokens[piece.firstIndex] == piece.token)
      }
    }

    struct BadOption: Sendable, CustomTestStringConvertible {
      let testDescription: String
      let options: GenerationOptions
    }
    static let badOptions = [
      BadOption(testDescription: "max_tokens", options: .init(maximumResponseTokens: -1)),
      BadOption(testDescription: "maximumResponseTokens", options: .init(maximumResponseTokens: 0)),
      BadOption(
        testDescription: "maximumResponseTokens", options: .init(maximumResponseTokens: .max)),
      BadOption(testDescription: "temperature", options: .init(temperature: -1)),
      BadOption(testDescription: "temperature", options: .init(temperature: .nan)),
      BadOption(testDescription: "topP", options: .init(topP: 0)),
      BadOption(testDescription: "top_p", options: .init(topP: 2)),
      BadOption(testDescription: "stop", options: .init(stop: [""])),
      BadOption(testDescription: "token", options: .init(stopTokens: [99_999])),
      BadOption(testDescription: "token", options: .init(logitBias: [-1: 1])),
      BadOption(testDescription: "bias", options: .init(logitBias: [1: .nan])),
    ]

    @Test(arguments: badOptions) func badOptionsAreNamed(_ bad: BadOption) async throws {
      let session = try await openScript(endless).makeSession()
      let error = await #expect(throws: WasteError.self) {
        try await session.respond(to: "x", options: bad.options)
      }
      #expect(error?.code == -5 && error?.message.contains(bad.testDescription) == true)
      #expect(try session.position == 0 && !session.isResponding)
      let good = GenerationOptions(maximumResponseTokens: 1)
      #expect(try await session.respond(to: "x", options: good).content == "ha")
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/proc/self/status")))
    func cpuListsReachTheLibrary() async throws {
      let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
      let line = try #require(
        status.split(separator: "\n").first { $0.hasPrefix("Cpus_allowed_list:") })
      let first = try #require(line.split(whereSeparator: { !$0.isNumber }).first)
      let model = try await WasteModel.open(
        Place.mini, options: OpenOptions(cpuList: String(first)))
      #expect(try model.info.threads == 1)
      let answer = try await model.makeSession().respond(to: "What is the capital of Italy?")
      #expect(answer.content == "The capital of Italy is Rome.")
      #expect(throws: WasteError.self) {
        try WasteModel.plan(Place.mini, options: OpenOptions(cpuList: "\(first),"))
      }
    }

    @Test func badOpenOptionsAreNamed() async throws {
      for options in [
        OpenOptions(contextTokens: -1), OpenOptions(threads: -1), OpenOptions(threads: 1 << 40),
        OpenOptions(ramBudget: 0), OpenOptions(ramBudget: .gib(1e30)),
        OpenOptions(contextTokens: 0), OpenOptions(readLanes: 0), OpenOptions(readLanes: 33),
        OpenOptions(readLanes: -1), OpenOptions(readLanes: 1 << 40), OpenOptions(cpuList: "x"),
        OpenOptions(cpuList: ""), OpenOptions(cpuList: "8191"), OpenOptions(cpuList: "0\0"),
      ] {
        let error = await #expect(throws: WasteError.self) {
          try await WasteModel.open(Place.mini, options: options)
        }
        #expect(error?.code == -5, "\(options)")
      }
      #expect(ByteCount.gib(4).bytes == 4 << 30 && ByteCount.mib(0.5).bytes == 1 << 19)
    }

    @Test func errorsReadWell() async throws {
      let error = WasteError.ramBudget("needs more", neededBytes: 5)
      #expect(error.localizedDescription == "needs more" && "\(error)" == "needs more")
      #expect(error.neededBytes == 5 && error.code == -6 && WasteError.busy("").neededBytes == nil)
      let all: [WasteError] = [
        .io(""), .format(""), .corrupt(""), .unsupported(""), .argument(""), error, .noMemory(""),
        .contextFull(""), .busy(""), .cancelled(""), .version(""), .internal(""),
      ]
      #expect(all.map(\.code) == (1...12).map { -$0 })
    }

    @Test func openReportsProgressInTheCallersIsolation() async throws {
      let last = try await openOnMainActor()
      #expect(last?.isFinished == true && last?.fraction == 1)
      #expect((last?.total ?? 0) > 0)
    }

    @MainActor private func openOnMainActor() async throws -> WorkProgress? {
      var last: WorkProgress?
      let model = try await WasteModel.open(Place.mini) { progress in
        MainActor.assertIsolated()
        last = progress
      }
      await model.close()
      return last
    }

    @Test func verifyFindsAFlippedBit() async throws {
      let folder = try TemporaryFolder()
      let good = try WasteJob.verify(Place.mini)
      var last: WorkProgress?
      try await good.wait { last = $0 }
      #expect(last?.fraction == 1 && (last?.total ?? 0) > 1 << 20)
      #expect(try good.progress == last)
      #expect(try !good.takeLogLines().isEmpty)
      #expect(try good.takeLogLines() == [])
      try await good.wait()
      let copy = try folder.copyOfMini("flipped.waste")
      let bank = copy.appendingPathComponent("experts-L3.bin")
      var bytes = try Data(contentsOf: bank)
      bytes[5000] ^= 1
      try bytes.write(to: bank)
      let bad = try WasteJob.verify(copy)
      let error = await #expect(throws: WasteError.self) { try await bad.wait() }
      #expect(error?.code == -3 && error?.message.contains("experts-L3.bin") == true)
      await bad.close()
      let closed = #expect(throws: WasteError.self) { try bad.progress }
      #expect(closed?.code == 0)
    }

    @Test func conversionMakesAContainer() async throws {
      let folder = try TemporaryFolder()
      let source = folder.file("checkpoint")
      try TinyCheckpoint.write(to: source)
      let target = folder.file("tiny.waste")
      let job = try WasteJob.convert(source, to: target, options: .init(threads: 2, expertBeam: 1))
      try await job.wait()
      #expect(try job.takeLogLines().contains { $0.contains("experts: relative error") })
      let files = try FileManager.default.contentsOfDirectory(atPath: target.path)
      #expect(Set(["manifest.json", "trunk.bin", "experts-L1.bin"]).isSubset(of: files))
      let again = try WasteJob.convert(source, to: target)
      await #expect(throws: WasteError.self) { try await again.wait() }
      let odd = try WasteJob.convert(source, to: folder.file("b"), options: .init(stages: 5))
      let bad = await #expect(throws: WasteError.self) { try await odd.wait() }
      #expect(bad?.code == -5 && bad?.message.contains("stages") == true)
    }

    @Test func cancelledConversionLeavesNothing() async throws {
      let folder = try TemporaryFolder()
      let source = folder.file("checkpoint")
      try TinyCheckpoint.write(to: source, experts: 48)
      let target = folder.file("tiny.waste")
      let task = Task { try await WasteJob.convert(source, to: target).wait() }
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      #expect(!FileManager.default.fileExists(atPath: target.path))
      let job = try WasteJob.convert(source, to: target)
      job.cancel()
      job.cancel()
      await #expect(throws: CancellationError.self) { try await job.wait() }
    }

    @Test func synthesisMakesAContainer() async throws {
      let folder = try TemporaryFolder()
      let target = folder.file("made up.waste")
      let options = SynthesisOptions(layers: 3, experts: 8, seed: 7)
      let job = try WasteJob.synthesize("mini", to: target, options: options)
      var last: WorkProgress?
      try await job.wait { last = $0 }
      #expect(last?.isFinished == true && last?.fraction == 1 && (last?.total ?? 0) > 0)
      let model = try await WasteModel.open(target)
      let info = try model.info
      #expect(info.layerCount == 3 && info.expertCount == 8 && info.vocabularySize == 2048)
      #expect(info.tokenTrunkBytes > 0 && info.tokenFlops > 0)
      let raw = GenerationOptions(maximumResponseTokens: 5, isRaw: true)
      let first = try await model.makeSession().respond(to: "The capital", options: raw).tokens
      let second = try await model.makeSession().respond(to: "The capital", options: raw).tokens
      #expect(first == second && !first.isEmpty)
      try await WasteJob.verify(target).wait()
      let again = try WasteJob.synthesize("mini", to: target, options: options)
      let taken = await #expect(throws: WasteError.self) { try await again.wait() }
      #expect(taken?.code == -5 && taken?.message.contains("made up.waste") == true)
    }

    @Test func sameSeedSameBytes() async throws {
      let folder = try TemporaryFolder()
      func bank(_ name: String, seed: Int64) async throws -> Data {
        let target = folder.file(name)
        let options = SynthesisOptions(layers: 2, experts: 8, seed: seed)
        try await WasteJob.synthesize("mini", to: target, options: options).wait()
        return try Data(contentsOf: target.appendingPathComponent("experts-L1.bin"))
      }
      let first = try await bank("a", seed: 1)
      #expect(try await bank("b", seed: 1) == first)
      #expect(try await bank("c", seed: 2) != first)
    }

    @Test func badSynthesisIsNamed() throws {
      let folder = try TemporaryFolder()
      let target = folder.file("x.waste")
      for (shape, options, names) in [
        ("gpt", SynthesisOptions(), "gpt"), ("", SynthesisOptions(), "shape"),
        ("mini", SynthesisOptions(layers: 0), "layers"),
        ("mini", SynthesisOptions(layers: 1 << 40), "layers"),
        ("mini", SynthesisOptions(layers: 99), "layers"),
        ("mini", SynthesisOptions(experts: -1), "experts"),
        ("mini", SynthesisOptions(seed: -1), "seed"),
      ] {
        let error = #expect(throws: WasteError.self) {
          try WasteJob.synthesize(shape, to: target, options: options)
        }
        #expect(error?.code == -5, "\(shape) \(options): \(String(describing: error))")
        #expect(error?.message.contains(names) == true, "\(error?.message ?? "")")
      }
      #expect(!FileManager.default.fileExists(atPath: target.path))
    }

    @Test func cancelledSynthesisLeavesNothing() async throws {
      let folder = try TemporaryFolder()
      let target = folder.file("k3.waste")
      let task = Task {
        let options = SynthesisOptions(layers: 2, experts: 16)
        try await WasteJob.synthesize("k3", to: target, options: options).wait()
      }
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == [])
    }

    @Test func modelLogIsThere() async throws {
      #expect(try await openScript(endless).takeLogLines() == [])
    }
  }
}
