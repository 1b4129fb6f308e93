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

void WriteFlagByStream(const FindingAccess& memset, Finding* finding) {
  if (memset.site.call != "cudaMemsetAsync" || memset.bytes != 4) return;
  Edit edit = HostEdit(Edit::Action::kReplace, PlacesOf(memset), {},
                       "(cudaError_t)cuStreamWriteValue32($at.stream, (CUdeviceptr)($at.0), "
                       "0x01010101u * (unsigned char)($at.1), 0)");
  edit.from = memset.site.call;
  finding->edits.push_back(std::move(edit));
}

void OrderFree(const FindingAccess& kernel, bool same_stream, Finding* finding) {
  if (kernel.freed.Place().empty() || kernel.site.Place().empty()) return;
  const std::string& call = kernel.freed.call;
  const std::vector<Edit::Place> at = PlacesOf(kernel.freed, call);
  const bool ordered = call.ends_with("Async");  // by a stream
  finding->advice = fmt::format(
      "{} at {} comes {}: {}", call, kernel.freed.Place(),
      same_stream ? "before a kernel of its stream that uses the memory" : "too early",
      same_stream ? fmt::format("move it after the launch at {}", kernel.site.Place())
      : ordered
          ? fmt::format("let its stream wait for an event after the launch at {}",
                        kernel.site.Place())
          : fmt::format("wait for the stream of the launch at {} first", kernel.site.Place()));
  if (same_stream) {
    finding->edits.push_back(HostEdit(Edit::Action::kMoveAfter, at, PlacesOf(kernel), ""));
    return;
  }
  finding->edits.push_back(
      HostEdit(Edit::Action::kInsertBefore, at, PlacesOf(kernel), ordered ? kEvent : kWait));
}

}  // namespace allranks::node::check
