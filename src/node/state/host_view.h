// A host's own view of pinned memory. Where host code is judged, the bytes that its process has
// mapped are not those that devices write: a device's store changes the node's bytes when it is
// issued, and the view when it has arrived. So host code finds nothing before its time, however it
// reads, and what it has written is taken over at its next message.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace allranks::node {

class HostView {
 public:
  // `bytes`: what the process has mapped, too.
  explicit HostView(std::span<std::byte> bytes)
      : bytes_(bytes), shown_(bytes.begin(), bytes.end()) {}

  // Before host code goes on: `now` is what has arrived. Only what differs from the last time is
  // written, so that a thread that runs meanwhile keeps what it has stored.
  void Show(std::span<const std::byte> now);
  // After host code has run: `taken(offset, bytes)` for each range that it has changed.
  void Take(const std::function<void(std::size_t, std::span<const std::byte>)>& taken);
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
  std::vector<std::byte> shown_;
};

}  // namespace allranks::node
