// See host_remedy.h.
#include "node/check/host_remedy.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "node/check/checker.h"

namespace allranks::node::check {
namespace {

// The event is recorded behind all that its stream has so far. It belongs to that stream's device.
constexpr const char* kEvent =
    "{ cudaEvent_t order_; int home_, device_; cudaGetDevice(&home_); "
    "cudaStreamGetDevice($to.stream, &device_); cudaSetDevice(device_); "
    "cudaEventCreateWithFlags(&order_, cudaEventDisableTiming); "
    "cudaEventRecord(order_, $to.stream); cudaSetDevice(home_); "
    "cudaStreamWaitEvent($at.stream, order_, 0); cudaEventDestroy(order_); }";
constexpr const char* kEventOfOneDevice =
    "{ cudaEvent_t order_; cudaEventCreateWithFlags(&order_, cudaEventDisableTiming); "
    "cudaEventRecord(order_, $to.stream); cudaStreamWaitEvent($at.stream, order_, 0); "
    "cudaEventDestroy(order_); }";
constexpr const char* kWait = "cudaStreamSynchronize($to.stream);";
constexpr const char* kEdge =
    "cudaGraphAddDependencies($to.graph, $to.node, $at.node, nullptr, 1);";

// A stream's own write is strong.
constexpr const char* kWriteByte =
    "(cudaError_t)cuStreamWriteValue32($at.stream, (CUdeviceptr)($at.0), "
    "0x01010101u * (unsigned char)($at.1), 0)";
// What the copy would bring when the stream comes to it.
constexpr const char* kWriteCopied =
    "[&] { unsigned value_ = 0; cudaMemcpyAsync(&value_, $at.1, 4, cudaMemcpyDefault, $at.stream); "
    "cudaStreamSynchronize($at.stream); return (cudaError_t)cuStreamWriteValue32($at.stream, "
    "(CUdeviceptr)($at.0), value_, 0); }()";

// Without lines the name of what is called there has to do.
std::vector<Edit::Place> PlacesOf(const HostSite& site, const std::string& name) {
  std::vector<Edit::Place> places;
  for (const HostFrame& frame : site.frames) {
    if (frame.file.empty()) break;
    places.push_back({frame.file, frame.line, 0, frame.function});
  }
  if (places.empty()) places.push_back({"", 0, 0, name});
  return places;
}

std::string NameOf(const FindingAccess& access) {
  if (!access.kernel.empty()) return access.kernel;
  return access.site.call.empty() ? access.what : access.site.call;
}

std::vector<Edit::Place> PlacesOf(const FindingAccess& access) {
  return PlacesOf(access.site, NameOf(access));
}

Edit HostEdit(Edit::Action action, std::vector<Edit::Place> at, std::vector<Edit::Place> to,
              std::string text) {
  Edit edit;
  edit.action = action;
  edit.by = Edit::By::kHost;
  edit.at = std::move(at);
  edit.to = std::move(to);
  edit.text = std::move(text);
  return edit;
}

// "cudaMemcpyAsync at a.cu:12"; without a site "the copy of stream 12".
std::string Called(const FindingAccess& access) {
  const std::string place = access.site.Place();
  if (place.empty()) return fmt::format("the {} of {}", access.what, access.stream);
  return fmt::format("{} at {}", access.kernel.empty() ? NameOf(access) : "the launch", place);
}

}  // namespace

void OrderOperations(const LaunchInfo& before, const LaunchInfo& after, Finding* finding) {
  // Which was given to its stream first comes first.
  const bool turned = before.op != 0 && after.op != 0 && before.op > after.op;
  const FindingAccess& one = finding->accesses[turned ? 0 : 1];
  const FindingAccess& two = finding->accesses[turned ? 1 : 0];
  const auto add = [&](Edit::Action action, const FindingAccess& at, const FindingAccess& to,
                       std::string text) {
    finding->edits.push_back(HostEdit(action, PlacesOf(at), PlacesOf(to), std::move(text)));
    finding->edits.back().form = NameOf(at);
  };
  if (before.process != after.process) {
    // Processes tell each other by means of their own, behind the call: then it has to be over.
    if (one.site.Place().empty()) return;
    finding->advice = fmt::format(
        "let the process of rank {} wait (cudaStreamSynchronize) after {} before it notifies the "
        "other process; or record an interprocess event there and let the stream of {} wait for it",
        one.rank, Called(one), Called(two));
    add(Edit::Action::kInsertAfter, one, one, kWait);
    return;
  }
  const bool nodes =
      one.site.call.starts_with("cudaGraphAdd") || one.site.call.starts_with("cuGraphAdd");
  const bool both = nodes && (two.site.call.starts_with("cudaGraphAdd") ||
                              two.site.call.starts_with("cuGraphAdd"));
  if (both) {
    finding->advice =
        fmt::format("add an edge to the graph: the node of {} depends on the node of {}",
                    Called(two), Called(one));
    add(Edit::Action::kInsertAfter, two, one, kEdge);
    return;
  }
  const bool same = one.device == two.device;
  add(Edit::Action::kInsertBefore, two, one, same ? kEventOfOneDevice : kEvent);
}

void OrderHost(const FindingAccess& host, const FindingAccess& operation, Finding* finding) {
  if (host.site.Place().empty() || operation.site.Place().empty()) return;
  finding->edits.push_back(
      HostEdit(Edit::Action::kInsertBefore, PlacesOf(host), PlacesOf(operation), kWait));
}

void OrderFlag(const FindingAccess& operation, const HostSite& flag, Finding* finding) {
  if (flag.Place().empty() || operation.site.Place().empty()) return;
  const bool stream = !flag.call.empty();
  finding->advice = stream ? fmt::format(
                                 "before {} at {}, let its stream wait for an event that is "
                                 "recorded after {}",
                                 flag.call, flag.Place(), Called(operation))
                           : fmt::format(
                                 "before the flag is stored at {}, let the host wait for {} "
                                 "(cudaStreamSynchronize)",
                                 flag.Place(), Called(operation));
  finding->edits.push_back(HostEdit(Edit::Action::kInsertBefore, PlacesOf(flag, flag.call),
                                    PlacesOf(operation), stream ? kEvent : kWait));
}

void WriteFlagByStream(const FindingAccess& operation, Finding* finding) {
  if (operation.bytes != 4) return;
  const std::string& call = operation.site.call;
  const char* text = call == "cudaMemsetAsync"                      ? kWriteByte
                     : call == "cudaMemcpyAsync" && operation.write ? kWriteCopied
                                                                    : nullptr;
  if (text == nullptr) return;
  Edit edit = HostEdit(Edit::Action::kReplace, PlacesOf(operation), {}, text);
  edit.from = call;
  finding->edits.push_back(std::move(edit));
}

bool ResetBeforeUse(const FindingAccess& memset, const FindingAccess& kernel, bool counts,
                    Finding* finding) {
  if (memset.what != "memset" || memset.site.Place().empty()) return false;
  if (memset.rank != kernel.rank) {
    // Once others can use it, nothing tells them that it is cleared.
    if (memset.allocated.Place().empty()) return false;
    finding->advice = fmt::format(
        "clear the memory before other processes can use it: move {} after the allocation at {}",
        Called(memset), memset.allocated.Place());
    finding->edits.push_back(HostEdit(Edit::Action::kMoveAfter, PlacesOf(memset),
                                      PlacesOf(memset.allocated, memset.allocated.call), ""));
    return true;
  }
  if (!counts || memset.device == kernel.device || kernel.site.Place().empty()) return false;
  finding->advice = fmt::format(
      "reset the counters of all devices before the first kernel that adds to them is launched: "
      "move {} out of the loop of {}, between waits for all devices",
      Called(memset), Called(kernel));
  finding->edits.push_back(HostEdit(Edit::Action::kHoist, PlacesOf(memset), PlacesOf(kernel), ""));
  finding->edits.back().form = NameOf(memset);
  return true;
}

namespace {

// As the text of the program has them, in the function that makes both.
bool ComesBefore(const HostSite& a, const HostSite& b) {
  if (a.frames.empty() || b.frames.empty()) return false;
  const HostFrame &x = a.frames.back(), &y = b.frames.back();
  return !x.file.empty() && x.file == y.file && x.function == y.function && x.line < y.line;
}

}  // namespace

void OrderFree(const FindingAccess& kernel, bool same_stream, bool waits, Finding* finding) {
  if (kernel.freed.Place().empty() || kernel.site.Place().empty()) return;
  const std::string& call = kernel.freed.call;
  const std::string launch = kernel.site.Place();
  const std::vector<Edit::Place> at = PlacesOf(kernel.freed, call), to = PlacesOf(kernel);
  const bool ordered = call.ends_with("Async");  // by a stream
  const bool before = ComesBefore(kernel.freed, kernel.site);
  const auto tell = [&](const char* when, const std::string& what, Edit::Action action,
                        const char* text) {
    finding->advice = fmt::format("{} at {} comes {}: {}", call, kernel.freed.Place(), when, what);
    finding->edits.push_back(HostEdit(action, at, to, text));
  };
  if (same_stream) {
    tell("before a kernel of its stream that uses the memory",
         fmt::format("move it after the launch at {}", launch), Edit::Action::kMoveAfter, "");
  } else if (ordered) {
    tell("too early",
         fmt::format("let its stream wait for an event after the launch at {}", launch),
         before ? Edit::Action::kMoveAfter : Edit::Action::kInsertBefore, kEvent);
  } else if (before || waits) {
    // A kernel that waits for a flag may need what is launched behind it.
    tell(before ? "before a kernel that uses the memory" : "too early",
         fmt::format("move it to where the host has waited for the launch at {}", launch),
         Edit::Action::kMoveAfter, kWait);
  } else {
    tell("too early", fmt::format("wait for the stream of the launch at {} first", launch),
         Edit::Action::kInsertBefore, kWait);
  }
}

void GrantAccess(const FindingAccess& kernel, int user, int owner, bool pool, Finding* finding) {
  if (kernel.site.Place().empty() || user < 0 || owner < 0) return;
  if (pool && kernel.allocated.call != "cudaMallocAsync") return;
  const std::string text =
      pool ? fmt::format(
                 "{{ cudaMemPool_t pool_; cudaDeviceGetMemPool(&pool_, {}); cudaMemAccessDesc "
                 "access_ = {{{{cudaMemLocationTypeDevice, {}}}, "
                 "cudaMemAccessFlagsProtReadWrite}}; cudaMemPoolSetAccess(pool_, &access_, 1); }}",
                 owner, user)
           : fmt::format(
                 "{{ int home_; cudaGetDevice(&home_); cudaSetDevice({}); if "
                 "(cudaDeviceEnablePeerAccess({}, 0) != cudaSuccess) cudaGetLastError(); "
                 "cudaSetDevice(home_); }}",
                 user, owner);
  finding->advice = fmt::format("before the launch at {}, {}", kernel.site.Place(),
                                pool ? fmt::format("let device {} use the pool of device {} "
                                                   "(cudaMemPoolSetAccess)",
                                                   user, owner)
                                     : fmt::format("call cudaDeviceEnablePeerAccess({}, 0) with "
                                                   "device {} current",
                                                   owner, user));
  finding->edits.push_back(HostEdit(Edit::Action::kInsertBefore, PlacesOf(kernel), {}, text));
  finding->edits.back().form = NameOf(kernel);
}

}  // namespace allranks::node::check
