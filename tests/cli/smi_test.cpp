// `allranks smi`: it prints what a program gets from NVML (smi_probe.cpp), for every shipped
// profile and for wirings that none of them has.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Outcome {
  int code = -1;
  std::string output;
};

Outcome Shell(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
  return outcome;
}

Outcome Smi(const std::string& arguments) {
  return Shell(ALLRANKS_COMMAND " smi " + arguments + " 2>&1");
}

json SmiJson(const std::string& arguments) {
  const Outcome outcome = Smi(arguments + " --json");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  return json::parse(outcome.output, nullptr, false);
}

// What a program on a host of the profile sees.
json Probe(const std::string& profile, std::size_t host) {
  const Outcome outcome =
      Shell("ALLRANKS_HOST=" + std::to_string(host) + " " ALLRANKS_COMMAND " exec --profile " +
            profile + " -- " SMI_PROBE);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  return json::parse(outcome.output, nullptr, false);
}

void ExpectAgreement(const std::string& profile) {
  SCOPED_TRACE(profile);
  const json table = SmiJson("--profile " + profile), topo = SmiJson("topo --profile " + profile);
  ASSERT_EQ(table["hosts"].size(), topo["hosts"].size());
  ASSERT_FALSE(table["hosts"].empty());
  const std::size_t last = table["hosts"].size() - 1;
  for (std::size_t host = 0; host <= last; host += std::max<std::size_t>(last, 1)) {
    const json seen = Probe(profile, host);
    EXPECT_EQ(table["driver_version"], seen["driver_version"]);
    EXPECT_EQ(table["cuda_version"], seen["cuda_version"]);
    EXPECT_EQ(table["hosts"][host]["gpus"], seen["gpus"]);
    json links = topo["hosts"][host]["links"];
    const std::size_t count = seen["gpus"].size();
    ASSERT_GE(links.size(), count);
    links.erase(links.begin() + static_cast<std::ptrdiff_t>(count), links.end());  // NICs
    for (json& row : links) row.erase(row.begin() + static_cast<std::ptrdiff_t>(count), row.end());
    EXPECT_EQ(links, seen["links"]);
  }
}

TEST(Smi, AgreesWithNvmlOnEveryShippedProfile) {
  for (const auto& entry : fs::directory_iterator(ALLRANKS_SOURCE_DIR "/profiles"))
    if (entry.path().extension() == ".toml") ExpectAgreement(entry.path().stem());
}

class SmiOfOwnProfile : public ::testing::Test {
 protected:
  SmiOfOwnProfile() {
    std::string pattern = (fs::temp_directory_path() / "allranks-smi-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~SmiOfOwnProfile() override { fs::remove_all(folder_); }

  // h100x8 with other wires. The path of the file.
  std::string Make(const std::string& topology) {
    std::ifstream original(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml");
    std::string text((std::istreambuf_iterator<char>(original)), {});
    const std::size_t begin = text.find("[topology]"), end = text.find("\n\n", begin);
    text.replace(begin, end - begin, "[topology]\n" + topology);
    const std::string path = folder_ + "/own.toml";
    std::ofstream(path) << text;
    return path;
  }

  std::string folder_;
};

// Devices 0 to 3 are behind two layers of switches, 4 to 7 are at CPUs.
TEST_F(SmiOfOwnProfile, SeveralSwitches) {
  const std::string path = Make(
      "cpus = [\"cpu[0-1]\"]\nnvswitches = []\npcie_switches = [\"leaf[0-1]\", \"root\"]\n"
      "nics = [\"mlx\"]\nnetworks = []\nmachine_wide = []\nmeshes = []\n"
      "wires = [[\"gpu[0-3]\", \"leaf[0-1]\", \"pcie\"], [\"leaf[0-1]\", \"root\", \"pcie\"],\n"
      "  [\"mlx\", \"root\", \"pcie\"], [\"root\", \"cpu1\", \"pcie\"],\n"
      "  [\"gpu[4-7]\", \"cpu[0-1]\", \"pcie\"], [\"cpu0\", \"cpu1\", \"socket\"]]");
  ExpectAgreement(path);
  const json host = SmiJson("topo --profile " + path)["hosts"][0];
  EXPECT_EQ(host["vertices"][8]["profile_name"], "mlx");
  EXPECT_EQ(host["vertices"][8]["cpu"], "cpu1");
  EXPECT_EQ(host["links"][0],
            json({"X", "PIX", "PXB", "PXB", "SYS", "SYS", "NODE", "NODE", "PXB"}));
  EXPECT_EQ(host["links"][8][6], "NODE");
}

// Two switches of four devices each: no NVLink joins the halves.
TEST_F(SmiOfOwnProfile, SeparateNvSwitches) {
  const std::string path = Make(
      "cpus = [\"cpu0\"]\nnvswitches = [\"a\", \"b\"]\npcie_switches = []\nnics = []\n"
      "networks = []\nmachine_wide = []\nmeshes = []\n"
      "wires = [[\"gpu[0-3]\", \"a\", \"nvlink\"], [\"gpu[4-7]\", \"b\", \"nvlink\"],\n"
      "  [\"gpu[0-7]\", \"cpu0\", \"pcie\"]]");
  ExpectAgreement(path);
  EXPECT_EQ(SmiJson("topo --profile " + path)["hosts"][0]["links"][0],
            json({"X", "NV18", "NV18", "NV18", "NODE", "NODE", "NODE", "NODE"}));
}

TEST(Smi, TableOfDevices) {
  const std::string text = Smi("").output;
  EXPECT_NE(text.find("Driver Version: 580.00 (allranks)   CUDA Version: 13.0 |\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("|   7 | NVIDIA H100 80GB HBM3 | 00000000:08:00.0 | 0MiB / 81920MiB | 132 | "
                      "1755MHz |     9.0 |      18 |\n"),
            std::string::npos)
      << text;
  std::istringstream lines(text);
  std::string first;
  std::getline(lines, first);
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(line.size(), first.size()) << line;
}

TEST(Smi, Matrix) {
  const Outcome plain = Smi("topo");
  EXPECT_EQ(plain.output, Smi("topo -m --profile h100x8").output);
  EXPECT_EQ(plain.output, Smi("--profile h100x8 topo").output);
  const auto has = [&](const std::string& pattern) {
    return std::regex_search(plain.output, std::regex(pattern));
  };
  EXPECT_TRUE(has("\nGPU2 +NV18 +NV18 +X .* NODE +NODE +PIX +PIX +SYS .* cpu0\n")) << plain.output;
  EXPECT_TRUE(has("\nNIC7 .* PIX +X +cpu1\n")) << plain.output;
  EXPECT_TRUE(has("\nLegend:\n")) << plain.output;
  EXPECT_NE(Smi("topo --profile h100x4-mesh").output.find("NV6"), std::string::npos);
}

TEST(Smi, EqualHostsAreShownOnce) {
  const std::string text = Smi("--profile gb200nvl72").output;
  EXPECT_TRUE(text.starts_with("node[0-17], each:\n")) << text;
  EXPECT_EQ(text.find("|   4 "), std::string::npos) << text;
  EXPECT_TRUE(Smi("topo --profile gb200nvl72").output.starts_with("node[0-17], each:\n"));
}

TEST(Smi, MistakesNameTheRemedy) {
  const Outcome outcome = Smi("--profile nonsense");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.output.find("nonsense.toml"), std::string::npos) << outcome.output;
  EXPECT_EQ(Smi("topo nonsense").code, 2);
}

}  // namespace
