// A problem on a machine, and how hard it is.
#include "problem/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "problem/level.h"

namespace allranks::problem {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

node::Profile Machine(const std::string& name) {
  auto profile = node::LoadProfile(ALLRANKS_SOURCE_DIR "/profiles/" + name + ".toml");
  EXPECT_TRUE(profile) << profile.error().message;
  return *profile;
}

Problem Some(int world) {
  Problem problem;
  problem.slug = "some";
  problem.links = {"nvlink"};
  problem.allow = {"kernel", "multicast"};
  problem.cases.push_back({.name = "timed.w", .world = world, .params = {}, .profile = {}});
  return problem;
}

TEST(MachineTest, GrantedLinksAreThoseOfTheMachine) {
  const auto switched = On(Some(8), Machine("h100x8"));
  ASSERT_TRUE(switched) << switched.error().message;
  EXPECT_EQ(switched->links, Strings{"nvlink"});
  EXPECT_EQ(switched->allow, (Strings{"kernel", "multicast"}));
  // No NVLink: what there is carries payload. No switch: no multicast.
  const auto slow = On(Some(8), Machine("l40s-pcie8"));
  ASSERT_TRUE(slow) << slow.error().message;
  EXPECT_TRUE(std::count(slow->links.begin(), slow->links.end(), "pcie"));
  EXPECT_FALSE(std::count(slow->links.begin(), slow->links.end(), "nvlink"));
  EXPECT_EQ(slow->allow, Strings{"kernel"});
}

TEST(MachineTest, AWorldMustFit) {
  const auto large = On(Some(8), Machine("h100x4-mesh"));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().message,
            "h100x4-mesh has 4 devices, and timed.w of some needs 8: choose another profile");
  Problem drawn = Some(2);
  drawn.drawn = {.count = 1, .world_high = 5, .low = {}, .high = {}, .step = {}};
  EXPECT_FALSE(On(drawn, Machine("h100x4-mesh")));
  drawn.drawn.count = 0;
  EXPECT_TRUE(On(drawn, Machine("h100x4-mesh")));
  // A case with a machine of its own is not concerned.
  Problem own = Some(8);
  own.cases[0].profile = "h100x8";
  EXPECT_TRUE(On(own, Machine("h100x4-mesh")));
}

TEST(MachineTest, ArchitecturesOfTheirOwn) {
  Problem problem = Some(2);
  EXPECT_EQ(ArchOf(problem, Machine("h100x8")), "sm_90");
  problem.arch_specific = true;
  EXPECT_EQ(ArchOf(problem, Machine("h100x8")), "sm_90a");
  EXPECT_EQ(ArchOf(problem, Machine("b300x8")), "sm_103a");
  EXPECT_EQ(ArchOf(problem, Machine("l40s-pcie8")), "sm_89");
}

TEST(LevelTest, DifficultiesAreCounted) {
  const fs::path folder =
      fs::temp_directory_path() / ("allranks_level." + std::to_string(getpid()));
  fs::create_directories(folder);
  const auto write = [&](int lines) {
    std::ofstream file(folder / "reference.cu");
    file << "// A comment.\n\n";
    for (int i = 0; i < lines; ++i) file << "  x;\n";
  };
  Problem problem = Some(8);
  problem.folder = folder;
  problem.allow = {"kernel"};
  write(10);
  EXPECT_EQ(Difficulties(problem).value(), Strings{});
  EXPECT_EQ(LevelOf({}), "easy");
  write(69);
  EXPECT_EQ(Difficulties(problem).value(), Strings{});
  write(70);
  EXPECT_EQ(Difficulties(problem).value(), Strings{"long"});
  EXPECT_EQ(LevelOf({"long"}), "easy");
  problem.allow.push_back("multicast");
  EXPECT_EQ(Difficulties(problem).value(), (Strings{"multicast", "long"}));
  EXPECT_EQ(LevelOf({"multicast", "long"}), "medium");
  // Three places of the reference at which a weaker order is a bug; those of alternates do not
  // count, nor do other operators.
  for (const char* tag : {"a", "b", "b"}) {
    Mutant mutant;
    mutant.tag = tag;
    mutant.op = "relax";
    problem.mutants.push_back(mutant);
  }
  problem.mutants.push_back(problem.mutants[0]);
  problem.mutants.back().tag = "c";
  problem.mutants.back().op = "drop";
  EXPECT_EQ(Difficulties(problem)->size(), 2u);
  problem.mutants.back().op = "narrow";
  problem.mutants.back().of = "alternates/other.cu";
  EXPECT_EQ(Difficulties(problem)->size(), 2u);
  problem.mutants.back().of = "reference.cu";
  EXPECT_EQ(Difficulties(problem).value(), (Strings{"multicast", "handovers", "long"}));
  EXPECT_EQ(LevelOf({"multicast", "handovers", "long"}), "hard");
  Tensor ragged;
  ragged.draw.kind = Draw::Kind::kCounts;
  Tensor narrow;
  narrow.type = Type::kBf16;
  problem.tensors = {ragged, narrow};
  write(110);
  EXPECT_EQ(Difficulties(problem).value(),
            (Strings{"ragged", "narrow types", "multicast", "handovers", "long", "very long"}));
  fs::remove_all(folder);
  EXPECT_FALSE(Difficulties(problem));
}

}  // namespace
}  // namespace allranks::problem
