// SPDX-License-Identifier: Apache-2.0
//
// A small checkpoint in the layout of a Hugging Face release, for tests of conversion: config.json,
// model.safetensors, a rank file of single bytes. The numbers are arbitrary, the sizes awkward.

import Foundation

enum TinyCheckpoint {
  private static let hidden = 40, vocabulary = 300, inner = 24

  static func write(to folder: URL, experts: Int = 3) throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    func save(_ name: String, _ data: Data) throws {
      try data.write(to: folder.appendingPathComponent(name))
    }
    try save("config.json", JSONSerialization.data(withJSONObject: config(experts)))
    try save("tiktoken.model", Data(rankFile.utf8))
    let end = ["260": ["content": "[EOS]", "special": true] as [String: Any]]
    try save(
      "tokenizer_config.json", JSONSerialization.data(withJSONObject: ["added_tokens_decoder": end])
    )
    try save("model.safetensors", safetensors(experts))
  }

  private static func config(_ experts: Int) -> [String: Any] {
    [
      "architectures": ["KimiLinearForCausalLM"], "model_type": "kimi_linear",
      "vocab_size": vocabulary, "hidden_size": hidden, "num_hidden_layers": 2,
      "num_attention_heads": 2, "intermediate_size": 48, "first_k_dense_replace": 1,
      "kv_lora_rank": 16, "q_lora_rank": NSNull(), "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
      "v_head_dim": 8, "mla_use_nope": true, "num_experts_per_token": 2,
      "moe_intermediate_size": inner, "num_shared_experts": 1,
      "moe_router_activation_func": "sigmoid", "routed_scaling_factor": 1.5, "rms_norm_eps": 1e-5,
      "eos_token_id": 260, "num_experts": experts, "moe_renormalize": true, "hidden_act": "silu",
      "linear_attn_config": [
        "num_heads": 2, "head_dim": 8, "short_conv_kernel_size": 4, "kda_layers": [1],
        "full_attn_layers": [2],
      ] as [String: Any],
    ]
  }

  private static var rankFile: String {
    (0..<256).map { "\(Data([UInt8($0)]).base64EncodedString()) \($0)\n" }.joined()
  }

  private static func shapes(_ experts: Int) -> [(String, [Int])] {
    let moe = "model.layers.1.block_sparse_moe."
    var all = [
      ("model.embed_tokens.weight", [vocabulary, hidden]), ("model.norm.weight", [hidden]),
      ("lm_head.weight", [vocabulary, hidden]),
      ("model.layers.0.self_attn.q_conv1d.weight", [16, 1, 4]),
      ("model.layers.0.self_attn.A_log", [1, 1, 2, 1]),
      ("model.layers.0.mlp.gate_proj.weight", [48, hidden]),
      ("model.layers.1.self_attn.o_proj.weight", [hidden, 16]),
      (moe + "gate.weight", [experts, hidden]),
      (moe + "shared_experts.up_proj.weight", [inner, hidden]),
    ]
    for expert in 0..<experts {
      all.append((moe + "experts.\(expert).w1.weight", [inner, hidden]))
      all.append((moe + "experts.\(expert).w3.weight", [inner, hidden]))
      all.append((moe + "experts.\(expert).w2.weight", [hidden, inner]))
    }
    return all
  }

  private static func safetensors(_ experts: Int) throws -> Data {
    var header: [String: Any] = [:]
    var values = Data()
    for (name, shape) in shapes(experts) {
      let begin = values.count
      for index in 0..<shape.reduce(1, *) {
        let value = Float((index * 2_654_435_761 + name.utf8.count) % 2001 - 1000) / 10_000
        withUnsafeBytes(of: value.bitPattern.littleEndian) { values.append(contentsOf: $0) }
      }
      header[name] = ["dtype": "F32", "shape": shape, "data_offsets": [begin, values.count]]
    }
    let text = try JSONSerialization.data(withJSONObject: header)
    var file = withUnsafeBytes(of: UInt64(text.count).littleEndian) { Data($0) }
    file.append(text)
    file.append(values)
    return file
  }
}
