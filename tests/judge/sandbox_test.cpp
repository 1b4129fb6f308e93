// The sandbox, bound by bound and denial by denial. sandbox_probe is the hostile program; what it
// prints is only believed where the sandbox's own word (SandboxEnd) cannot tell.
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "judge/cgroup.h"
#include "judge/sandbox.h"
#include "judge/shared_folder.h"

namespace allranks::judge {
namespace {

using Why = SandboxEnd::Why;
using Filter = SandboxSpec::Filter;
using std::chrono::milliseconds;
namespace fs = std::filesystem;

// Where a sandbox has the probe. The name is this process's own: other tests run beside this one,
// and ProcessesOfProbe() does not count theirs.
const std::string kProbe = "/probe." + std::to_string(getpid());

SandboxSpec Probe(std::vector<std::string> what, Filter filter = Filter::kRank) {
  SandboxSpec spec;
  spec.name = what[0];
  spec.command = {kProbe};
  spec.command.insert(spec.command.end(), what.begin(), what.end());
  spec.binds = {{ALLRANKS_PROBE, kProbe}};
  spec.filter = filter;
  spec.limits.memory_bytes = 96 << 20;
  spec.limits.file_bytes = filter == Filter::kCompiler ? 8 << 20 : 0;
  spec.limits.files = 500;
  spec.limits.processes = 20;
  spec.limits.cpu = milliseconds(3000);
  spec.limits.idle = milliseconds(10'000);
  return spec;
}

SandboxEnd RunIt(const SandboxSpec& spec) {
  auto sandbox = Sandbox::Start(spec);
  if (sandbox) return (*sandbox)->Wait();
  SandboxEnd end;
  end.why = Why::kSandbox;
  end.text = sandbox.error().message;
  return end;
}

// Every group of ours that a sandbox of this process might have left.
int Groups() {
  int count = 0;
  const CgroupPlaces& places = OurCgroupPlaces();
  for (const fs::path& place : {places.memory, places.pids, places.cpu}) {
    if (place.empty()) continue;
    for (const auto& entry : fs::directory_iterator(place)) {
      count += entry.path().filename().string().starts_with(MakerName()) ? 1 : 0;
    }
  }
  return count;
}

int ProcessesOfProbe() {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream in(entry.path() / "cmdline");
    std::string command;
    std::getline(in, command, '\0');
    count += command == kProbe ? 1 : 0;
  }
  return count;
}

// Tries until `done`, for ten seconds: processes that were killed end in their own time.
template <typename Condition>
void Await(Condition done) {
  for (int i = 0; i < 2'000 && !done(); ++i) poll(nullptr, 0, 5);
}

testing::AssertionResult Ended(const SandboxEnd& end, int code) {
  if (end.why == Why::kExit && end.code == code) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "why " << static_cast<int>(end.why) << " code " << end.code << " " << end.text
         << "\nout " << end.out << "\nerr " << end.err;
}

// Without control groups a bound is an error that the program sees, and may end by itself on.
testing::AssertionResult Bounded(const SandboxEnd& end, Why why) {
  if (end.why == why) return testing::AssertionSuccess();
  if (Means().cgroup == "none" && end.why == Why::kExit && end.code != 1) {
    return testing::AssertionSuccess();
  }
  return Ended(end, -1);
}

TEST(SandboxTest, ReportsHowAProgramEnds) {
  for (const Filter filter : {Filter::kCompiler, Filter::kRank, Filter::kNode}) {
    const SandboxEnd hello = RunIt(Probe({"hello"}, filter));
    EXPECT_TRUE(Ended(hello, 0));
    EXPECT_EQ(hello.out, "hello\n");
  }
  EXPECT_TRUE(Ended(RunIt(Probe({"code"})), 7));
  const SandboxEnd aborted = RunIt(Probe({"abort"}));
  EXPECT_EQ(aborted.why, Why::kSignal);
  EXPECT_EQ(aborted.code, SIGABRT);
  const SandboxEnd recursed = RunIt(Probe({"recurse"}));
  EXPECT_EQ(recursed.why, Why::kSignal);
  EXPECT_EQ(recursed.code, SIGSEGV);
  SandboxSpec missing = Probe({"hello"});
  missing.command[0] = "/nowhere";
  const SandboxEnd not_started = RunIt(missing);
  EXPECT_EQ(not_started.why, Why::kSandbox);
  EXPECT_NE(not_started.text.find("No such file"), std::string::npos) << not_started.text;
}

TEST(SandboxTest, BoundsMemory) {
  const SandboxEnd balloon = RunIt(Probe({"balloon"}));
  EXPECT_TRUE(Bounded(balloon, Why::kMemory));
  EXPECT_LT(balloon.peak_memory, 200u << 20);
  // Files in memory are bounded as files, or as memory.
  SandboxSpec files = Probe({"memory_files"}, Filter::kCompiler);
  const Why why = RunIt(files).why;
  EXPECT_TRUE(why == Why::kMemory || why == Why::kSignal) << static_cast<int>(why);
  const SandboxEnd rank = RunIt(Probe({"memory_files"}));
  EXPECT_EQ(rank.why, Why::kSignal);
  EXPECT_EQ(rank.code, SIGXFSZ);
}

TEST(SandboxTest, BoundsProcesses) {
  EXPECT_TRUE(Bounded(RunIt(Probe({"fork_bomb"}, Filter::kCompiler)), Why::kProcesses));
  EXPECT_TRUE(Bounded(RunIt(Probe({"thread_bomb"}, Filter::kCompiler)), Why::kProcesses));
  EXPECT_TRUE(Bounded(RunIt(Probe({"thread_bomb"})), Why::kProcesses));
}

TEST(SandboxTest, BoundsCpuOfAllThreadsTogether) {
  for (const char* what : {"spin", "spin_on_all_cores"}) {
    SandboxSpec spec = Probe({what});
    spec.limits.cpu = milliseconds(200);
    const SandboxEnd end = RunIt(spec);
    EXPECT_EQ(end.why, Why::kCpu);
    EXPECT_GE(end.cpu_seconds, 0.2);
    EXPECT_LT(end.cpu_seconds, 0.6);
  }
}

TEST(SandboxTest, BoundsWallClock) {
  SandboxSpec spec = Probe({"sleep"});
  spec.limits.idle = milliseconds(150);
  EXPECT_EQ(RunIt(spec).why, Why::kIdle);
}

TEST(SandboxTest, BoundsOutput) {
  for (const char* what : {"flood", "flood_errors"}) {
    SandboxSpec spec = Probe({what});
    spec.limits.output_bytes = 10'000;
    const SandboxEnd end = RunIt(spec);
    EXPECT_EQ(end.why, Why::kOutput);
    EXPECT_EQ(end.out.size() + end.err.size(), 10'000u);
  }
}

TEST(SandboxTest, BoundsFiles) {
  const SandboxEnd fill = RunIt(Probe({"fill_disk"}, Filter::kCompiler));
  EXPECT_TRUE(Ended(fill, 0));
  EXPECT_EQ(fill.out, "8 MiB\n");
  EXPECT_EQ(RunIt(Probe({"many_files"}, Filter::kCompiler)).why, Why::kFiles);
  // A rank has no place to write to at all.
  const SandboxEnd rank = RunIt(Probe({"many_files"}));
  EXPECT_TRUE(Ended(rank, 0));
  SandboxSpec somewhere = Probe({"write_somewhere"}, Filter::kCompiler);
  somewhere.binds.push_back({fs::path(ALLRANKS_PROBE).parent_path(), "/bound"});
  EXPECT_TRUE(Ended(RunIt(somewhere), 0));
}

TEST(SandboxTest, BoundsDescriptors) {
  SandboxSpec spec = Probe({"most_descriptors"});
  spec.limits.descriptors = 40;
  EXPECT_EQ(RunIt(spec).out, "40\n");
}

TEST(SandboxTest, LeavesNoDaemon) {
  const SandboxEnd end = RunIt(Probe({"daemon"}, Filter::kCompiler));
  EXPECT_TRUE(Ended(end, 0));
  EXPECT_EQ(ProcessesOfProbe(), 0);
  EXPECT_EQ(Groups(), 0);
}

TEST(SandboxTest, SignalsReachNobody) {
  const SandboxEnd end = RunIt(Probe({"kill_all"}));
  EXPECT_TRUE(Ended(end, 0));
  EXPECT_EQ(end.out, "still here\n");
}

TEST(SandboxTest, ARankStartsNothing) {
  EXPECT_TRUE(Ended(RunIt(Probe({"fork"})), 0));
  EXPECT_TRUE(Ended(RunIt(Probe({"vfork"})), 0));
  const SandboxEnd exec = RunIt(Probe({"exec"}));
  EXPECT_TRUE(Ended(exec, 0));
  EXPECT_EQ(exec.out, "execve: Function not implemented\nexecveat: Operation not permitted\n");
  EXPECT_EQ(RunIt(Probe({"thread"})).out, "ran 1\n");
}

TEST(SandboxTest, TheKernelsOtherDoorsAreShut) {
  for (const Filter filter : {Filter::kCompiler, Filter::kRank, Filter::kNode}) {
    const SandboxEnd end = RunIt(Probe({"escapes"}, filter));
    EXPECT_TRUE(Ended(end, 0));
    EXPECT_EQ(end.out, "");
    const SandboxEnd old = RunIt(Probe({"old_abi"}, filter));
    EXPECT_EQ(old.why, Why::kSignal);
    EXPECT_EQ(old.code, SIGSYS);
  }
  EXPECT_TRUE(Ended(RunIt(Probe({"abstract"})), 0));
  EXPECT_TRUE(Ended(RunIt(Probe({"locks"})), 0));
}

// Members of a team meet on a loopback of their own; nobody else is there, and nothing is behind
// it.
TEST(SandboxTest, ATeamHasANetworkOfItsOwn) {
  auto first = Sandbox::Start(Probe({"serve"}, Filter::kTeam));
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE((*first)->AwaitStart());
  const SandboxEnd stranger = RunIt(Probe({"call"}, Filter::kTeam));
  EXPECT_TRUE(Ended(stranger, 0));
  EXPECT_EQ(stranger.out, "Connection refused\n");
  SandboxSpec out = Probe({"call_out"}, Filter::kTeam);
  out.network_of = first->get();
  const SandboxEnd outside = RunIt(out);
  EXPECT_TRUE(Ended(outside, 0));
  EXPECT_EQ(outside.out, "Network is unreachable\n");
  SandboxSpec member = Probe({"call"}, Filter::kTeam);
  member.network_of = first->get();
  EXPECT_TRUE(Ended(RunIt(member), 1));
  EXPECT_TRUE(Ended((*first)->Wait(), 0));

  const SandboxEnd escapes = RunIt(Probe({"escapes"}, Filter::kTeam));
  EXPECT_TRUE(Ended(escapes, 1));
  EXPECT_EQ(escapes.out, "AF_INET: 3, Success\nAF_NETLINK: 4, Success\n");
}

// What it shares is counted, and nothing leaves the count.
TEST(SandboxTest, ATeamSharesAFewSmallFiles) {
  const fs::path around = fs::temp_directory_path() / ("shared." + std::to_string(getpid()));
  fs::create_directories(around);
  chmod(around.c_str(), 0711);
  {
    auto folder = SharedFolder::Make(around / "shm");
    ASSERT_TRUE(folder) << folder.error().message;
    SandboxSpec one = Probe({"keeps_files"}, Filter::kTeam);
    one.binds.push_back({folder->path(), "/dev/shm", true});
    const SandboxEnd kept = RunIt(one);
    EXPECT_TRUE(Ended(kept, 0)) << kept.out;
    EXPECT_TRUE(fs::exists(around / "shm/file"));
    EXPECT_FALSE(folder->Overfull());
    one.command.back() = "fill_folder";
    EXPECT_TRUE(Ended(RunIt(one), 0));
    EXPECT_TRUE(folder->Overfull());
  }
  auto again = SharedFolder::Make(around / "shm");  // of the next session
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(fs::is_empty(around / "shm"));
  EXPECT_FALSE(again->Overfull());
  fs::remove_all(around);
}

TEST(SandboxTest, ShowsOnlyWhatIsListed) {
  ASSERT_EQ(setenv("ALLRANKS_SECRET_KEY", "key", 1), 0);
  SandboxSpec spec = Probe({"environment"});
  spec.environment = {"A=1", "B="};
  EXPECT_EQ(RunIt(spec).out, "A=1\nB=\n");

  // A descriptor that is not listed must not get in, even one without O_CLOEXEC.
  const int open_here = open("/dev/null", O_RDONLY), listed = fcntl(open_here, F_DUPFD, 77);
  spec = Probe({"descriptors"});
  EXPECT_EQ(RunIt(spec).out, "\n");
  spec.descriptors = {listed};
  EXPECT_EQ(RunIt(spec).out, std::to_string(listed) + " \n");
  close(open_here);
  close(listed);

  const std::string world = RunIt(Probe({"world"})).out;
  EXPECT_NE(world.find("host sandbox"), std::string::npos) << world;
  EXPECT_NE(world.find("groups 0 pid 2 ppid 1"), std::string::npos) << world;
  EXPECT_EQ(world.find("uid 0"), std::string::npos) << world;
  for (const char* hidden : {"home", "root", "var", "passwd", "shadow", "bin"}) {
    EXPECT_EQ(world.find(std::string(" ") + hidden), std::string::npos) << hidden << "\n" << world;
  }
  spec = Probe({"one"});
  spec.proc = true;
  const SandboxEnd one = RunIt(spec);
  EXPECT_TRUE(Ended(one, 0));
  EXPECT_EQ(one.out.find("bwrap"), std::string::npos) << one.out;
  EXPECT_EQ(one.out.find(ALLRANKS_SOURCE_DIR), std::string::npos) << one.out;
  for (const char* file : {"environ", "maps", "mem", "exe"}) {
    EXPECT_NE(one.out.find(std::string("/proc/1/") + file + " no"), std::string::npos) << one.out;
  }
}

TEST(SandboxTest, AddressesAreNotRandomOnRequest) {
  SandboxSpec spec = Probe({"personality"});
  spec.no_address_randomization = true;
  EXPECT_EQ(RunIt(spec).out, "ffffffff\n");  // the filter denies even the question
  spec.filter = Filter::kCompiler;
  EXPECT_EQ(RunIt(spec).out, "40000\n");
}

TEST(SandboxTest, FilesGoInAndResultsComeOut) {
  SandboxSpec spec = Probe({"results"}, Filter::kCompiler);
  spec.files = {{"/tmp/in/source", std::string("a\0b", 3)}, {"/tmp/empty", ""}};
  spec.collect = {"/tmp/plain",     "/tmp/link",  "/tmp/folder", "/dev/urandom",
                  "/tmp/in/source", "/tmp/empty", "/tmp/none"};
  const SandboxEnd end = RunIt(spec);
  EXPECT_TRUE(Ended(end, 0));
  EXPECT_EQ(end.out, "");
  ASSERT_EQ(end.collected.size(), 7u);
  EXPECT_EQ(end.collected[0], "result");
  for (const int denied : {1, 2, 3, 6}) EXPECT_FALSE(end.collected[denied]) << denied;
  EXPECT_EQ(end.collected[4], std::string("a\0b", 3));
  EXPECT_EQ(end.collected[5], "");
}

TEST(SandboxTest, KillEndsItAtOnce) {
  auto sandbox = Sandbox::Start(Probe({"sleep"}));
  ASSERT_TRUE(sandbox) << sandbox.error().message;
  poll(nullptr, 0, 50);
  EXPECT_FALSE((*sandbox)->Poll());
  (*sandbox)->Kill();
  EXPECT_EQ((*sandbox)->Wait().why, Why::kKilled);
  // Also before it has begun, and by the destructor.
  for (int i = 0; i < 5; ++i) {
    auto early = Sandbox::Start(Probe({"sleep"}));
    ASSERT_TRUE(early);
    if (i % 2 == 0) (*early)->Kill();
  }
  Await([] { return ProcessesOfProbe() == 0; });
  EXPECT_EQ(ProcessesOfProbe(), 0);
  EXPECT_EQ(Groups(), 0);
}

TEST(SandboxTest, SixteenSideBySide) {
  std::vector<std::unique_ptr<Sandbox>> all;
  const char* const what[] = {"hello", "spin", "balloon", "code"};
  const Why expected[] = {Why::kExit, Why::kCpu, Why::kMemory, Why::kExit};
  for (int i = 0; i < 16; ++i) {
    SandboxSpec spec = Probe({what[i % 4]});
    spec.limits.cpu = milliseconds(150);
    auto sandbox = Sandbox::Start(spec);
    ASSERT_TRUE(sandbox) << sandbox.error().message;
    all.push_back(std::move(*sandbox));
  }
  for (int i = 0; i < 16; ++i) {
    EXPECT_TRUE(Bounded(all[static_cast<std::size_t>(i)]->Wait(), expected[i % 4])) << i;
  }
  EXPECT_EQ(Groups(), 0);
}

TEST(SandboxTest, AJudgeThatIsKilledLeavesWhatTheNextOneSweeps) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t judge = fork();
  if (judge == 0) {
    auto sandbox = Sandbox::Start(Probe({"sleep"}));
    Await([&] { return (*sandbox)->Poll() || ProcessesOfProbe() != 0; });
    const std::string name = MakerName();
    if (write(pipe_ends[1], name.data(), name.size()) < 0) _exit(1);
    pause();
    _exit(0);
  }
  char name[256] = "";
  ASSERT_GT(read(pipe_ends[0], name, sizeof name - 1), 0);
  EXPECT_EQ(ProcessesOfProbe(), 1);
  const auto left = [&] {
    int count = 0;
    const CgroupPlaces& places = OurCgroupPlaces();
    for (const fs::path& place : {places.memory, places.pids, places.cpu}) {
      if (place.empty()) continue;
      for (const auto& entry : fs::directory_iterator(place)) {
        count += entry.path().filename().string().starts_with(name) ? 1 : 0;
      }
    }
    return count;
  };
  EXPECT_EQ(left() > 0, Means().cgroup != "none");
  kill(judge, SIGKILL);
  waitpid(judge, nullptr, 0);
  Await([] { return ProcessesOfProbe() == 0; });
  EXPECT_EQ(ProcessesOfProbe(), 0) << "it dies with the judge";
  // A group cannot be removed before the last process in it has ended, which has no command line
  // any more by then.
  Await([&] { return SweepLeftovers(), left() == 0; });
  EXPECT_EQ(left(), 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

// The same tests as a user who may make no control groups.
TEST(SandboxTest, AllOfThisAsAnOrdinaryUser) {
  if (geteuid() != 0) GTEST_SKIP() << "is one already";
  const pid_t child = fork();
  if (child == 0) {
    if (setgroups(0, nullptr) != 0 || setresgid(4321, 4321, 4321) != 0 ||
        setresuid(4321, 4321, 4321) != 0 || access(ALLRANKS_PROBE, X_OK) != 0) {
      _exit(99);
    }
    execl("/proc/self/exe", "judge_sandbox_test", "--gtest_brief=1", nullptr);
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 99) GTEST_SKIP() << "other users cannot reach the build folder";
  EXPECT_EQ(status, 0);
}

TEST(CgroupTest, OnlyTheDeadOfThisNamespaceAreSwept) {
  EXPECT_FALSE(MakerIsGone(MakerName() + "-0"));
  EXPECT_FALSE(MakerIsGone("allranks-1-2-3-4"));  // of another namespace
  EXPECT_FALSE(MakerIsGone("allranks"));
  EXPECT_FALSE(MakerIsGone("allranks-"));
  const std::string mine = MakerName();
  const std::string reborn = mine.substr(0, mine.rfind('-')) + "-1-0";
  EXPECT_TRUE(MakerIsGone(reborn)) << "same number, another process";
}

}  // namespace
}  // namespace allranks::judge
