// SPDX-License-Identifier: Apache-2.0
//
// chat.json: how a conversation is written for the families that this version converts, as a table
// of texts in which special tokens mean themselves (docs/format.md, "Side files"). K3's own markup
// is built segment by segment by readers that know it; its table serves the others. Pure functions.

#ifndef WASTE_CORE_CONVERT_CHAT_TABLE_H_
#define WASTE_CORE_CONVERT_CHAT_TABLE_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tokenizer/tokenizer.h"

namespace waste {

// Nothing for a family without a known table, or a tokenizer that lacks its special tokens.
std::optional<nlohmann::ordered_json> MakeChatTable(const std::string& arch,
                                                    const Tokenizer& tokenizer);

}  // namespace waste

#endif  // WASTE_CORE_CONVERT_CHAT_TABLE_H_
