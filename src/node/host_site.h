// Where host code asked for something: the API call that it made, and the calls that led to it.
// The server knows which call is being carried out (Checking::SetCaller) and resolves sites only
// when a finding names one; operations and objects remember no more than a number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace allranks::node {

using SiteId = std::uint32_t;  // 0: not known

struct HostFrame {
  std::string file;  // empty: compiled without -g
  int line = 0;
  std::string function;  // without a line "Exchange(int)+0x1c", or "program+0x1234"

  bool operator==(const HostFrame&) const = default;
  // "a.cu:12", or the function.
  std::string Place() const { return file.empty() ? function : file + ":" + std::to_string(line); }
};

struct HostSite {
  std::string call;               // "cudaMemcpyAsync"; empty: an access of the host's own
  std::vector<HostFrame> frames;  // of the program, innermost first

  bool known() const { return !call.empty() || !frames.empty(); }
  // "a.cu:12"; empty: not known.
  std::string Place() const { return frames.empty() ? std::string() : frames[0].Place(); }
};

class HostSites {
 public:
  virtual ~HostSites() = default;
  // Nothing of it is known: an empty one.
  virtual const HostSite& Of(SiteId id) = 0;
};

}  // namespace allranks::node
