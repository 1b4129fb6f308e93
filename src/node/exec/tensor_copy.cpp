// Tiles of tensors; see tensor_copy.h.
//
// A tile is a list of runs: bytes that are neighbours both in global and in shared memory. Rows of
// the innermost dimension are cut at 16 bytes where shared memory is swizzled. A transfer's buffer
// has the layout of shared memory.
#include "node/exec/tensor_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/tensor_map.h"
#include "node/alu/atomic_ops.h"
#include "node/exec/async_internal.h"
#include "node/exec/bulk.h"
#include "node/exec/sectors.h"

namespace allranks::node {
namespace {

using Next = Simulator::AsyncNext;

constexpr std::uint64_t kTileAlign = 128;
constexpr std::uint32_t kChunk = 16;  // the unit of swizzling

struct Run {
  std::uint32_t at = 0;  // in the buffer
  std::uint32_t size = 0;
  Place global;  // no object: outside the tensor
};

struct Tile {
  TensorMap map;
  std::uint64_t bytes = 0;  // of all elements, inside or outside
  std::vector<Run> runs;
};

// Where a byte of the tile is in shared memory: bits 4.. of the address are xored with bits 7..
std::uint32_t Swizzle(std::uint32_t address, int mode) {
  if (mode == 0) return address;
  const std::uint32_t mask = (1u << mode) - 1;  // 1, 3, 7
  return address ^ ((address >> 7 & mask) << 4);
}

bool LoadMap(Simulator& sim, const Path& path, const AsyncAddress& a, int lane, TensorMap* map) {
  const std::uint64_t address = LaneAddress(path, a, lane);
  const Launch& launch = *path.warp->cta->launch;
  if (address - kParamWindow < kWindowSize) {
    const std::uint64_t offset = address - kParamWindow;
    if (offset > launch.params.size() || launch.params.size() - offset < kTensorMapBytes ||
        offset % 64 != 0) {
      FaultWith(sim, path, "with a tensor map that is not an aligned kernel parameter", lane);
      return false;
    }
    *map = LoadTensorMap(launch.params.data() + offset);
  } else {
    Place place;
    if (!ResolveGlobalAt(sim, path, address, lane, kTensorMapBytes, 64, false, &place))
      return false;
    std::byte bytes[kTensorMapBytes];
    place.Read(bytes, sizeof bytes);
    *map = LoadTensorMap(bytes);
  }
  if (map->Valid()) return true;
  FaultWith(sim, path, "with a tensor map that cuTensorMapEncodeTiled did not create", lane);
  return false;
}

// Finds the runs of the tile at the lane's coordinates whose shared memory begins at `base`.
bool MakeTile(Simulator& sim, const Path& path, const AsyncOp& a, int lane, std::uint32_t base,
              bool write, Tile* tile) {
  const TensorMap& map = tile->map;
  const auto element = static_cast<std::uint32_t>(map.ElementBytes());
  std::int64_t origin[5] = {};
  for (int i = 0; i < map.rank; ++i) {
    origin[i] = static_cast<std::int32_t>(LaneValue(path, a.coordinates[i], lane, 4));
  }
  std::uint32_t index[5] = {};
  std::uint32_t at = 0;  // in the tile, before swizzling
  const std::uint32_t row = map.box[0] * element;
  for (;;) {
    bool inside = true;
    std::uint64_t address = map.address;
    for (int i = 1; i < map.rank; ++i) {
      const std::int64_t c = origin[i] + std::int64_t{index[i]} * map.step[i];
      inside &= c >= 0 && c <= std::int64_t{map.size[i]};
      address += static_cast<std::uint64_t>(c) * map.stride[i - 1];
    }
    // The part of the row that is inside: bytes [begin, end).
    std::int64_t begin = std::clamp<std::int64_t>(-origin[0], 0, map.box[0]);
    std::int64_t end =
        std::clamp<std::int64_t>(std::int64_t{map.size[0]} + 1 - origin[0], begin, map.box[0]);
    if (!inside) begin = end = 0;
    Place place;
    if (end > begin) {
      const std::uint64_t first = address + static_cast<std::uint64_t>(origin[0] + begin) * element;
      if (!ResolveGlobalAt(sim, path, first, lane,
                           static_cast<std::uint64_t>(end - begin) * element, element, write,
                           &place)) {
        return false;
      }
    }
    const auto inside_begin = static_cast<std::uint32_t>(begin) * element;
    const auto inside_end = static_cast<std::uint32_t>(end) * element;
    for (std::uint32_t from = 0; from < row;) {
      const std::uint32_t address32 = base + at + from;
      std::uint32_t size = row - from;
      if (map.swizzle != 0) size = std::min(size, kChunk - address32 % kChunk);
      if (from < inside_begin) size = std::min(size, inside_begin - from);
      if (from < inside_end) size = std::min(size, inside_end - from);
      Run run;
      run.at = Swizzle(address32, map.swizzle) - base;
      run.size = size;
      if (from >= inside_begin && from < inside_end) {
        run.global = place.Slice(from - inside_begin, size);
      }
      tile->runs.push_back(std::move(run));
      from += size;
    }
    at += row;
    int i = 1;
    while (i < map.rank && ++index[i] == map.Taken(i)) index[i++] = 0;
    if (i >= map.rank) break;
  }
  return true;
}

void FillOutside(const TensorMap& map, std::byte* to, std::uint32_t size) {
  std::memset(to, 0, size);
  if (map.fill_nan == 0) return;
  // The canonical NaN of the type: all bits but the sign.
  const auto bytes = static_cast<std::uint32_t>(map.ElementBytes());
  for (std::uint32_t at = 0; at + bytes <= size; at += bytes) {
    std::memset(to + at, 0xff, bytes);
    to[at + bytes - 1] = std::byte{0x7f};
  }
}

Number NumberOf(TensorMap::Type type) {
  using Type = TensorMap::Type;
  switch (type) {
    case Type::kU16:
      return Number::kU16;
    case Type::kS32:
      return Number::kS32;
    case Type::kU64:
      return Number::kU64;
    case Type::kS64:
      return Number::kS64;
    case Type::kF16:
      return Number::kF16;
    case Type::kF64:
      return Number::kF64;
    case Type::kBF16:
      return Number::kBF16;
    case Type::kF32:
    case Type::kF32Ftz:
    case Type::kTF32:
    case Type::kTF32Ftz:
      return Number::kF32;
    default:
      return Number::kU32;
  }
}

Next Copy(Simulator& sim, Path& path, const AsyncOp& a, int lane) {
  Cta& cta = *path.warp->cta;
  Device& device = *cta.launch->device;
  KernelRecord& record = sim.stats.kernels[cta.launch->record];
  const bool load = a.kind == AsyncOpKind::kTensorLoad;
  auto tile = std::make_shared<Tile>();
  if (!LoadMap(sim, path, load ? a.src : a.dst, lane, &tile->map)) return Next::kGone;
  const TensorMap& map = tile->map;
  if (map.rank != a.dimensions) {
    FaultWith(sim, path, fmt::format("with a tensor map of {} dimensions", map.rank), lane);
    return Next::kGone;
  }
  tile->bytes = static_cast<std::uint64_t>(map.ElementBytes());
  for (int i = 0; i < map.rank; ++i) tile->bytes *= map.Taken(i);
  // Swizzling permutes whole lines.
  const std::uint64_t span =
      map.swizzle == 0 ? tile->bytes : (tile->bytes + kTileAlign - 1) / kTileAlign * kTileAlign;
  auto transfer = std::make_shared<Transfer>();
  transfer->pc = path.pc;
  transfer->bytes = tile->bytes;
  SharedPlace shared;
  if (load) {
    if (!AddTargets(sim, path, a, lane, span, kTileAlign, transfer.get())) return Next::kGone;
    if (transfer->targets.empty()) return Next::kGo;
    shared = transfer->targets.front().to;
  } else if (!ResolveShared(sim, path, a.src, lane, span, kTileAlign, true, &shared)) {
    return Next::kGone;
  }
  if (!MakeTile(sim, path, a, lane, shared.offset, !load, tile.get())) return Next::kGone;
  transfer->buffer.resize(span);
  std::uint64_t moved = 0;
  SectorCounter sectors(sim.timing);
  std::shared_ptr<Object> object;
  for (const Run& run : tile->runs) {
    if (run.global.object == nullptr) continue;
    object = run.global.object;
    moved += run.size;
    if (run.global.multicast) continue;
    run.global.ForParts(run.size, [&](const Object& part, std::uint64_t offset, std::uint64_t,
                                      std::uint64_t bytes) { sectors.Add(part, offset, bytes); });
  }
  const Reach reach = sectors.Take();
  const Time now = path.clock;
  if (load) {
    record.bytes_read += moved;
    transfer->read = [tile, shared, span, number = shared.cta->number](std::byte* buffer) {
      // What lies between the tile's end and that of its last line stays as it is.
      if (tile->bytes != span && StillThere(shared.cta, number))
        std::memcpy(buffer, shared.data(), span);
      for (const Run& run : tile->runs) {
        if (run.global.object != nullptr) {
          run.global.Read(buffer + run.at, run.size);
        } else {
          FillOutside(tile->map, buffer + run.at, run.size);
        }
      }
      return true;
    };
    Time read = now + sim.costs.l2 / 2, done = now + sim.costs.l2;
    if (object != nullptr) {
      if (object->device != device.number) record.remote_bytes += moved;
      read = now + sim.timing.DelayTo(device, *object);
      done = sim.timing.ChargeLoad(cta, Mover::kTma, *object, reach, now);
    }
    for (const Run& run : tile->runs) {
      if (run.global.object == nullptr) continue;
      run.global.ForParts(
          run.size, [&](Object& part, std::uint64_t offset, std::uint64_t, std::uint64_t bytes) {
            CheckSource(sim, path, lane, *transfer, part, offset, bytes);
          });
    }
    CheckTargets(sim, path, lane, *transfer, tile->bytes);
    StartTransfer(sim, transfer, read, std::max(read, done));
    return Next::kGo;
  }
  transfer->source = &cta;
  transfer->read = [shared, number = cta.number, span](std::byte* buffer) {
    if (shared.cta->number != number) return false;  // its threads may have left
    std::memcpy(buffer, shared.data(), span);
    return true;
  };
  transfer->write = [&sim, tile, reduce = a.reduce](const std::byte* buffer) {
    for (const Run& run : tile->runs) {
      if (run.global.object == nullptr) continue;
      run.global.ForParts(
          run.size, [&](Object& part, std::uint64_t offset, std::uint64_t at, std::uint64_t bytes) {
            if (reduce == AtomicOp::kNone) {
              std::memcpy(part.data + offset, buffer + run.at + at, bytes);
            } else {
              ReduceBytes(NumberOf(tile->map.type), reduce, part.data + offset,
                          buffer + run.at + at, bytes, true);
            }
            TellWritten(sim, part, offset, bytes);
          });
    }
  };
  transfer->reduce = a.reduce;
  transfer->number = NumberOf(map.type);
  CheckSource(sim, path, lane, *transfer, cta.shared_object, shared.offset, tile->bytes);
  for (const Run& run : tile->runs) {
    if (run.global.object == nullptr) continue;
    run.global.ForParts(
        run.size, [&](Object& part, std::uint64_t offset, std::uint64_t, std::uint64_t bytes) {
          CheckGlobal(sim, path, lane, *transfer, part, offset, bytes);
        });
  }
  record.bytes_written += moved;
  const Time read = now + SharedTime(sim, span);
  Time done = read, acknowledged = read;
  if (object != nullptr) {
    if (object->device != device.number) record.remote_bytes += moved;
    if (reach.bytes != 0) {
      done = sim.timing.ChargeStore(cta, Mover::kTma, *object, reach, read);
      acknowledged = done + sim.timing.AckDelay(device, *object);
    }
    for (const Run& run : tile->runs) {
      if (run.global.object == nullptr || !run.global.multicast) continue;
      done = std::max(done, ChargeMulticast(sim, cta, run.global, read, &acknowledged));
    }
  }
  cta.store_arrival = std::max(cta.store_arrival, acknowledged);
  JoinGroup(path, lane, read, done);
  StartTransfer(sim, transfer, read, done);
  return Next::kGo;
}

}  // namespace

Next ExecuteTensor(Simulator& sim, Path& path, const AsyncOp& a, std::uint32_t lanes) {
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const Next next = Copy(sim, path, a, std::countr_zero(left));
    if (next != Next::kGo) return next;
  }
  return Next::kGo;
}

}  // namespace allranks::node
