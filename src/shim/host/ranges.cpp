// What the program marks by NVTX, on its way to the node. An event is written down with the
// thread's clock and goes with the thread's next message, so that it costs neither virtual time nor
// a message; only when there is no more room, and at the process's end, is there one for its sake.
// nvtx/nvtx.cpp calls this.
#include <string.h>

#include <algorithm>
#include <limits>

#include "shim/abi.h"
#include "shim/host/link.h"

namespace allranks::shim {
namespace {

void Flush(Thread* thread) {
  if (thread->ranges != 0) Call(thread, wire::Ranges{});
}

std::string Cut(const char* text) {
  return text == nullptr ? std::string() : std::string(text, strnlen(text, wire::kMaxRangeText));
}

// The program's last messages are often followed by the end of a range.
__attribute__((destructor)) void End() {
  if (Thread* thread = Self(); thread != nullptr) Flush(thread);
}

}  // namespace
}  // namespace allranks::shim

void ar_range(int kind, std::uint64_t id, const char* domain, const char* text) {
  namespace shim = allranks::shim;
  namespace wire = allranks::wire;
  shim::Thread* thread = shim::Self();
  if (thread == nullptr) return;
  wire::Blob bytes;
  {
    shim::Inside inside;
    wire::RangeEvent event;
    event.kind = static_cast<wire::RangeEvent::Kind>(kind);
    event.at = thread->clock + thread->local;
    event.id = id;
    event.domain = shim::Cut(domain);
    event.text = shim::Cut(text);
    wire::EncodeTo(event, bytes);
    if (thread->range_bytes == nullptr) thread->range_bytes = new std::byte[wire::kMaxRangeBytes];
  }
  if (thread->ranges == wire::kMaxRanges ||
      thread->range_size + bytes.size() > wire::kMaxRangeBytes)
    shim::Flush(thread);
  memcpy(thread->range_bytes + thread->range_size, bytes.data(), bytes.size());
  thread->range_size += bytes.size();
  ++thread->ranges;
}
