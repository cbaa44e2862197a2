// SPDX-License-Identifier: Apache-2.0

#include "tokenizer/rank_file.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>

#include "support/small_tokenizer.h"
#include "tokenizer/rank_table.h"

namespace waste {
namespace {

Result<RankedTokens> Parse(const std::string& file) { return ParseRankFile(BytesOf(file), "f"); }

std::string Error(const std::string& file) {
  const auto tokens = Parse(file);
  if (tokens.ok()) return "accepted";
  BOOST_CHECK(tokens.status().code() == Code::kFormat);
  return tokens.status().message();
}

BOOST_AUTO_TEST_SUITE(rank_file)

BOOST_AUTO_TEST_CASE(tokens_are_found_by_rank) {
  const auto tokens = Parse(RankFile({"ab", "abc", "abcd", std::string("\0\xFF", 2)}));
  BOOST_REQUIRE(tokens.ok());
  BOOST_TEST(tokens->places.size() == 260u);
  BOOST_TEST(tokens->Bytes(10) == "\n");
  BOOST_TEST(tokens->Bytes(256) == "ab");
  BOOST_TEST(tokens->Bytes(257) == "abc");
  BOOST_TEST(tokens->Bytes(258) == "abcd");
  BOOST_TEST(tokens->Bytes(259) == std::string_view("\0\xFF", 2));
}

BOOST_AUTO_TEST_CASE(order_blank_lines_and_crlf_do_not_matter) {
  std::string file = "YWI= 256\r\n\n\r\n" + RankFile({});
  const auto tokens = Parse(file);
  BOOST_REQUIRE(tokens.ok());
  BOOST_TEST(tokens->Bytes(256) == "ab");
  file.pop_back();  // the last line's end
  BOOST_TEST(Parse(file).ok());
}

BOOST_AUTO_TEST_CASE(lines_that_are_no_rank_are_refused_by_number) {
  const std::string kNoBase64 = "f, line 257: the token is no base64";
  const std::string kNoRank = "f, line 257: the rank is no number of 32 bits";
  const struct {
    std::string line;
    std::string message;
  } kCases[] = {
      {"YWI=", "f, line 257: no rank; a line is a token in base64, a space, its rank"},
      {" 256", kNoBase64},
      {"YWI 256", kNoBase64},
      {"YW=I 256", kNoBase64},
      {"YQ== = 256", kNoRank},
      {"==== 256", kNoBase64},
      {"Y=== 256", kNoBase64},
      {"YWJ= 256", kNoBase64},  // bits beyond the last byte
      {"YX== 256", kNoBase64},
      {"Y-I= 256", kNoBase64},
      {"YWI=\t256", "f, line 257: no rank; a line is a token in base64, a space, its rank"},
      {"YWI= ", kNoRank},
      {"YWI= -1", kNoRank},
      {"YWI= +256", kNoRank},
      {"YWI=  256", kNoRank},
      {"YWI= 256 ", kNoRank},
      {"YWI= 0x100", kNoRank},
      {"YWI= 2147483648", kNoRank},
      {"YWI= 99999999999999999999", kNoRank},
      {"YWI= 257",
       "f, line 257: rank 257 in a file of 257 tokens; the ranks must be 0, 1, 2 and so on without "
       "a gap"},
      {"YWI= 255", "f, line 257: rank 255 for the second time"},
  };
  for (const auto& c : kCases) BOOST_TEST(Error(RankFile({}) + c.line + "\n") == c.message);
}

BOOST_AUTO_TEST_CASE(missing_single_byte_is_refused) {
  BOOST_TEST(Error("") == "f: no token for the single byte 0; some text would have no tokens");
  std::string file = RankFile({});
  file.replace(file.find("Cg== 10\n"), 8, "CgA= 10\n");
  BOOST_TEST(Error(file) == "f: no token for the single byte 10; some text would have no tokens");
}

BOOST_AUTO_TEST_CASE(token_twice_is_refused) {
  auto tokens = Parse(RankFile({"ab", "cd", "ab"}));
  BOOST_REQUIRE(tokens.ok());
  const auto table = RankTable::Create(*std::move(tokens), "f");
  BOOST_REQUIRE(!table.ok());
  BOOST_CHECK(table.status().code() == Code::kFormat);
  BOOST_TEST(table.status().message() == "f: ranks 256 and 258 are the same token");
}

BOOST_AUTO_TEST_CASE(table_finds_every_token_and_nothing_else) {
  std::vector<std::string> merged;
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    std::string token(2 + random() % 20, '\0');
    for (char& c : token) c = static_cast<char>(random());
    merged.push_back(token);
  }
  std::sort(merged.begin(), merged.end());
  merged.erase(std::unique(merged.begin(), merged.end()), merged.end());
  const auto table = RankTable::Create(*Parse(RankFile(merged)), "f");
  BOOST_REQUIRE(table.ok());
  for (int32_t rank = 0; rank < table->size(); ++rank)
    BOOST_TEST(table->Find(table->Bytes(rank)) == rank);
  for (const std::string& token : merged) BOOST_TEST(table->Find(token + "x") < 0);
  BOOST_TEST(table->Find("") == -1);
  BOOST_TEST(table->Find(std::string(1000, 'x')) == -1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
