// What stands in for a sandbox under --trusted: paths, files, descriptors, bounds and the end.
#include "judge/trusted.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "judge/scratch.h"

namespace allranks::judge {
namespace {

namespace fs = std::filesystem;
using Why = SandboxEnd::Why;

SandboxSpec Shell(const std::string& line) {
  SandboxSpec spec;
  spec.name = "shell";
  spec.trusted = true;
  spec.command = {"/bin/sh", "-c", line};
  return spec;
}

SandboxEnd EndOf(const SandboxSpec& spec) {
  const auto sandbox = Sandbox::Start(spec);
  EXPECT_TRUE(sandbox) << sandbox.error().message;
  return sandbox ? (*sandbox)->Wait() : SandboxEnd();
}

TEST(TrustedTest, PathsInsideAreThoseBelowTheScratchFolder) {
  const auto below = [](const char* word) { return PathsBelow("/s", {"/tmp", "/allranks"}, word); };
  EXPECT_EQ(below("/tmp/rank"), "/s/tmp/rank");
  EXPECT_EQ(below("/tmp"), "/s/tmp");
  EXPECT_EQ(below("nvcc -I/tmp -I/allranks/include -L/allranks/shim -c x"),
            "nvcc -I/s/tmp -I/s/allranks/include -L/s/allranks/shim -c x");
  EXPECT_EQ(below("LD_PRELOAD=/allranks/a.so:/allranks/b.so"),
            "LD_PRELOAD=/s/allranks/a.so:/s/allranks/b.so");
  // Others that only look alike.
  for (const char* word : {"/tmpfs", "/opt/tmp/x", "/srv/lib/allranks/x", "-lallranks", "x/tmp"})
    EXPECT_EQ(below(word), word);
}

TEST(TrustedTest, ReportsHavePathsAsInASandbox) {
  EXPECT_EQ(AsInSandbox("at /var/x/allranks-1-2-Ab/tmp/candidate.cu:7, /tmp/allranks-3/tmp/p.h:1"),
            "at /tmp/candidate.cu:7, /tmp/p.h:1");
  for (const char* text : {"/tmp/candidate.cu:7", "/home/me/allranks-main/x.cu", "/allranks-x", ""})
    EXPECT_EQ(AsInSandbox(text), text);
  EXPECT_EQ(BuildFolderIn("/tmp/allranks-3/tmp/candidate.cu"), "/tmp/allranks-3/tmp/");
}

TEST(TrustedTest, FilesGoInAndResultsComeOut) {
  const Scratch outside = Scratch::Make().value();
  fs::create_directory(outside.path() + "/given");
  SandboxSpec spec = Shell(
      "pwd; cat in.txt /allranks/given/more; echo made > /tmp/out; echo x > /tmp/link.to; "
      "ln -s link.to /tmp/link; echo wrong >&2");
  spec.files = {{"/tmp/in.txt", "in\n"}, {"/allranks/given/more", "more\n"}};
  spec.environment = {"ONLY=this"};
  spec.collect = {"/tmp/out", "/tmp/missing", "/tmp/link"};
  const SandboxEnd end = EndOf(spec);
  EXPECT_EQ(end.why, Why::kExit);
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_NE(end.out.find("/tmp\nin\nmore\n"), std::string::npos) << end.out;
  EXPECT_EQ(end.err, "wrong\n");
  ASSERT_EQ(end.collected.size(), 3u);
  EXPECT_EQ(end.collected[0], "made\n");
  EXPECT_FALSE(end.collected[1]);
  EXPECT_FALSE(end.collected[2]) << "a link";
  // The folder is gone.
  const std::string folder = end.out.substr(0, end.out.find('\n'));
  EXPECT_FALSE(fs::exists(folder)) << folder;
}

TEST(TrustedTest, BindsAreLinksAndDescriptorsKeepTheirNumbers) {
  const Scratch outside = Scratch::Make().value();
  fs::create_directory(outside.path() + "/given");
  std::ignore = std::system(("echo text > " + outside.path() + "/given/file").c_str());
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  SandboxSpec spec = Shell("cat /allranks/given/file >&" + std::to_string(ends[1]) + "; env");
  spec.binds = {{outside.path() + "/given", "/allranks/given", false}};
  spec.environment = {"PATH=/usr/bin:/bin", "WHERE=/allranks/given"};
  spec.descriptors = {ends[1]};
  const SandboxEnd end = EndOf(spec);
  char text[16] = {};
  EXPECT_EQ(read(ends[0], text, sizeof text), 5) << end.err;
  EXPECT_EQ(std::string(text), "text\n");
  EXPECT_NE(end.out.find("/allranks/given\n"), std::string::npos) << end.out;
  EXPECT_EQ(end.out.find("WHERE=/allranks"), std::string::npos) << "below the scratch folder";
  EXPECT_EQ(end.out.find("HOME="), std::string::npos) << "no variable of ours";
  close(ends[0]);
  close(ends[1]);
}

TEST(TrustedTest, EndsAreToldApartAndNothingIsLeft) {
  EXPECT_EQ(EndOf(Shell("exit 3")).code, 3);
  const SandboxEnd killed = EndOf(Shell("kill -SEGV $$"));
  EXPECT_EQ(killed.why, Why::kSignal);
  EXPECT_EQ(killed.code, SIGSEGV);
  SandboxSpec busy = Shell("while :; do :; done");
  busy.limits.cpu = std::chrono::milliseconds(100);
  EXPECT_EQ(EndOf(busy).why, Why::kCpu);
  SandboxSpec idle = Shell("sleep 1000");
  idle.limits.idle = std::chrono::milliseconds(100);
  EXPECT_EQ(EndOf(idle).why, Why::kIdle);
  SandboxSpec loud = Shell("while :; do echo y; done");
  loud.limits.output_bytes = 1000;
  EXPECT_EQ(EndOf(loud).why, Why::kOutput);
  EXPECT_EQ(EndOf(loud).out.size(), 1000u);
  // What it has started ends with it, too: its number is no process any more.
  const SandboxEnd parent = EndOf(Shell("sleep 1000 >/dev/null 2>&1 & echo $!"));
  EXPECT_EQ(parent.code, 0);
  const pid_t child = std::atoi(parent.out.c_str());
  ASSERT_GT(child, 1);
  // Gone, or a zombie that nobody has reaped yet. The signal was sent before the parent's end was
  // told; the kernel may take a moment to deliver it.
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    text.clear();
    std::getline(stat, text);
    if (text.empty() || text.find(") Z ") != std::string::npos) break;
    usleep(10'000);
  }
  EXPECT_TRUE(text.empty() || text.find(") Z ") != std::string::npos) << text;
  SandboxSpec missing = Shell("");
  missing.command = {"/no/such/program"};
  EXPECT_FALSE(Sandbox::Start(missing));
}

TEST(TrustedTest, KillEndsIt) {
  const auto sandbox = Sandbox::Start(Shell("sleep 1000"));
  ASSERT_TRUE(sandbox);
  EXPECT_TRUE((*sandbox)->AwaitStart());
  (*sandbox)->Kill();
  EXPECT_EQ((*sandbox)->Wait().why, Why::kKilled);
  EXPECT_TRUE((*sandbox)->descriptors().empty());
}

}  // namespace
}  // namespace allranks::judge
