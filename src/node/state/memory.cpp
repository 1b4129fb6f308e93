// Objects and address tables; see memory.h.
#include "node/state/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "node/state/host_view.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kLargePage = std::uint64_t{2} << 20;
constexpr std::size_t kMaxRetired = 256;
constexpr std::uint64_t kSmallVariable = 1024;  // bytes
constexpr std::uint64_t kSmallUnit = 64;

std::uint64_t RoundUp(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

const Multicast::Segment* Multicast::Find(std::uint64_t offset) const {
  const auto next =
      std::upper_bound(segments.begin(), segments.end(), offset,
                       [](std::uint64_t at, const Segment& segment) { return at < segment.end; });
  return next != segments.end() && next->begin <= offset ? &*next : nullptr;
}

const Mapping* AddressTable::Find(Address address) const {
  auto it = mappings_.upper_bound(address);
  if (it == mappings_.begin()) return nullptr;
  --it;
  return address - it->second.base < it->second.size ? &it->second : nullptr;
}

const Mapping* AddressTable::Nearest(Address address) const {
  auto above = mappings_.lower_bound(address);
  const Mapping* best = above == mappings_.end() ? nullptr : &above->second;
  if (above != mappings_.begin()) {
    const Mapping& below = std::prev(above)->second;
    if (best == nullptr || address - (below.base + below.size) < best->base - address)
      best = &below;
  }
  return best;
}

void AddressTable::Insert(Mapping mapping) {
  ++mapping.object->mappings;
  ++version_;
  const Address base = mapping.base;
  if (mapping.object->HostVisible()) host_visible_.emplace(base, mapping.object);
  const bool fresh = mappings_.emplace(base, std::move(mapping)).second;
  CHECK(fresh);
}

bool AddressTable::Erase(Address base) {
  auto it = mappings_.find(base);
  if (it == mappings_.end()) return false;
  --it->second.object->mappings;
  ++version_;
  host_visible_.erase(base);
  mappings_.erase(it);
  return true;
}

void AddressTable::Grant(Address base, Mapping::Rights rights, const DeviceSet& readers,
                         const DeviceSet& writers) {
  const auto it = mappings_.find(base);
  CHECK(it != mappings_.end());
  it->second.rights = rights;
  it->second.readers = readers;
  it->second.writers = writers;
  ++version_;
}

void AddressTable::GrantHost(Address base, bool reads, bool writes) {
  const auto it = mappings_.find(base);
  CHECK(it != mappings_.end());
  it->second.host_reads = reads;
  it->second.host_writes = writes;
}

Place Place::Slice(std::uint64_t from, std::uint64_t size) const {
  Place slice;
  slice.multicast = multicast;
  if (parts == nullptr) {
    slice.object = object;
    slice.offset = offset + from;
    return slice;
  }
  auto pieces = std::make_shared<std::vector<Part>>();
  for (const Part& part : *parts) {
    const std::uint64_t begin = std::max(from, part.at);
    const std::uint64_t end = std::min(from + size, part.at + part.size);
    if (begin >= end) continue;
    pieces->push_back({begin - from, end - begin, part.object, part.offset + (begin - part.at)});
  }
  slice.object = pieces->front().object;
  slice.offset = pieces->front().offset;
  if (pieces->size() > 1 || multicast) slice.parts = std::move(pieces);
  return slice;
}

Address Arena::Take(std::uint64_t size, std::uint64_t granule) {
  const std::uint64_t whole = RoundUp(size == 0 ? 1 : size, granule) + granule;
  if (whole > size_) return 0;
  // Large ranges begin where a large page would, which multicast objects ask for.
  const std::uint64_t align = size >= kLargePage ? kLargePage : granule;
  Address at = RoundUp(base_ + full_, align);
  for (auto next = taken_.lower_bound(base_ + full_); next != taken_.end(); ++next) {
    const auto [start, length] = *next;
    if (start >= at && start - at >= whole) break;
    at = RoundUp(std::max(at, start + length), align);
  }
  if (at - base_ > size_ - whole) {
    if (retired_.empty()) return 0;
    for (const Address old : std::exchange(retired_, {})) Return(old);
    return Take(size, granule);
  }
  taken_[at] = whole;
  for (auto next = taken_.find(base_ + full_); next != taken_.end() && next->first == base_ + full_;
       ++next)
    full_ += next->second;
  return at;
}

void Arena::Return(Address address) {
  if (taken_.erase(address) != 0) full_ = std::min(full_, address - base_);
}

void Arena::Retire(Address address) {
  if (!taken_.contains(address)) return;
  retired_.push_back(address);
  if (retired_.size() <= kMaxRetired) return;
  Return(retired_.front());
  retired_.pop_front();
}

std::shared_ptr<Object> Backing::Create(Object::Kind kind, int device, ProcessId owner,
                                        std::uint64_t size) {
  const std::uint64_t mapped = RoundUp(size == 0 ? 1 : size, kPage);
  if (size > limit_ || *used_ > limit_ - mapped) return nullptr;
  // A library has a thousand variables of a few bytes, on each device: pages for each would take
  // longer than their values.
  const bool small =
      (kind == Object::Kind::kGlobal || kind == Object::Kind::kConst) && size <= kSmallVariable;
  const std::uint64_t backed = small ? RoundUp(size == 0 ? 1 : size, kSmallUnit) : mapped;
  int fd = -1;
  void* data = MAP_FAILED;
  if (kind == Object::Kind::kPinned || kind == Object::Kind::kManaged) {
    fd = memfd_create("allranks-pinned", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return nullptr;
    // Sealed against shrinking before anybody else has it: a rank that could truncate it would
    // kill the node with SIGBUS.
    if (ftruncate(fd, static_cast<off_t>(mapped)) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
      close(fd);
      return nullptr;
    }
    data = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  } else if (small) {
    data = std::aligned_alloc(kSmallUnit, backed);
    if (data == nullptr) return nullptr;
    std::memset(data, 0, backed);
  } else {
    data = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (data == MAP_FAILED) {
    if (fd >= 0) close(fd);
    return nullptr;
  }
  *used_ += mapped;
  auto* object = new Object;
  object->id = next_id_++;
  object->kind = kind;
  object->device = device;
  object->owner = owner;
  object->size = size;
  object->mapped = backed;
  object->data = static_cast<std::byte*>(data);
  object->fd = fd;
  return {object, [used = used_, mapped, small](Object* gone) {
            if (small) {
              std::free(gone->data);
            } else {
              munmap(gone->data, mapped);
            }
            if (gone->view != nullptr) munmap(gone->view->bytes().data(), gone->mapped);
            if (gone->fd >= 0) close(gone->fd);
            *used -= mapped;
            delete gone;
          }};
}

}  // namespace allranks::node
