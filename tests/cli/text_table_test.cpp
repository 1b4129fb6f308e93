// Tables of --stats: nothing is wider than a line, and what is shortened keeps both ends.
#include "cli/text_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "cli/stats.h"

namespace allranks::cli {
namespace {

using nlohmann::json;

std::size_t Widest(const std::string& text) {
  std::size_t most = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) most = std::max(most, WidthOf(line));
  return most;
}

TEST(TextTable, LongTextsLoseTheirMiddle) {
  EXPECT_EQ(Shortened("abcdefghijklmnop", 16), "abcdefghijklmnop");
  EXPECT_EQ(Shortened("abcdefghijklmnop", 12), "abcdef...nop");
  EXPECT_EQ(Shortened("äöüäöüäöüäöüäöü", 12), "äöüäöü...äöü");
  EXPECT_EQ(Shortened("a\033[2J\n", 12), "a?[2J?") << "a program's words do nothing to a terminal";
  const std::string name = "void (anonymous namespace)::Add<(anonymous namespace)::T>(int)";
  EXPECT_EQ(ShortenedName(name, 100), name);
  EXPECT_EQ(ShortenedName(name, 20), "void Add<T>(int)");
  EXPECT_EQ(ShortenedName("space::AddOne(unsigned int*, int)", 22), "space::AddOne(... int)")
      << "the function's name stays whole as long as it can";
}

TEST(TextTable, WordsAreWrappedAtSpaces) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "word" + std::to_string(i) + " ";
  const std::string wrapped = Wrapped(text, 4);
  EXPECT_LE(Widest(wrapped), kTextWidth);
  EXPECT_NE(wrapped.find("\n    word"), std::string::npos);
  EXPECT_LE(Widest(Wrapped(std::string(500, 'x'), 4)), kTextWidth);
}

TEST(TextTable, BytesHaveUnits) {
  EXPECT_EQ(Bytes(0), "0 B");
  EXPECT_EQ(Bytes(999), "999 B");
  EXPECT_EQ(Bytes(1000), "1.0 kB");
  EXPECT_EQ(Bytes(999'949), "999.9 kB");
  EXPECT_EQ(Bytes(999'950), "1.0 MB");
  EXPECT_EQ(Bytes(18'446'744'073'709'551'615u), "18.4 EB");
}

TEST(TextTable, OneColumnGivesWayToTheOthers) {
  TextTable table({{"n"}, {"name", TextTable::Align::kLeft, true}, {"m"}});
  table.Add({"1", std::string(300, 'a') + "end", "22"});
  const std::string text = table.Text();
  EXPECT_EQ(Widest(text), kTextWidth);
  EXPECT_NE(text.find("end 22\n"), std::string::npos) << text;
}

// A run with the largest figures that fit into their types, and names without end.
json Extreme() {
  const std::string name = "void f<" + std::string(2000, 'x') + ">(int)";
  const std::uint64_t most = ~std::uint64_t{0};
  const std::int64_t longest = 9'223'372'036'854'775;
  json movers = json::object(), bytes = json::object();
  for (const char* mover : {"sm", "tma", "copy_engine", "multicast", "nic"}) {
    movers[mover] = {
        {"bytes", most}, {"link_bytes", most}, {"wire_bytes", most}, {"efficiency", 0.5}};
    bytes[mover] = most;
  }
  const json direction = {
      {"from", "node15.gpu127"}, {"to", "node15.nvswitch"}, {"bytes", bytes}, {"wire_bytes", most},
      {"poll_bytes", most},      {"efficiency", 1.0},       {"use", 1.0},     {"busy_use", 1.0}};
  const json kernel = {{"name", name},
                       {"rank", 1023},
                       {"device", 127},
                       {"grid", {2'147'483'647, 65'535, 65'535}},
                       {"block", {1024, 1024, 64}},
                       {"start_ns", longest},
                       {"end_ns", nullptr},
                       {"thread_instructions", most / 1000},
                       {"bytes_read", most / 1000},
                       {"bytes_written", most / 1000}};
  const json by_name = {{"name", name},          {"calls", 65536},       {"unfinished", 1},
                        {"total_ns", longest},   {"median_ns", longest}, {"bytes_read", most},
                        {"bytes_written", most}, {"remote_bytes", most}, {"link_share", 1.0},
                        {"hbm_share", nullptr}};
  return {{"virtual_ns", longest},
          {"profile", "h100x8"},
          {"deterministic", false},
          {"nondeterministic_because", {std::string(50, 'y') + " " + std::string(100, 'z')}},
          {"ptx_above_device", 120},
          {"warp_instructions", most},
          {"thread_instructions", most},
          {"copies", {{"count", most}, {"bytes", most}}},
          {"by_kernel", {by_name}},
          {"ranges",
           {{{"domain", "NCCL"},
             {"name", std::string(400, 'r')},
             {"calls", most},
             {"total_ns", longest},
             {"longest_ns", longest}}}},
          {"kernels", json(100, kernel)},
          {"links", {{{"directions", {direction, direction}}}}},
          {"movers", movers},
          {"faults", {{{"device", 3}, {"message", "kernel " + name + " fails at some place"}}}}};
}

TEST(Stats, EveryLineFits) {
  const std::string text = StatsTable(Extreme().dump());
  EXPECT_LE(Widest(text), kTextWidth) << text;
  EXPECT_NE(text.find("and 60 more\n"), std::string::npos);
  EXPECT_NE(text.find("* void f<"), std::string::npos) << "one did not end";
  EXPECT_NE(text.find(">(int)\n"), std::string::npos);
}

TEST(Stats, TheSummaryComesFirst) {
  const std::string text = StatsTable(Extreme().dump());
  EXPECT_EQ(text.find("calls"), text.find_first_not_of(' ')) << text;
  EXPECT_LT(text.find("median us"), text.find("NCCL: rrr"));
  EXPECT_LT(text.find("NCCL: rrr"), text.find("us of virtual time on h100x8"));
  EXPECT_LT(text.find("us of virtual time"), text.find("thread instr "));
}

}  // namespace
}  // namespace allranks::cli
