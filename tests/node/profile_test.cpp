// Profiles: the shipped ones load and name their sources, and every mistake a person can make in
// one is answered with the file, the line, the key and what is expected.
#include "node/hardware/profile.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace allranks::node {
namespace {

const std::filesystem::path kProfiles = std::filesystem::path(ALLRANKS_SOURCE_DIR) / "profiles";

std::string ShippedText() {
  std::ifstream in(kProfiles / "h100x8.toml");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The shipped profile with one line replaced, and the message it is refused with.
std::string MessageAfter(const std::string& line_pattern, const std::string& replacement) {
  const std::string text = ShippedText();
  const std::regex pattern("\n" + line_pattern + "[^\n]*");
  EXPECT_TRUE(std::regex_search(text, pattern)) << line_pattern;
  const std::string changed = std::regex_replace(text, pattern, "\n" + replacement,
                                                 std::regex_constants::format_first_only);
  Result<Profile> profile = ParseProfile(changed, "p.toml");
  return profile ? "accepted" : profile.error().message;
}

TEST(ProfileTest, LoadsTheShippedH100) {
  Result<Profile> profile = LoadProfile((kProfiles / "h100x8.toml").string());
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->name, "h100x8");
  EXPECT_EQ(profile->validated, "rough");
  EXPECT_EQ(profile->DeviceCount(), 8);
  EXPECT_EQ(profile->device.compute_major, 9);
  EXPECT_EQ(profile->device.compute_minor, 0);
  EXPECT_EQ(profile->device.sms, 132);
  EXPECT_EQ(profile->sm.max_warps, 64);
  EXPECT_EQ(profile->sm.shared_per_cta_bytes, 227 * 1024);
  EXPECT_EQ(profile->latency.alu, 4);
  ASSERT_EQ(profile->topology.kinds.size(), 3u);
  EXPECT_EQ(profile->topology.kinds[0].name, "nvlink");
  EXPECT_EQ(profile->topology.kinds[0].gbs, 450);
  EXPECT_EQ(profile->topology.kinds[0].latency, Ns(380));
  EXPECT_EQ(profile->launch.kernel, Us(2));
  ASSERT_EQ(profile->time.globaltimer_skew.size(), 8u);
  EXPECT_EQ(profile->SkewOf(2), -Ns(416));
  EXPECT_EQ(profile->SkewOf(9), profile->SkewOf(1));
}

TEST(ProfileTest, EveryValueOfEveryProfileNamesItsSource) {
  const std::regex value("^[a-z0-9_]+ = .*");
  const std::regex sourced("^[a-z0-9_]+ = .*# .+");
  const std::regex self_evident("^(name|what|version) = .*");
  for (const auto& entry : std::filesystem::directory_iterator(kProfiles)) {
    if (entry.path().extension() != ".toml") continue;
    std::ifstream in(entry.path());
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      if (!std::regex_match(line, value) || std::regex_match(line, self_evident)) continue;
      EXPECT_TRUE(std::regex_match(line, sourced)) << entry.path() << ":" << number << ": " << line;
    }
    Result<Profile> profile = LoadProfile(entry.path().string());
    EXPECT_TRUE(profile) << profile.error().message;
  }
}

TEST(ProfileTest, CyclesAndTimeAreInverseAndDoNotDrift) {
  Profile profile;
  profile.device.clock_mhz = 1755;
  EXPECT_EQ(profile.CyclesToTime(1755), Us(1));
  EXPECT_EQ(profile.CyclesToTime(1755LL * 3'600'000'000), Us(3'600'000'000));
  for (std::int64_t cycle :
       {0LL, 1LL, 2LL, 3LL, 199LL, 1754LL, 1755LL, 1756LL, 123'456'789'012LL}) {
    const Time start = profile.CyclesToTime(cycle);
    EXPECT_EQ(profile.TimeToCycles(start), cycle);
    EXPECT_EQ(profile.TimeToCycles(profile.CyclesToTime(cycle + 1) - 1), cycle);
  }
}

TEST(ProfileTest, MissingFile) {
  Result<Profile> profile = LoadProfile("/nonexistent/p.toml");
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().message,
            "/nonexistent/p.toml: cannot be opened; a profile is a TOML file such as "
            "profiles/*.toml");
}

TEST(ProfileTest, NotToml) {
  Result<Profile> profile = ParseProfile("version = 2\nname = \n", "p.toml");
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().message.rfind("p.toml:2: not valid TOML: ", 0), 0u)
      << profile.error().message;
}

TEST(ProfileTest, UnknownKeyIsNamedWithItsLine) {
  const std::string message = MessageAfter("max_warps = ", "max_wraps = 64");
  EXPECT_NE(message.find("p.toml: [sm] max_warps is missing: expected an integer from 1 to 2048"),
            std::string::npos)
      << message;
  EXPECT_TRUE(std::regex_search(
      message, std::regex("p\\.toml:[0-9]+: \\[sm\\] max_wraps is not a key of this section")))
      << message;
}

TEST(ProfileTest, UnknownSection) {
  EXPECT_TRUE(std::regex_search(MessageAfter("\\[host\\]", "[hots]"),
                                std::regex("hots is not a key of this section")));
}

TEST(ProfileTest, WrongTypeShowsTheValueAndWhatIsExpected) {
  EXPECT_TRUE(std::regex_match(MessageAfter("sms = ", "sms = \"many\""),
                               std::regex("p\\.toml:[0-9]+: \\[device\\] sms is [\"']many[\"']: "
                                          "expected an integer from 1 to 4096")));
  EXPECT_TRUE(
      std::regex_search(MessageAfter("gbs = 450", "gbs = true"),
                        std::regex("\\[links.nvlink\\] gbs is true: expected a number above 0")));
}

TEST(ProfileTest, OutOfRange) {
  EXPECT_TRUE(
      std::regex_search(MessageAfter("efficiency = 1.0 ", "efficiency = 1.5"),
                        std::regex("efficiency is 1.5: expected a number above 0, up to 1")));
  EXPECT_TRUE(std::regex_search(MessageAfter("latency_ns = 380", "latency_ns = -1"),
                                std::regex("latency_ns is -1: expected nanoseconds")));
  EXPECT_NE(MessageAfter("gbs = 450", "gbs = nan"), "accepted");
  EXPECT_NE(MessageAfter("gbs = 450", "gbs = inf"), "accepted");
  EXPECT_NE(MessageAfter("latency_ns = 380", "latency_ns = nan"), "accepted");
}

TEST(ProfileTest, ComputeCapabilityIsATextOfTwoNumbers) {
  for (const char* bad :
       {"9.0", "\"9\"", "\"nine\"", "\"9.\"", "\".0\"", "\"123.0\"", "\"9.0a\""}) {
    EXPECT_NE(MessageAfter("compute_capability = ", std::string("compute_capability = ") + bad),
              "accepted")
        << bad;
  }
  EXPECT_EQ(MessageAfter("compute_capability = ", "compute_capability = \"10.3\""), "accepted");
}

TEST(ProfileTest, OneSkewPerDevice) {
  EXPECT_TRUE(
      std::regex_search(MessageAfter("globaltimer_skew_ns = ", "globaltimer_skew_ns = [0, 1]"),
                        std::regex("globaltimer_skew_ns is .*: expected a list of 8 numbers")));
}

TEST(ProfileTest, ValuesMustFitTogether) {
  EXPECT_EQ(MessageAfter("shared_per_cta_bytes = ", "shared_per_cta_bytes = 233472"),
            "p.toml: [sm] shared_per_cta_bytes is 233472: expected at most shared_bytes - "
            "shared_reserved_per_cta = 232448");
}

TEST(ProfileTest, AnotherVersionIsRefusedBeforeItsKeysAreJudged) {
  Result<Profile> profile = ParseProfile("version = 3\nfuture = true\n", "p.toml");
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().message, "p.toml: version is 3: this program reads version 2");
}

}  // namespace
}  // namespace allranks::node
