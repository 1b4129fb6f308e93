// Where host code stands: from return addresses of a process to an API call, files and lines.
//
// A stack is made relative to the files that the process has mapped as soon as it comes, so the
// same call has the same site in all ranks. The thread that it belongs to waits for its answer, so
// code on its stack stays mapped; other threads may load libraries, so unknown code is looked for
// again. A page that held no file's code counts as such until the mappings are read for another.
// DWARF is read only when a finding asks for a site (Of), by libdw.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "node/host_site.h"

namespace allranks::server {

class HostSites : public node::HostSites {
 public:
  HostSites();
  ~HostSites() override;

  // Of return addresses, innermost first, those of the shim included. 0: no code of the process.
  node::SiteId OfCall(pid_t pid, std::span<const std::uint64_t> stack);
  // Of an instruction. If it is one of the C or C++ library, of `caller`, if that is code. `above`:
  // where the functions around it return to, as far as that is code; 0: nothing more is known.
  node::SiteId OfAccess(pid_t pid, std::uint64_t pc, std::uint64_t caller,
                        std::span<const std::uint64_t> above);
  // Who has made a call, by the files that its frames belong to.
  struct Caller {
    bool known = false;
    bool runtime = false;  // the function that was called is one of the runtime, not of the driver
    bool library = false;  // its caller is a library that the user did not write
  };
  Caller CallerOf(node::SiteId id) const;
  // The process has another program from now on, or none.
  void Forget(pid_t pid);

  // Function names and lines; without -g functions and offsets.
  const node::HostSite& Of(node::SiteId id) override;

 private:
  struct Mapping {
    std::uint64_t begin = 0, end = 0, offset = 0;
    std::uint32_t module = 0;
  };
  struct Process {
    std::vector<Mapping> code;
    std::set<std::uint64_t> misses;  // pages that were not in the mappings when they were read
    std::map<std::vector<std::uint64_t>, node::SiteId> calls;
    // By instruction, caller (0 where the instruction itself says it) and the functions around it.
    std::map<std::vector<std::uint64_t>, node::SiteId> accesses;
  };
  using Frame = std::pair<std::uint32_t, std::uint64_t>;  // module, offset in its file
  struct Raw {
    std::vector<Frame> frames;
    bool access = false;
    auto operator<=>(const Raw&) const = default;
  };
  class Module;

  // In the mappings that were read before; Find() reads them again if need be.
  static std::optional<Mapping> KnownCode(const Process& process, std::uint64_t address);
  std::optional<Mapping> Find(pid_t pid, Process& process, std::uint64_t address);
  std::uint32_t ModuleOf(const std::string& path);
  node::SiteId Intern(Raw raw);
  node::HostSite Resolve(const Raw& raw);

  std::map<pid_t, Process> processes_;
  std::vector<std::unique_ptr<Module>> modules_;
  std::map<std::string, std::uint32_t> module_ids_;
  std::map<Raw, node::SiteId> ids_;
  std::vector<const Raw*> raw_;  // by id; keys of ids_
  std::map<node::SiteId, node::HostSite> resolved_;
};

}  // namespace allranks::server
