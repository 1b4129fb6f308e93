#include "node/state/host_view.h"

#include <algorithm>
#include <cstring>

namespace allranks::node {
namespace {

constexpr std::size_t kPiece = 64;  // compared in one go

// `visit(from, to)` for each range in which the two differ; both have `size` bytes.
template <class F>
void ForDifferences(const std::byte* a, const std::byte* b, std::size_t size, F visit) {
  for (std::size_t at = 0; at < size;) {
    const std::size_t part = std::min(kPiece, size - at);
    if (std::memcmp(a + at, b + at, part) == 0) {
      at += part;
      continue;
    }
    while (a[at] == b[at]) ++at;
    std::size_t end = at + 1;
    while (end < size && a[end] != b[end]) ++end;
    visit(at, end);
    at = end;
  }
}

}  // namespace

void HostView::Show(std::span<const std::byte> now) {
  const std::size_t size = std::min(now.size(), shown_.size());
  ForDifferences(now.data(), shown_.data(), size, [&](std::size_t from, std::size_t to) {
    std::memcpy(bytes_.data() + from, now.data() + from, to - from);
    std::memcpy(shown_.data() + from, now.data() + from, to - from);
  });
}

void HostView::Take(const std::function<void(std::size_t, std::span<const std::byte>)>& taken) {
  // The process may write on while this looks: what is taken is one copy.
  const std::vector<std::byte> found(bytes_.begin(), bytes_.end());
  ForDifferences(found.data(), shown_.data(), shown_.size(), [&](std::size_t from, std::size_t to) {
    taken(from, std::span(found).subspan(from, to - from));
    std::memcpy(shown_.data() + from, found.data() + from, to - from);
  });
}

}  // namespace allranks::node
