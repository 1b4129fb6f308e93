// `allranks profile` from the outside: the shipped profiles, and topologies of other shapes made of
// the first one.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>

namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string output;  // stdout and stderr together
};

Outcome Profile(const std::string& arguments) {
  Outcome outcome;
  FILE* pipe = popen((ALLRANKS_COMMAND " profile " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
  return outcome;
}

class ProfileTest : public ::testing::Test {
 protected:
  ProfileTest() {
    std::string pattern = (fs::temp_directory_path() / "allranks-cli-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~ProfileTest() override { fs::remove_all(folder); }

  // h100x8 with other hosts, devices and wires. The path of the file.
  std::string Make(const std::string& name, int hosts, int devices, const std::string& topology) {
    std::ifstream original(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml");
    std::string text((std::istreambuf_iterator<char>(original)), {});
    text = std::regex_replace(text, std::regex("\nhosts = 1 "),
                              "\nhosts = " + std::to_string(hosts) + " ");
    text = std::regex_replace(text, std::regex("\ndevices_per_host = 8 "),
                              "\ndevices_per_host = " + std::to_string(devices) + " ");
    text = std::regex_replace(text, std::regex("globaltimer_skew_ns = .*"),
                              "globaltimer_skew_ns = [" + Zeros(devices) + "]");
    const std::size_t begin = text.find("[topology]"), end = text.find("\n\n", begin);
    text.replace(begin, end - begin, "[topology]\n" + topology);
    const std::string path = folder + "/" + name + ".toml";
    std::ofstream(path) << text;
    return path;
  }
  static std::string Zeros(int count) {
    std::string zeros;
    for (int i = 0; i < count; ++i) zeros += i == 0 ? "0" : ", 0";
    return zeros;
  }

  std::string folder;
};

TEST_F(ProfileTest, EveryShippedProfileIsListedAndShown) {
  const Outcome list = Profile("list");
  EXPECT_EQ(list.code, 0) << list.output;
  for (const auto& entry : fs::directory_iterator(ALLRANKS_SOURCE_DIR "/profiles")) {
    const std::string name = entry.path().stem();
    EXPECT_NE(list.output.find("\n" + name + " "), std::string::npos) << name;
    const Outcome shown = Profile("show " + name);
    EXPECT_EQ(shown.code, 0) << shown.output;
    EXPECT_TRUE(shown.output.starts_with(name + ": ")) << shown.output;
    std::istringstream lines(shown.output);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), 160u) << name << ": " << line;
  }
}

TEST_F(ProfileTest, AProfileOfOnesOwnIsListed) {
  fs::copy_file(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml", folder + "/mine.toml");
  setenv("ALLRANKS_PROFILES", folder.c_str(), 1);
  EXPECT_NE(Profile("list").output.find("\nmine "), std::string::npos);
  std::ofstream(folder + "/broken.toml") << "name = \"broken\"\n";
  const Outcome outcome = Profile("list");
  unsetenv("ALLRANKS_PROFILES");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.output.find("broken.toml"), std::string::npos);
  EXPECT_NE(outcome.output.find("\nmine "), std::string::npos) << "one does not hide the others";
}

TEST_F(ProfileTest, SwitchAndTree) {
  const std::string shown = Profile("show h100x8").output;
  EXPECT_NE(shown.find("nvswitch\n└─ nvlink ─ gpu[0-7]\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("cpu0 ─ socket ─ cpu1\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("└─ pcie ─ plx3\n"
                       "          ├─ pcie ─ gpu[6-7]\n"
                       "          └─ pcie ─ nic[6-7]\n"),
            std::string::npos)
      << shown;
  EXPECT_NE(shown.find("\ngpu7 A    A    A    A    A    A    A    .    C    B "), std::string::npos)
      << shown;
  EXPECT_NE(shown.find("A  nvlink x 2 "), std::string::npos) << shown;
}

TEST_F(ProfileTest, Mesh) {
  const std::string path = Make("mesh", 1, 4,
                                "cpus = [\"cpu0\"]\nnvswitches = []\npcie_switches = []\n"
                                "nics = []\nnetworks = []\nmachine_wide = []\n"
                                "meshes = [[\"gpu[0-3]\", \"nvlink\"]]\n"
                                "wires = [[\"gpu[0-3]\", \"cpu0\", \"pcie\"]]");
  const Outcome shown = Profile("show " + path);
  EXPECT_EQ(shown.code, 0);
  EXPECT_NE(shown.output.find("gpu[0-3]: nvlink between each two\ncpu0\n└─ pcie ─ gpu[0-3]\n"),
            std::string::npos)
      << shown.output;
  EXPECT_NE(shown.output.find("\ngpu1 A    .    A    A    B\n"), std::string::npos) << shown.output;
}

TEST_F(ProfileTest, SeventyTwoDevicesAreFolded) {
  const std::string path = Make(
      "big", 18, 4,
      "cpus = [\"cpu0\"]\nnvswitches = [\"nvswitch\"]\npcie_switches = []\nnics = []\n"
      "networks = []\nmachine_wide = [\"nvswitch\"]\nmeshes = []\n"
      "wires = [[\"gpu[0-3]\", \"nvswitch\", \"nvlink\"], [\"gpu[0-3]\", \"cpu0\", \"pcie\"]]");
  const Outcome shown = Profile("show " + path);
  EXPECT_EQ(shown.code, 0);
  EXPECT_NE(shown.output.find("nvswitch\n└─ nvlink ─ node[0-17].gpu[0-3]\n"
                              "node[0-17], each:\ncpu0\n└─ pcie ─ gpu[0-3]\n"),
            std::string::npos)
      << shown.output;
  EXPECT_NE(shown.output.find("(1) node[0-17].gpu[0-3] A\n"), std::string::npos) << shown.output;
  EXPECT_LT(std::count(shown.output.begin(), shown.output.end(), '\n'), 40) << shown.output;
}

TEST_F(ProfileTest, HostsAreToldApart) {
  const std::string path = Make(
      "two", 2, 8,
      "cpus = [\"cpu0\"]\nnvswitches = [\"nvswitch\"]\npcie_switches = []\n"
      "nics = [\"nic[0-7]\"]\nnetworks = [\"rail[0-7]\"]\nmachine_wide = [\"rail[0-7]\"]\n"
      "meshes = []\n"
      "wires = [[\"gpu[0-7]\", \"nvswitch\", \"nvlink\"], [\"gpu[0-7]\", \"cpu0\", \"pcie\"],\n"
      "  [\"nic[0-7]\", \"cpu0\", \"pcie\"], [\"nic[0-7]\", \"rail[0-7]\", \"socket\"]]");
  const Outcome shown = Profile("show " + path);
  EXPECT_EQ(shown.code, 0);
  EXPECT_NE(shown.output.find("rail0\n└─ socket ─ node[0-1].nic0\nrail[1-7], each like rail0\n"),
            std::string::npos)
      << shown.output;
  EXPECT_NE(shown.output.find("(1) node0.gpu[0-7] A   B\n(2) node1.gpu[0-7] B   A\n"),
            std::string::npos)
      << shown.output;
  EXPECT_NE(shown.output.find("B  pcie x 2, socket x 2, pcie x 2 "), std::string::npos)
      << shown.output;
}

TEST_F(ProfileTest, DevicesOfADomainMeetInItsSwitch) {
  // Though two devices of a host are nearer to each other through their CPU.
  const std::string shown = Profile("show gb200nvl72").output;
  EXPECT_NE(shown.find("(1) node[0-17].gpu[0-3] A\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("\nA  nvlink x 2 "), std::string::npos) << shown;
}

TEST_F(ProfileTest, ConstantsHaveTheirSources) {
  const std::string shown = Profile("show --constants h100x8").output;
  EXPECT_NE(shown.find("device.sms = 132  # white paper\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("links.nvlink.gbs = 450  # data sheet"), std::string::npos) << shown;
}

TEST_F(ProfileTest, DifferencesAndNothingElse) {
  const Outcome same = Profile("diff h100x8 h100x8");
  EXPECT_EQ(same.code, 0);
  EXPECT_EQ(same.output, "");
  std::ifstream original(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml");
  std::string text((std::istreambuf_iterator<char>(original)), {});
  text = std::regex_replace(text, std::regex("\nclock_mhz = [0-9]+"), "\nclock_mhz = 1234");
  text = std::regex_replace(text, std::regex("\"cpu0\", \"cpu1\", \"socket\""),
                            "\"cpu0\", \"cpu1\", \"pcie\"");
  std::ofstream(folder + "/other.toml") << text;
  const Outcome outcome = Profile("diff h100x8 " + folder + "/other.toml");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(std::regex_search(outcome.output, std::regex("\ndevice.clock_mhz +[0-9]+ +1234\n")))
      << outcome.output;
  EXPECT_TRUE(std::regex_search(outcome.output,
                                std::regex("\ntopology.wires +\\[ 'cpu0', 'cpu1', 'socket' \\] +"
                                           "\\[ 'cpu0', 'cpu1', 'pcie' \\]\n")))
      << outcome.output;
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 3) << outcome.output;
}

TEST_F(ProfileTest, MistakesNameTheRemedy) {
  const Outcome outcome = Profile("show nonsense");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.output.find("nonsense.toml"), std::string::npos);
  EXPECT_EQ(Profile("").code, 2);
  EXPECT_EQ(Profile("diff h100x8").code, 2);
}

}  // namespace
