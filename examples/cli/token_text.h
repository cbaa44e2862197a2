// SPDX-License-Identifier: Apache-2.0
//
// Text to tokens and back through the library, and the input that commands take from an argument,
// a file or stdin.

#ifndef WASTE_EXAMPLES_CLI_TOKEN_TEXT_H_
#define WASTE_EXAMPLES_CLI_TOKEN_TEXT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "handle.h"

namespace waste_cli {

// Token ids of `text`; with `markup` special tokens in it mean themselves.
std::vector<int32_t> Tokenize(const Model& model, const std::string& text, bool markup);

// The bytes of the tokens, which may be no whole UTF-8.
std::string Detokenize(const Model& model, std::span<const int32_t> tokens);

// One token for a table: in quotes, with newlines and bytes that are no text escaped.
std::string QuotedTokenText(const Model& model, int32_t token);

// Everything that stdin holds.
std::string ReadStdin();

// All bytes of a file; "-" is stdin. Throws an IO Failure that names it.
std::string ReadFile(const std::string& path);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_TOKEN_TEXT_H_
