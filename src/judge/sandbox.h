// Runs an untrusted program: bubblewrap for namespaces and files, a seccomp filter, bounds on
// memory, processes, CPU, output and files, and an end that leaves nothing behind. Used for the
// compiler, the ranks and the node alike; sandbox.cpp has the theory of operation.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace allranks::judge {

struct Bind {
  std::string from, to;  // paths outside and inside
  bool writable = false;
};

// A file that is made in the private /tmp before the program starts.
struct SandboxFile {
  std::string path;  // inside
  std::string bytes;
};

struct SandboxLimits {
  std::uint64_t memory_bytes = 2ull << 30;  // of all its processes together, files in memory too
  // Of the private /tmp, and of any one file. 0: there is no place that can be written to, which is
  // best for ranks and nodes.
  std::uint64_t file_bytes = 64ull << 20;
  std::uint32_t files = 4096;    // inodes of it
  std::uint32_t processes = 64;  // and threads
  std::uint32_t descriptors = 256;
  std::chrono::milliseconds cpu{10'000};  // of all its processes together
  // It is ended when for so long it has used less than a hundredth of that time: it hangs. How long
  // it takes altogether is up to the machine and its other work.
  std::chrono::milliseconds idle{60'000};
  std::uint64_t output_bytes = 256 << 10;  // of stdout and stderr each; more ends it
};

class Sandbox;

struct SandboxSpec {
  enum class Filter {
    kCompiler,  // may start programs and make files
    kRank,      // threads and the node's socket; no new programs
    kNode,      // as kRank; forks
    kTeam,      // as kRank; TCP on the loopback of its network
  };
  std::string name;                      // for reports: "compiler", "rank 3"
  std::vector<std::string> command;      // path inside
  std::vector<std::string> environment;  // NAME=VALUE, all there is
  std::vector<Bind> binds;      // beside the read-only system (/usr, /lib*, /bin, a bare /etc)
  std::string folder = "/tmp";  // it starts there
  Filter filter = Filter::kRank;
  SandboxLimits limits;
  // Descriptors that it gets, each under the same number inside; all others are closed.
  std::vector<int> descriptors;
  // The network namespace of this one, which has started, instead of an own one.
  const Sandbox* network_of = nullptr;
  bool no_address_randomization = false;
  bool trusted =
      false;          // no sandbox at all (trusted.h): `filter`, `network_of`, `proc` mean nothing
  bool proc = false;  // has a /proc, which shows its own processes only
  std::vector<SandboxFile> files;
  // Files to take out when it has ended with code 0 (paths inside). Only plain files of at most
  // `file_bytes` are taken: no links, pipes or devices.
  std::vector<std::string> collect;
};

struct SandboxEnd {
  enum class Why {
    kExit,    // `code`
    kSignal,  // `code` is the signal's number
    kMemory,
    kProcesses,
    kCpu,
    kIdle,
    kOutput,
    kFiles,
    kKilled,   // by Kill()
    kSandbox,  // the sandbox itself failed: our fault; `text` says how
  };
  Why why = Why::kExit;
  int code = 0;
  std::string text;
  std::string out, err;  // what it wrote, cut at the limit
  double cpu_seconds = 0;
  std::uint64_t peak_memory = 0;
  // As `collect` asked, in its order; nothing where there was no such file.
  std::vector<std::optional<std::string>> collected;
};

// What this machine offers; found out once.
struct SandboxMeans {
  std::string cgroup;       // "v1", "v2" or "none": then rlimits alone
  bool drops_user = false;  // runs as nobody, because this process is root
  std::string missing;      // why no sandbox can be had; empty if one can
};
const SandboxMeans& Means();

// The thread that starts a sandbox must outlive it: what runs inside dies with that thread.
class Sandbox {
 public:
  static Result<std::unique_ptr<Sandbox>> Start(const SandboxSpec& spec);
  virtual ~Sandbox() = default;  // kills what is left

  // Waits until its program runs; then its network is there for others. False: it ended before.
  virtual bool AwaitStart() = 0;
  // Its process 1, once it has started; -1: it has ended.
  virtual int pidfd() const = 0;
  // Readable when there is something for Poll() to do, for the caller's own poll loop.
  virtual std::vector<int> descriptors() const = 0;
  // Takes output, enforces bounds. True when it has ended and nothing of it is left.
  virtual bool Poll() = 0;
  // How long the caller may wait before the next Poll().
  virtual std::chrono::milliseconds Patience() const = 0;
  // Used so far, by all its processes.
  virtual double CpuSeconds() const = 0;
  // From here on it may use so much altogether.
  virtual void SetCpu(std::chrono::milliseconds cpu) = 0;
  virtual void Kill() = 0;
  // Blocks until it has ended.
  virtual const SandboxEnd& Wait() = 0;
  virtual const SandboxEnd& end() const = 0;
};

// Ends what earlier processes of this program left behind (their own pid is part of the name).
void SweepLeftovers();

}  // namespace allranks::judge
