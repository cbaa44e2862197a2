// SPDX-License-Identifier: Apache-2.0
//
// Text to token ids and back. Short calls that any thread may make at any time.

import CWaste

/// A model's tokenizer. Keeps the model alive.
public struct Tokenizer: Sendable {
  let model: WasteModel

  /// Plain text to ids; special tokens in it are text. Throws `closed`.
  public func encode(_ text: String) throws(WasteError) -> [TokenID] {
    let owner = try model.owner.enter()
    return try fetchArray(guess: text.utf8.count + 1) { tokens, error in
      withText(text) { text in
        owner.use { Raw.tokenize($0, text: text, tokens: tokens, error: error) }
      }
    }
  }

  /// The same from bytes. Throws `argument` with the offset if they are not UTF-8.
  public func encode(utf8 bytes: [UInt8]) throws(WasteError) -> [TokenID] {
    let owner = try model.owner.enter()
    return try fetchArray(guess: bytes.count + 1) { tokens, error in
      bytes.withUnsafeBufferPointer { bytes in
        withBytes(bytes) { text in
          owner.use { Raw.tokenize($0, text: text, tokens: tokens, error: error) }
        }
      }
    }
  }

  /// Text in which special tokens ("<|open|>") mean themselves. Never for text of a user.
  public func encodeMarkup(_ text: String) throws(WasteError) -> [TokenID] {
    let owner = try model.owner.enter()
    return try fetchArray(guess: text.utf8.count + 1) { tokens, error in
      withText(text) { text in
        owner.use { Raw.tokenizeMarkup($0, text: text, tokens: tokens, error: error) }
      }
    }
  }

  /// The bytes of the tokens, special ones as their text. They may be no whole UTF-8.
  /// Throws `argument` for a token outside the vocabulary.
  public func decodeBytes(_ tokens: [TokenID]) throws(WasteError) -> [UInt8] {
    let owner = try model.owner.enter()
    return try fetchArray(guess: tokens.count * 8 + 16) { (bytes, error) -> Int64 in
      bytes.withMemoryRebound(to: CChar.self) { buffer in
        tokens.withUnsafeBufferPointer { tokens in
          owner.use { Raw.detokenize($0, tokens: tokens, buffer: buffer, error: error) }
        }
      }
    } as [UInt8]
  }

  /// The text of the tokens; bytes that are no character become U+FFFD.
  public func decode(_ tokens: [TokenID]) throws(WasteError) -> String {
    String(decoding: try decodeBytes(tokens), as: UTF8.self)
  }
}
