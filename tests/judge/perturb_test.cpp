// Perturbed profiles: what is scaled and by how much, that nothing else changes, and that they are
// profiles that a node reads.
#include "judge/perturb.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "node/hardware/profile.h"
#include "node/hardware/profile_file.h"

namespace allranks::judge {
namespace {

// Every number by its path.
void Numbers(const toml::node& node, const std::string& path, std::map<std::string, double>* to) {
  if (const auto* table = node.as_table()) {
    for (const auto& [key, below] : *table) Numbers(below, path + "." + std::string(key.str()), to);
  } else if (const auto* list = node.as_array()) {
    for (std::size_t i = 0; i < list->size(); ++i)
      Numbers(*list->get(i), path + "." + std::to_string(i), to);
  } else if (node.is_number()) {
    (*to)[path] = *node.value<double>();
  }
}

// By the last two parts of a path; "*": any.
bool MayChange(const std::string& path) {
  static const std::set<std::string> exact = {
      ".latency.l2",           ".latency.hbm",         ".latency.atomic",
      ".latency.fence_cta",    ".latency.fence_gpu",   ".latency.fence_sys",
      ".bandwidth.hbm_gbs",    ".bandwidth.l2_gbs",    ".bandwidth.sm_l2_gbs",
      ".multicast.efficiency", ".multicast.reduce_ns", ".copy_engine.startup_ns",
      ".copy_engine.gbs",      ".host.poll_ns",
  };
  const bool link =
      path.starts_with(".links.") && (path.ends_with(".gbs") || path.ends_with(".latency_ns"));
  return link || path.starts_with(".launch.") || exact.contains(path);
}

TEST(PerturbTest, ScalesWhatDecidesCommunicationAndNothingElse) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ALLRANKS_SOURCE_DIR "/profiles")) {
    if (entry.path().extension() != ".toml") continue;
    ++files;
    const std::string path = entry.path().string();
    const auto original = node::ReadProfileFile(path);
    ASSERT_TRUE(original) << original.error().message;
    std::map<std::string, double> before;
    Numbers(*original, "", &before);
    for (const int number : {0, 1, 63}) {
      const auto text = PerturbedProfile(path, number);
      ASSERT_TRUE(text) << text.error().message;
      EXPECT_EQ(*text, *PerturbedProfile(path, number));
      const auto read = node::ParseProfile(*text, "perturbed");
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(read->name, entry.path().stem().string());
      const auto changed = node::ParseToml(*text, "perturbed");
      ASSERT_TRUE(changed) << changed.error().message;
      std::map<std::string, double> after;
      Numbers(*changed, "", &after);
      ASSERT_EQ(before.size(), after.size());
      for (const auto& [key, value] : before) {
        SCOPED_TRACE(path + key);
        if (!MayChange(key)) {
          EXPECT_EQ(after[key], value);
        } else if (value != 0) {
          EXPECT_LE(after[key], value * 1.15 * (1 + 1e-12));
          EXPECT_GE(after[key], value / 1.15 * (1 - 1e-12));
          // Whole cycles: a small number of them has no other within the bounds.
          EXPECT_TRUE(after[key] != value || value < 20) << value;
        }
      }
    }
    EXPECT_NE(*PerturbedProfile(path, 0), *PerturbedProfile(path, 1));
  }
  EXPECT_GT(files, 3);
}

TEST(PerturbTest, FactorsFillTheirRangeEvenly) {
  constexpr int kDraws = 4000;
  int quarters[4] = {};
  for (int i = 0; i < kDraws; ++i) {
    const double factor = FactorOf("links.nvlink", "gbs", i);
    ASSERT_GE(factor, 1 / 1.15);
    ASSERT_LE(factor, 1.15);
    const double at = (std::log(factor) / std::log(1.15) + 1) / 2;  // log-uniform: even in [0, 1]
    ++quarters[std::min(3, static_cast<int>(at * 4))];
  }
  // 1000 each, with a deviation of 27.
  for (const int count : quarters) EXPECT_NEAR(count, kDraws / 4, 140);
  EXPECT_NE(FactorOf("links.nvlink", "gbs", 0), FactorOf("links.pcie", "gbs", 0));
}

}  // namespace
}  // namespace allranks::judge
