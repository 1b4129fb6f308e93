// `allranks` from the outside: exit codes, files, signals, and that nothing is left behind. None of
// the programs here uses CUDA; tests/programs and tests/faults do.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <thread>

namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string output;  // stdout and stderr together
};

class ExecTest : public ::testing::Test {
 protected:
  ExecTest() {
    std::string pattern = (fs::temp_directory_path() / "allranks-cli-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~ExecTest() override {
    EXPECT_EQ(LeftBehind(), "") << "temporary files";
    fs::remove_all(folder);
  }

  // `arguments` go through the shell. TMPDIR is this test's own, to see what is left there.
  Outcome Run(const std::string& arguments) const {
    const std::string command = "TMPDIR=" + folder + " " ALLRANKS_COMMAND " " + arguments + " 2>&1";
    Outcome outcome;
    FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return outcome;
    std::array<char, 4096> buffer;
    while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
      outcome.output.append(buffer.data(), count);
    const int status = pclose(pipe);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    return outcome;
  }
  std::string LeftBehind() const {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
      if (entry.path().filename().string().starts_with("allranks-")) return entry.path();
    return "";
  }

  std::string folder;
};

std::string Contents(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_F(ExecTest, ReturnsTheProgramsCode) {
  EXPECT_EQ(Run("exec -- true").code, 0);
  EXPECT_EQ(Run("exec -- sh -c 'exit 7'").code, 7);
  EXPECT_EQ(Run("exec -- sh -c 'kill -9 $$'").code, 137);
}

TEST_F(ExecTest, ArgumentsAreThePrograms) {
  EXPECT_EQ(Run("exec -- echo --stats -- --help").output, "--stats -- --help\n");
}

TEST_F(ExecTest, InputIsPassedOn) {
  EXPECT_EQ(Run("exec -- cat <<'END'\nhello\nEND\n").output, "hello\n");
}

TEST_F(ExecTest, MistakesNameTheRemedy) {
  Outcome outcome = Run("exec -- no-such-program");
  EXPECT_EQ(outcome.code, 127);
  EXPECT_NE(outcome.output.find("no-such-program"), std::string::npos);
  EXPECT_EQ(Run("exec -- /dev/null").code, 126);
  outcome = Run("exec");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.output.find("-- PROGRAM"), std::string::npos);
  outcome = Run("exec --profile nonsense -- true");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.output.find("nonsense.toml"), std::string::npos);
  outcome = Run("exec --devices 9 -- true");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(Run("exec --no-such-option -- true").code, 2);
  EXPECT_EQ(Run("").code, 2);
}

TEST_F(ExecTest, ProfilesAreFoundByNameAndPath) {
  EXPECT_EQ(Run("exec --profile h100x8 -- true").code, 0);
  EXPECT_EQ(Run("exec --profile " ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml -- true").code, 0);
  fs::copy_file(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml", fs::path(folder) / "mine.toml");
  EXPECT_EQ(Run("exec --profile mine -- true").code, 2);
  setenv("ALLRANKS_PROFILES", folder.c_str(), 1);
  EXPECT_EQ(Run("exec --profile mine -- true").code, 0);
  unsetenv("ALLRANKS_PROFILES");
}

TEST_F(ExecTest, StatisticsAsJson) {
  const std::string path = folder + "/stats.json";
  EXPECT_EQ(Run("exec --stats-json " + path + " -- true").code, 0);
  const auto stats = nlohmann::json::parse(Contents(path));
  EXPECT_EQ(stats["version"], 1);
  EXPECT_EQ(stats["profile"], "h100x8");
  EXPECT_EQ(stats["deterministic"], true);
  EXPECT_TRUE(stats["virtual_ns"].is_number_integer());
  EXPECT_EQ(stats["thread_instructions"], 0);
  EXPECT_EQ(stats["warp_instructions"], 0);
  EXPECT_TRUE(stats["kernels"].is_array());
  EXPECT_TRUE(stats["links"].is_array());
  for (const char* mover : {"sm", "tma", "copy_engine", "multicast", "nic"})
    EXPECT_EQ(stats["movers"][mover]["bytes"], 0) << mover;
  EXPECT_TRUE(stats["faults"].is_array());
  EXPECT_NE(Run("exec --stats-json /nonexistent/x -- true").code, 0);
}

TEST_F(ExecTest, StatisticsAsTable) {
  EXPECT_NE(Run("exec --stats -- true").output.find("us of virtual time on h100x8"),
            std::string::npos);
}

TEST_F(ExecTest, RanksAreToldWhoTheyAre) {
  const Outcome outcome =
      Run("exec --ranks 3 -- sh -c 'echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE "
          "$OMPI_COMM_WORLD_RANK $MASTER_ADDR'");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.output, "0/3 0/3 0 127.0.0.1\n1/3 1/3 1 127.0.0.1\n2/3 2/3 2 127.0.0.1\n");
}

TEST_F(ExecTest, AFailedRankEndsTheOthers) {
  EXPECT_EQ(Run("exec --ranks 3 -- sh -c '[ $RANK = 1 ] && exit 5; sleep 100000'").code, 5);
  EXPECT_EQ(Run("exec --ranks 2 -- sh -c '[ $RANK = 1 ] && kill -9 $$; sleep 100000'").code, 137);
  EXPECT_EQ(Run("exec --ranks 2 -- /no/such/program").code, 127);
}

TEST_F(ExecTest, ARankDiesAtItsTime) {
  const Outcome outcome =
      Run("exec --ranks 2 --fault rank:1=dead@3s -- sh -c "
          "'sleep 2; echo $RANK lives; sleep 2; echo $RANK lives on'");
  EXPECT_EQ(outcome.code, 137);
  EXPECT_NE(outcome.output.find("0 lives\n"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("1 lives\n"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("lives on"), std::string::npos) << outcome.output;
}

TEST_F(ExecTest, FaultsThatCannotBeAreRefused) {
  for (const char* fault : {"link:gpu0-gpu1=dead", "nic:gpu77=dead", "rank:1=0.5", "door:gpu0=dead",
                            "link:gpu0-nvswitch=dead@yesterday"}) {
    const Outcome outcome = Run(std::string("exec --fault ") + fault + " -- true");
    EXPECT_EQ(outcome.code, 2) << fault;
    EXPECT_NE(outcome.output.find(std::string("--fault ") + fault), std::string::npos)
        << outcome.output;
  }
}

TEST_F(ExecTest, HostsHaveNamesOfTheirOwn) {
  std::ifstream file(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  text.replace(text.find("\nhosts = 1"), 10, "\nhosts = 2");
  std::ofstream(folder + "/two.toml") << text;
  const std::string exec = "exec --profile " + folder + "/two.toml --devices 2 ";
  const std::string who = "$RANK $LOCAL_RANK $(uname -n) $(cat /proc/sys/kernel/random/boot_id)";
  const std::string boot = "a11ba9c5-0000-4000-8000-00000000000";
  const Outcome outcome = Run(exec + "--ranks 4 -- sh -c 'echo " + who + "'");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.output, "0 0 node0 " + boot + "0\n1 1 node0 " + boot + "0\n2 0 node1 " + boot +
                                "1\n3 1 node1 " + boot + "1\n");
  // By the rank that any launcher sets, by name, and by where the parent is.
  EXPECT_EQ(
      Run(exec + "-- sh -c 'PMI_RANK=3 uname -n; ALLRANKS_HOST=1 sh -c \"uname -n; uname -n\"; "
                 "PMI_RANK=3 PMI_SIZE=4 MPI_LOCALNRANKS=2 uname -n'")
          .output,
      "node1\nnode1\nnode1\nnode0\n");
  EXPECT_EQ(Run(exec + "--ranks-per-host 1 --ranks 2 -- uname -n").output, "node0\nnode1\n");
  EXPECT_EQ(Run(exec + "--ranks 5 -- true").code, 2);
  EXPECT_EQ(Run(exec + "-- " ALLRANKS_COMMAND " rsh node1 uname -n").output, "node1\n");
}

TEST_F(ExecTest, ShellPipelinesAreRepeatable) {
  const std::string path = folder + "/stats.json";
  std::string first;
  for (int i = 0; i < 3; ++i) {
    const Outcome outcome = Run("exec --stats-json " + path +
                                " -- sh -c 'seq 3 | sort -r | tr \"\\n\" \" \"; sleep 100'");
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.output, "3 2 1 ");
    const auto stats = nlohmann::json::parse(Contents(path));
    EXPECT_EQ(stats["deterministic"], true) << stats.dump(2);
    const std::string now = stats["virtual_ns"].dump();
    if (first.empty()) first = now;
    EXPECT_EQ(now, first);
    EXPECT_GT(stats["virtual_ns"].get<std::int64_t>(), 100'000'000'000) << "the sleep was virtual";
  }
}

TEST_F(ExecTest, WhatTheProgramLeavesRunningIsEnded) {
  const std::string mark = std::to_string(getpid()) + "77";
  const auto start = std::chrono::steady_clock::now();
  // Not a sleep: that would be virtual.
  EXPECT_EQ(
      Run("exec -- sh -c 'setsid sh -c \"while :; do :; done; exit " + mark + "\" & exit 0'").code,
      0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_NE(std::system(("pgrep -f '[d]one; exit " + mark + "' >/dev/null").c_str()), 0);
}

// Starts the supervisor, waits until the program runs, sends it a signal, and returns its exit
// code.
int Signalled(const std::string& folder, const std::string& script,
              std::initializer_list<int> signals) {
  const std::string ready = folder + "/ready";
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("TMPDIR", folder.c_str(), 1);
    execl(ALLRANKS_COMMAND, "allranks", "exec", "--", "bash", "-c",
          (script + "; touch " + ready + "; while :; do :; done").c_str(),
          static_cast<char*>(nullptr));
    _exit(1);
  }
  for (int i = 0; i < 1000 && !fs::exists(ready); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (int signal : signals) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    kill(pid, signal);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_F(ExecTest, CtrlCEndsEverything) { EXPECT_EQ(Signalled(folder, "true", {SIGINT}), 130); }

TEST_F(ExecTest, TerminationIsPassedOn) {
  EXPECT_EQ(Signalled(folder, "trap 'exit 5' TERM", {SIGTERM}), 5);
}

TEST_F(ExecTest, ASecondCtrlCIsFinal) {
  EXPECT_EQ(Signalled(folder, "trap '' INT", {SIGINT, SIGINT}), 137);
}

TEST_F(ExecTest, EvenAKilledSupervisorLeavesNothing) {
  EXPECT_EQ(Signalled(folder, "true", {SIGKILL}), 1000 + SIGKILL);
  // The node notices the end of its control connection by itself.
  for (int i = 0; i < 200 && !LeftBehind().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(LeftBehind(), "");
}

TEST_F(ExecTest, VersionAndHelp) {
  const std::regex version(
      "allranks " ALLRANKS_VERSION
      R"( \(commit ([0-9a-f]{7,40}\+?|unknown), node [0-9a-f]{12}, wire \d+\)\n)");
  EXPECT_TRUE(std::regex_match(Run("--version").output, version)) << Run("--version").output;
  EXPECT_EQ(Run("--help").code, 0);
  EXPECT_NE(Run("exec --help").output.find("86"), std::string::npos);
}

TEST_F(ExecTest, DocsAreTheHelp) {
  EXPECT_EQ(Contents(ALLRANKS_SOURCE_DIR "/docs/cli.md"), Run("docs").output)
      << "write it anew: allranks docs > docs/cli.md";
}

}  // namespace
