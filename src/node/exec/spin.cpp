// Watching a loop that may be a wait: what its iterations do, and how many more are certain to be
// like the last. wait.h has the theory; wait.cpp parks the path then.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "node/code/lanes.h"
#include "node/exec/simulator.h"
#include "node/exec/wait.h"

namespace allranks::node {
namespace {

// A loop whose iteration does more than this is not watched: it is work, not waiting.
constexpr std::size_t kMaxEffort = 2048, kEffortOfRead = 4;
constexpr std::size_t kMaxWatched = 4;
// Iterations that a timer leaves to be executed before the change it expects.
constexpr std::uint64_t kMargin = 2;

bool Contains(const std::vector<std::uint32_t>& sorted, std::uint32_t pc) {
  return std::binary_search(sorted.begin(), sorted.end(), pc);
}

void Snapshot(const Path& path, const SpinCode& loop, std::vector<std::uint64_t>* values) {
  values->clear();
  for (const SpinCode::Carried& carried : loop.carried) {
    if (carried.predicate) {
      values->push_back(PredicatesOf(path)[carried.slot] & path.mask);
      continue;
    }
    const std::byte* base = RegistersOf(path) + carried.slot * kSlotBytes;
    for (std::uint32_t m = path.mask; m != 0; m &= m - 1) {
      const int lane = std::countr_zero(m);
      const int words = std::max(1, carried.bytes / 8);
      for (int w = 0; w < words; ++w) {
        std::uint64_t value = 0;
        if (carried.bytes == 4) {
          std::memcpy(&value, base + lane * 4, 4);
        } else {
          std::memcpy(&value, base + w * 2 * kSlotBytes + lane * 8, 8);
        }
        values->push_back(value);
      }
    }
  }
}

// Whether the access gets what has arrived, and not the newest bytes.
bool SeesLate(const Code& code, std::uint32_t pc) {
  const Op& op = code.ops[pc];
  if (op.kind != OpKind::kMemory) return false;
  const MemoryOp& m = code.memory[op.aux];
  return m.Strong() && (m.kind == MemoryOpKind::kLoad || m.kind == MemoryOpKind::kAtomic);
}

std::int64_t Difference(std::uint64_t now, std::uint64_t before, int bytes) {
  return bytes == 4 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(now - before))
                    : static_cast<std::int64_t>(now - before);
}

}  // namespace

std::uint64_t StableIterations(const CompareCode& compare, std::uint64_t a, std::uint64_t b,
                               std::int64_t da, std::int64_t db, std::int64_t slack) {
  if (da == 0 && db == 0) return kForever;
  if (compare.exact) return 0;
  __extension__ using Wide = __int128;
  const auto widen = [&](std::uint64_t v) -> Wide {
    if (compare.bytes == 4) {
      return compare.is_signed ? Wide{static_cast<std::int32_t>(v)}
                               : Wide{static_cast<std::uint32_t>(v)};
    }
    return compare.is_signed ? Wide{static_cast<std::int64_t>(v)} : Wide{v};
  };
  const int bits = compare.bytes * 8;
  const Wide low = compare.is_signed ? -(Wide{1} << (bits - 1)) : Wide{0};
  const Wide high = low + (Wide{1} << bits) - 1;
  Wide stable = Wide{1} << 100;
  // Until an operand would wrap.
  const auto until_wrap = [&](Wide value, std::int64_t step) {
    if (step > 0) stable = std::min(stable, (high - value) / step);
    if (step < 0) stable = std::min(stable, (value - low) / -Wide{step});
  };
  until_wrap(widen(a), da);
  until_wrap(widen(b), db);
  // The outcome depends on the sign of a - b, which moves by `slope` per iteration.
  const Wide difference = widen(a) - widen(b);
  const Wide slope = Wide{da} - db;
  if (slope != 0) {
    using Comparison = CompareCode::Comparison;
    // Number of steps during which difference + k * slope stays on its side of `edge`: the outcome
    // is the same for all values below the edge, and for all at or above it.
    const auto until_edge = [&](Wide edge) {
      const Wide distance = difference - edge;
      if (distance < 0 && slope > 0) {
        stable = std::min(stable, (-distance - slack - 1) / slope);
      } else if (distance >= 0 && slope < 0) {
        stable = std::min(stable, (distance - slack) / -slope);
      }
    };
    switch (compare.comparison) {
      case Comparison::kLt:
      case Comparison::kGe:
        until_edge(0);
        break;
      case Comparison::kLe:
      case Comparison::kGt:
        until_edge(1);
        break;
      case Comparison::kEq:
      case Comparison::kNe:
        until_edge(0);
        until_edge(1);
        break;
    }
  }
  if (stable < 0) return 0;
  return stable >= (Wide{1} << 62) ? kForever : static_cast<std::uint64_t>(stable);
}

void Waiting::RecordBranch(Path& path, bool taken) {
  const std::uint64_t entry = std::uint64_t{path.pc} << 1 | (taken ? 1 : 0);
  for (std::size_t i = 0; i < path.spins.size();) {
    SpinState& spin = *path.spins[i];
    spin.signature.push_back(entry);
    if (++spin.effort > kMaxEffort) {
      path.spins.erase(path.spins.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

void Waiting::RecordRead(Path& path, Object& object, std::uint64_t offset, std::uint32_t size,
                         const std::byte* value, Time time, Time delay, Time span,
                         std::uint32_t lanes) {
  SpinRead read;
  read.object = &object;
  read.offset = offset;
  read.size = size;
  read.lane_size = size / lanes;
  if (size > sizeof read.value) return RecordChange(path);
  std::memcpy(read.value.data(), value, size);
  read.time = time;
  read.delay = delay;
  read.span = span;
  read.pc = path.pc;
  for (auto& spin : path.spins) {
    if (Contains(spin->loop->nonlinear_uses, path.pc)) {
      spin->nonlinear = true;
    }
    // Lanes that look at one word see it once.
    if (!spin->reads.empty() && spin->reads.back().SameAs(read)) continue;
    spin->reads.push_back(read);
    spin->effort += kEffortOfRead * lanes;
    spin->signature.insert(spin->signature.end(), {object.id, offset});
    spin->signature.insert(spin->signature.end(), read.value.begin(),
                           read.value.begin() + (size + 7) / 8);
  }
}

void Waiting::RecordTracked(Path& path, const Op& op, std::uint32_t mask) {
  const Launch& launch = *path.warp->cta->launch;
  const CompareCode& compare = launch.code->compares[op.aux];
  const auto value = [&](Slot slot, int lane) -> std::uint64_t {
    if (slot == kNoSlot || compare.exact) return 0;
    const std::byte* base = SlotAt(RegistersOf(path), launch.constants.data(), slot);
    std::uint64_t v = 0;
    if (compare.bytes == 4) {
      std::memcpy(&v, base + lane * 4, 4);
    } else {
      std::memcpy(&v, base + lane * 8, 8);
    }
    return v;
  };
  for (auto& spin : path.spins) {
    const SpinCode& loop = *spin->loop;
    if (Contains(loop.nonlinear_uses, path.pc)) {
      spin->nonlinear = true;
    }
    if (!Contains(loop.linear_compares, path.pc)) continue;
    spin->compares[0].push_back(path.pc);
    spin->compares[0].push_back(mask);
    for (std::uint32_t m = mask; m != 0; m &= m - 1) {
      const int lane = std::countr_zero(m);
      spin->compares[0].push_back(value(op.s[0], lane));
      spin->compares[0].push_back(value(op.s[1], lane));
    }
  }
}

void Waiting::RecordSleep(Path& path, std::uint64_t length) {
  for (auto& spin : path.spins) {
    spin->signature.push_back(length);
    ++spin->effort;
    if (Contains(spin->loop->nonlinear_uses, path.pc)) {
      spin->nonlinear = true;
    }
  }
}

void Waiting::RecordExchange(Path& path) {
  for (auto& spin : path.spins) {
    if (Contains(spin->loop->nonlinear_uses, path.pc)) spin->nonlinear = true;
  }
}

void Waiting::RecordClock(Path& path) {
  for (auto& spin : path.spins) spin->reads_clock = true;
}

void Waiting::RecordChange(Path& path) { path.spins.clear(); }

// Rarely enough that loops which compute do not notice, and from the start of long waits on: after
// 1024 back edges of the warp, after twice as many and so on, then every 16384.
constexpr std::uint32_t kFirstWatch = 1024, kWatchPeriod = 16384, kWatchLength = 64;

bool Waiting::WatchesNow(Warp& warp) {
  const std::uint32_t edges = ++warp.seldom_edges;
  if (edges < kFirstWatch) return false;
  return (edges & (std::min(std::bit_floor(edges), kWatchPeriod) - 1)) < kWatchLength;
}

void Waiting::EndWatch(Warp& warp) { warp.seldom_edges |= kWatchLength - 1; }

SpinState* Waiting::SpinBackEdge(Path& path, const SpinCode& loop) {
  // What was written down of other loops is no iteration of theirs any more, unless they are around
  // this one (or begin where it begins).
  const std::vector<SpinCode>& all = path.warp->cta->launch->code->spins;
  std::erase_if(path.spins, [&](const std::unique_ptr<SpinState>& watched) {
    for (const SpinCode* around = &loop;; around = &all[static_cast<std::size_t>(around->outer)]) {
      if (around == watched->loop || around->head == watched->loop->head) return false;
      if (around->outer < 0) return true;
    }
  });
  std::size_t at = 0;
  while (at < path.spins.size() && path.spins[at]->loop != &loop) ++at;
  if (at == path.spins.size()) {
    if (path.spins.size() >= kMaxWatched) path.spins.erase(path.spins.begin());
    path.spins.push_back(std::make_unique<SpinState>());
    at = path.spins.size() - 1;
  }
  SpinState& spin = *path.spins[at];
  const bool fresh = spin.loop == nullptr || spin.mask != path.mask;
  if (fresh) {
    spin = {};
    spin.loop = &loop;
    spin.mask = path.mask;
    spin.head = path.clock;
    Snapshot(path, loop, &spin.carried[0]);
    return nullptr;
  }
  // An iteration is over: turn the page.
  ++spin.iterations;
  spin.period = std::max<Time>(1, path.clock - spin.head);
  spin.carried[2].swap(spin.carried[1]);
  spin.carried[1].swap(spin.carried[0]);
  Snapshot(path, loop, &spin.carried[0]);
  const bool same =
      spin.iterations >= 2 && spin.signature == spin.previous && FindsTheSame(path, spin);
  const std::uint64_t stable = same ? StableSpin(path, spin) : 0;
  if (stable > kMargin) {
    const Time room = (kTimeNever - path.clock) / spin.period;
    std::uint64_t skip = stable == kForever ? kForever : stable - kMargin;
    if (skip != kForever && skip > static_cast<std::uint64_t>(room) / 2) skip = kForever;
    spin.skip = skip;
    return &spin;
  }
  if (!spin.reads.empty()) spin.looked = spin.reads.front();
  spin.previous.swap(spin.signature);
  spin.signature.clear();
  spin.effort = 0;
  spin.reads.clear();
  spin.compares[2].swap(spin.compares[1]);
  spin.compares[1].swap(spin.compares[0]);
  spin.compares[0].clear();
  spin.reads_clock = spin.nonlinear = false;
  spin.head = path.clock;
  return nullptr;
}

// Whether the next iteration finds the bytes that the last one found; if so, when writes that are
// on their way change them.
bool Waiting::FindsTheSame(const Path& path, SpinState& spin) {
  const Cta& cta = *path.warp->cta;
  const Code& code = *cta.launch->code;
  for (SpinRead& read : spin.reads) {
    const LateWrites& late = read.object->late;
    const Time sampled = read.time + read.delay;
    if (!late.Pending(sampled) || !SeesLate(code, read.pc)) {
      // Somebody may have written since the iteration read: it may have yielded in between.
      if (!read.Current()) return false;
      continue;
    }
    std::byte next[sizeof read.value];
    std::memcpy(next, read.object->data + read.offset, read.size);
    late.Hide(read.offset, read.size, next, sampled + spin.period, cta.number);
    if (std::memcmp(next, read.value.data(), read.size) != 0) return false;
    read.change = late.Next(read.offset, read.size, sampled + spin.period);
  }
  return true;
}

// How many further iterations are certain to be like the last one, as long as they find the same
// bytes; 0 if that cannot be said.
std::uint64_t Waiting::StableSpin(const Path& path, SpinState& spin) const {
  const Code& code = *path.warp->cta->launch->code;
  // Carried registers: still, or moving evenly.
  spin.step.assign(spin.carried[0].size(), 0);
  bool moving = false;
  {
    std::size_t i = 0;
    for (const SpinCode::Carried& carried : spin.loop->carried) {
      const int lanes =
          carried.predicate ? 1 : std::popcount(path.mask) * std::max(1, carried.bytes / 8);
      for (int l = 0; l < lanes; ++l, ++i) {
        const int bytes = carried.bytes == 4 ? 4 : 8;
        const std::int64_t step = Difference(spin.carried[0][i], spin.carried[1][i], bytes);
        if (step == 0) continue;
        if (carried.predicate || spin.iterations < 2 ||
            step != Difference(spin.carried[1][i], spin.carried[2][i], bytes)) {
          return 0;
        }
        spin.step[i] = step;
        moving = true;
      }
    }
  }
  if (spin.nonlinear && (moving || spin.reads_clock)) return 0;
  // Compares: with operands at rest they never change; with moving ones see when.
  const auto& last = spin.compares[0];
  const auto& before = spin.compares[1];
  const auto& earlier = spin.compares[2];
  if (last.size() != before.size()) return 0;
  const bool three = earlier.size() == last.size();
  const auto period_ns = static_cast<std::int64_t>(spin.period / 1000);
  const auto period_cycles = static_cast<std::int64_t>(spin.period / sim_.costs.cycle);
  const std::int64_t resolution = ToNs(sim_.profile.time.globaltimer_resolution);
  std::uint64_t stable = kForever;
  for (std::size_t i = 0; i < last.size();) {
    const CompareCode& compare = code.compares[code.ops[last[i]].aux];
    const int lanes = std::popcount(static_cast<std::uint32_t>(last[i + 1]));
    i += 2;
    for (int l = 0; l < lanes; ++l, i += 2) {
      // How each operand may move. The timer ticks in steps that can be longer than an iteration,
      // so an operand that stood still for two iterations may still be a time: then both ways
      // count.
      std::int64_t steps[2][3];
      int ways[2];
      std::int64_t slack = 0;
      for (int k = 0; k < 2; ++k) {
        const std::size_t at = i + static_cast<std::size_t>(k);
        const std::int64_t step = Difference(last[at], before[at], compare.bytes);
        const std::int64_t size = std::abs(step);
        ways[k] = 1;
        steps[k][0] = step;
        if (spin.reads_clock && std::abs(size - period_cycles) <= 2 && step != 0) {
          steps[k][0] = (step < 0 ? -1 : 1) * (period_cycles + 1);
          slack = std::max<std::int64_t>(slack, 4);
        } else if (spin.reads_clock && std::abs(size - period_ns) <= resolution + 1) {
          slack = std::max(slack, 2 * resolution + 2);
          if (step == 0) {
            ways[k] = 3;
            steps[k][1] = period_ns + 1;
            steps[k][2] = -(period_ns + 1);
          } else {
            steps[k][0] = (step < 0 ? -1 : 1) * (period_ns + 1);
          }
        } else if (step != 0 &&
                   (!three || step != Difference(before[at], earlier[at], compare.bytes))) {
          return 0;
        }
      }
      for (int a = 0; a < ways[0]; ++a) {
        for (int b = 0; b < ways[1]; ++b) {
          stable = std::min(stable, StableIterations(compare, last[i], last[i + 1], steps[0][a],
                                                     steps[1][b], slack));
        }
      }
    }
  }
  return stable;
}

}  // namespace allranks::node
