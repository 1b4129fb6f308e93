// Events as the standard has them (WHATWG HTML, 9.2.6), cut at every place.
#include "model/sse.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace allranks::model {
namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

Events Parse(const std::vector<std::string>& pieces) {
  Events events;
  SseParser parser([&](const SseParser::Event& e) { events.emplace_back(e.name, e.data); });
  for (const std::string& piece : pieces) parser.Feed(piece);
  parser.Finish();
  return events;
}

TEST(Sse, NamesDataAndComments) {
  EXPECT_EQ(Parse({": hello\n\nevent: a\ndata: 1\nid: 7\nretry: 10\n\ndata:2\n\n"}),
            (Events{{"a", "1"}, {"", "2"}}));
}

TEST(Sse, DataLinesAreJoined) {
  EXPECT_EQ(Parse({"data: a\ndata:  b\ndata\n\n"}), (Events{{"", "a\n b\n"}}));
}

TEST(Sse, AnEventWithoutDataIsNone) {
  EXPECT_EQ(Parse({"event: ping\n\ndata: x\n\n"}), (Events{{"", "x"}}));
}

TEST(Sse, ByteOrderMarkAndUnknownFields) {
  EXPECT_EQ(Parse({"\xEF\xBB\xBF"
                   "data: x\nfoo: bar\n\n"}),
            (Events{{"", "x"}}));
}

TEST(Sse, TheLastNewlineMayBeMissing) {
  EXPECT_EQ(Parse({"data: x"}), (Events{{"", "x"}}));
  EXPECT_EQ(Parse({"data: x\n"}), (Events{{"", "x"}}));
}

TEST(Sse, EveryLineEndCutAnywhere) {
  const std::vector<std::string> lines = {"event: e1", "data: \xC3\xA9\xF0\x9F\x98\x80",
                                          "",          ": c",
                                          "data: two", "data: lines",
                                          "",          "data: [DONE]",
                                          ""};
  const Events expected = {{"e1", "\xC3\xA9\xF0\x9F\x98\x80"}, {"", "two\nlines"}, {"", "[DONE]"}};
  std::mt19937 random(1);
  for (const std::string end : {"\n", "\r", "\r\n"}) {
    std::string whole;
    for (const std::string& line : lines) whole += line + end;
    for (std::size_t cut = 0; cut <= whole.size(); ++cut)
      ASSERT_EQ(Parse({whole.substr(0, cut), "", whole.substr(cut)}), expected) << cut;
    std::vector<std::string> bytes;
    for (const char c : whole) bytes.emplace_back(1, c);
    EXPECT_EQ(Parse(bytes), expected);
    for (int i = 0; i < 50; ++i) {
      std::vector<std::string> pieces;
      for (std::size_t at = 0; at < whole.size();) {
        const std::size_t size = random() % 7;
        pieces.push_back(whole.substr(at, size));
        at += size;
      }
      ASSERT_EQ(Parse(pieces), expected);
    }
  }
}

}  // namespace
}  // namespace allranks::model
