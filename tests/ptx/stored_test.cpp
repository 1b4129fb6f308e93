// PTX that nvcc 13.0 wrote for every target, kept in tests/ptx/stored so that no nvcc is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "ptx/parser.h"
#include "ptx/read_file.h"

namespace allranks::ptx {
namespace {

// What nvcc writes for a target. Where it writes the same for several but for the line of the
// target, the first one's is kept.
std::string Stored(const std::string& target) {
  static const std::map<std::string, std::string> same = {
      {"sm_80", "sm_75"}, {"sm_86", "sm_75"}, {"sm_89", "sm_75"}, {"sm_103", "sm_100"}};
  const auto other = same.find(target);
  const std::string& kept = other == same.end() ? target : other->second;
  std::string text = ReadFile(ALLRANKS_SOURCE_DIR "/tests/ptx/stored/exchange_" + kept + ".ptx");
  const std::string line = ".target " + kept + "\n";
  const std::size_t at = text.find(line);
  EXPECT_NE(at, std::string::npos);
  if (at != std::string::npos) text.replace(at, line.size(), ".target " + target + "\n");
  return text;
}

class StoredTest : public testing::TestWithParam<std::string> {};

TEST_P(StoredTest, IsReadWhole) {
  const Result<Module> module = Parse(Stored(GetParam()));
  ASSERT_TRUE(module.has_value()) << module.error().message;
  EXPECT_EQ(module->version_major, 9);
  EXPECT_EQ(module->target, GetParam());
  EXPECT_EQ(module->address_size, 64);

  const Function* exchange = module->FindFunction("_Z8ExchangeP6float4PKS_Pii");
  ASSERT_NE(exchange, nullptr);
  EXPECT_TRUE(exchange->is_entry && exchange->is_visible && exchange->has_body);
  ASSERT_EQ(exchange->params.size(), 4u);
  EXPECT_EQ(exchange->params[3].size, 4u);
  EXPECT_EQ(exchange->limits.max_threads[0], 256u);
  const auto partial =
      std::find_if(exchange->variables.begin(), exchange->variables.end(),
                   [](const Variable& variable) { return variable.space == Space::kShared; });
  ASSERT_NE(partial, exchange->variables.end());
  EXPECT_EQ(partial->size, 1024u);

  const Function* weigh = module->FindFunction("_Z5Weighfi");
  ASSERT_NE(weigh, nullptr);
  EXPECT_FALSE(weigh->is_entry);
  EXPECT_EQ(weigh->results.size(), 1u);

  const Variable* scale = module->FindVariable("scale");
  ASSERT_NE(scale, nullptr);
  EXPECT_EQ(scale->space, Space::kConst);
  EXPECT_EQ(scale->init, (std::vector<std::uint8_t>{0, 0, 0, 0x3f, 0, 0, 0, 0x40}));
  const Variable* address = module->FindVariable("epoch_address");
  ASSERT_NE(address, nullptr);
  ASSERT_EQ(address->refs.size(), 1u);
  EXPECT_EQ(address->refs[0].symbol, "epoch");
  EXPECT_TRUE(address->refs[0].generic);
}

TEST_P(StoredTest, KnowsTheSourceLines) {
  const Result<Module> module = Parse(Stored(GetParam()));
  ASSERT_TRUE(module.has_value()) << module.error().message;
  const Function* exchange = module->FindFunction("_Z8ExchangeP6float4PKS_Pii");
  ASSERT_NE(exchange, nullptr);
  int acquires = 0;
  for (const Instruction& instruction : exchange->code) {
    if (instruction.Form() != "ld.acquire.sys.global.u32") continue;
    ++acquires;
    ASSERT_GE(instruction.loc.file, 0);
    EXPECT_EQ(module->files[static_cast<std::size_t>(instruction.loc.file)], "exchange.cu");
    EXPECT_EQ(instruction.loc.line, 29) << "nvcc gives the last line of an asm statement";
    EXPECT_EQ(instruction.loc.inlined_at, -1);
  }
  EXPECT_EQ(acquires, 1);

  // grid.sync() is inlined from headers; its outermost call site is in the source.
  const Function* together = module->FindFunction("_Z8TogetherPi");
  ASSERT_NE(together, nullptr);
  std::set<std::string_view> inlined;
  for (const Instruction& instruction : together->code) {
    SourceLoc loc = instruction.loc;
    while (loc.inlined_at >= 0) {
      const InlineSite& site = module->inline_sites[static_cast<std::size_t>(loc.inlined_at)];
      EXPECT_LT(site.call.inlined_at, loc.inlined_at);
      inlined.insert(site.function);
      loc = site.call;
    }
    ASSERT_GE(loc.file, 0);
    EXPECT_EQ(module->files[static_cast<std::size_t>(loc.file)], "exchange.cu");
  }
  EXPECT_TRUE(inlined.contains("_ZNK18cooperative_groups4__v110grid_group4syncEv"));
}

INSTANTIATE_TEST_SUITE_P(Ptx, StoredTest,
                         testing::Values("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a",
                                         "sm_100", "sm_100a", "sm_103"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace allranks::ptx
