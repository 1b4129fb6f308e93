// Liveness and register allocation.
//
// Liveness walks backwards from the uses of one register at a time, over the blocks in which it is
// live: time and memory are in proportion to what is live where, not to blocks x registers. A
// budget bounds the walk; a function that exhausts it (only a hostile one does) gets wider ranges
// from the text alone: from first to last mention, stretched over every backward branch they touch.
//
// Allocation is a linear scan over ranges without holes. Lane i of a b64 lies where lanes 2i and
// 2i+1 of a b32 in the same slot would lie, so lanes that are parted would destroy each other's
// values if the two kinds shared slots. Hence b32 and b64 have areas of their own; a b128 is laid
// out as two b64 and shares theirs.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <unordered_set>

#include "base/check.h"
#include "node/decode/flow_internal.h"

namespace allranks::node::flow_internal {
namespace {

// Steps of the walk beyond those in proportion to the code, and pairs kept for the spin loops.
constexpr std::uint64_t kWalkBase = 20'000'000;
constexpr std::uint64_t kWalkPerInstruction = 64;
constexpr std::size_t kMaxLiveAtHeads = 4'000'000;

enum Mention : std::uint32_t { kUse, kDefinition, kGuardedDefinition, kEarlyDefinition };

// All mentions of each register in code order: instruction * 4 + kind.
struct Mentions {
  std::vector<std::uint32_t> start, item;
  std::span<const std::uint32_t> operator[](std::size_t reg) const {
    return {item.data() + start[reg], item.data() + start[reg + 1]};
  }
};

// Registers that hold the results of a .func in registers: a return reads them.
std::vector<std::int32_t> ResultRegisters(const ptx::Function& function) {
  std::unordered_set<std::string_view> names;
  for (const ptx::Variable& result : function.results) {
    if (result.space == ptx::Space::kReg) names.insert(result.name);
  }
  std::vector<std::int32_t> registers;
  if (names.empty()) return registers;
  for (std::size_t i = 0; i < function.registers.size(); ++i) {
    if (names.contains(function.registers[i].Name())) {
      registers.push_back(static_cast<std::int32_t>(i));
    }
  }
  return registers;
}

Mentions CollectMentions(const ptx::Function& function, const Graph& graph) {
  const std::vector<std::int32_t> results = ResultRegisters(function);
  Mentions mentions;
  mentions.start.assign(function.registers.size() + 2, 0);
  const auto for_all = [&](auto&& fn) {
    for (std::uint32_t i = 0; i < function.code.size(); ++i) {
      const ptx::Instruction& instruction = function.code[i];
      const Behaviour& behaviour = graph.behaviour[i];
      int definitions = 0;
      ForEachRegister(instruction, behaviour,
                      [&](std::int32_t, bool definition) { definitions += definition ? 1 : 0; });
      const bool early = behaviour.early_write || definitions > 1;
      ForEachRegister(instruction, behaviour, [&](std::int32_t reg, bool definition) {
        if (!definition) return fn(reg, i, kUse);
        const bool wide = ptx::SizeOf(function.registers[static_cast<std::size_t>(reg)].type) > 8;
        if (early || wide) fn(reg, i, kEarlyDefinition);
        if (instruction.guard >= 0) return fn(reg, i, kGuardedDefinition);
        fn(reg, i, kDefinition);
      });
      if (behaviour.effect == Effect::kReturn) {
        for (std::int32_t reg : results) fn(reg, i, kUse);
      }
    }
  };
  // start[reg + 2] counts, then start[reg + 1] is where the next mention of reg goes.
  for_all([&](std::int32_t reg, std::uint32_t, Mention) {
    CHECK(reg >= 0 && static_cast<std::size_t>(reg) < function.registers.size());
    ++mentions.start[static_cast<std::size_t>(reg) + 2];
  });
  for (std::size_t i = 2; i < mentions.start.size(); ++i)
    mentions.start[i] += mentions.start[i - 1];
  mentions.item.resize(mentions.start.back());
  for_all([&](std::int32_t reg, std::uint32_t at, Mention kind) {
    mentions.item[mentions.start[static_cast<std::size_t>(reg) + 1]++] = at * 4 + kind;
  });
  return mentions;
}

// For each block the range of blocks that chains of overlapping backward edges span around it.
std::vector<std::pair<std::uint32_t, std::uint32_t>> BackwardSpans(const Graph& graph) {
  std::vector<std::uint32_t> reach(graph.blocks);  // furthest block that jumps back to here
  for (std::uint32_t b = 0; b < graph.blocks; ++b) reach[b] = b;
  for (std::uint32_t node = 0; node < graph.exit; ++node) {
    std::uint32_t from = node;
    if (node >= graph.blocks) {
      from = 0;
      for (std::uint32_t before : graph.predecessors[node]) from = std::max(from, before);
    }
    for (std::uint32_t to : graph.successors[node]) {
      if (to < graph.blocks && to <= from && from < graph.blocks) {
        reach[to] = std::max(reach[to], from);
      }
    }
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> spans(graph.blocks);
  for (std::uint32_t b = 0; b < graph.blocks;) {
    std::uint32_t end = reach[b];
    for (std::uint32_t i = b; i <= end; ++i) end = std::max(end, reach[i]);
    for (std::uint32_t i = b; i <= end; ++i) spans[i] = {b, end};
    b = end + 1;
  }
  return spans;
}

// Numbers of one area, the lowest free one first.
class Area {
 public:
  explicit Area(std::uint32_t limit) : free_((limit + 63) / 64, ~std::uint64_t{0}), limit_(limit) {}

  // The first number of `width` (1 or 2) free ones, aligned to width; kNone if there are none.
  std::uint32_t Take(std::uint32_t width) {
    while (hint_ < free_.size() && free_[hint_] == 0) ++hint_;
    for (std::size_t word = hint_; word < free_.size(); ++word) {
      std::uint64_t bits = free_[word];
      if (width == 2) bits &= (bits >> 1) & 0x5555555555555555u;
      if (bits == 0) continue;
      const int bit = std::countr_zero(bits);
      const auto number = static_cast<std::uint32_t>(word * 64) + static_cast<std::uint32_t>(bit);
      if (number + width > limit_) break;
      free_[word] &= ~((width == 2 ? std::uint64_t{3} : std::uint64_t{1}) << bit);
      used_ = std::max(used_, number + width);
      return number;
    }
    return kNone;
  }
  void Give(std::uint32_t number, std::uint32_t width) {
    free_[number / 64] |= (width == 2 ? std::uint64_t{3} : std::uint64_t{1}) << (number % 64);
    hint_ = std::min<std::size_t>(hint_, number / 64);
  }
  std::uint32_t used() const { return used_; }

 private:
  std::vector<std::uint64_t> free_;
  std::size_t hint_ = 0;
  std::uint32_t limit_, used_ = 0;
};

}  // namespace

Liveness ComputeLiveness(const ptx::Function& function, const Graph& graph,
                         const std::vector<bool>& heads) {
  const std::size_t registers = function.registers.size();
  const Mentions mentions = CollectMentions(function, graph);
  Liveness live;
  live.low.assign(registers, kNone);
  live.high.assign(registers, 0);
  live.approximate_from = static_cast<std::int32_t>(registers);

  std::uint64_t budget = kWalkBase + kWalkPerInstruction * function.code.size();
  bool exhausted = false;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> spans;
  // Marks hold register + 1, so they need no clearing between registers.
  std::vector<std::uint32_t> live_in(graph.nodes, 0), live_out(graph.nodes, 0),
      kills(graph.nodes, 0);
  std::vector<std::uint32_t> work;
  for (std::size_t reg = 0; reg < registers; ++reg) {
    const auto mark = static_cast<std::uint32_t>(reg) + 1;
    std::uint32_t low = kNone, high = 0, killed_block = kNone;
    for (const std::uint32_t mention : mentions[reg]) {
      const std::uint32_t at = mention / 4, kind = mention % 4, block = graph.block_of[at];
      const std::uint32_t position = 2 * at + (kind == kUse || kind == kEarlyDefinition ? 0 : 1);
      low = std::min(low, position);
      high = std::max(high, position);
      if (kind == kUse && killed_block != block && live_in[block] != mark) {
        live_in[block] = mark;
        work.push_back(block);
      } else if (kind == kDefinition) {
        killed_block = block;
        kills[block] = mark;
      }
    }
    const bool stays_inside_block = work.empty();
    while (!work.empty() && !exhausted) {
      const std::uint32_t node = work.back();
      work.pop_back();
      if (node < graph.blocks) {
        low = std::min(low, 2 * graph.first[node]);
        if (heads[node]) {
          live.live_at_heads.emplace_back(node, static_cast<std::int32_t>(reg));
          if (live.live_at_heads.size() >= kMaxLiveAtHeads) exhausted = true;
        }
      }
      const auto before = graph.predecessors[node];
      for (const std::uint32_t from : before) {
        if (live_out[from] == mark) continue;
        live_out[from] = mark;
        if (from < graph.blocks) high = std::max(high, 2 * graph.Last(from) + 1);
        if (kills[from] == mark || live_in[from] == mark) continue;
        live_in[from] = mark;
        work.push_back(from);
      }
      if (budget <= before.size()) exhausted = true;
      budget -= std::min<std::uint64_t>(budget, before.size() + 1);
    }
    live.reads_unset |= live_in[0] == mark || exhausted;
    if (exhausted && !stays_inside_block) {
      work.clear();
      if (spans.empty()) {
        spans = BackwardSpans(graph);
        live.approximate_from = static_cast<std::int32_t>(reg);
      }
      low = std::min(low, 2 * graph.first[spans[graph.block_of[low / 2]].first]);
      high = std::max(high, 2 * graph.Last(spans[graph.block_of[high / 2]].second) + 1);
    }
    live.low[reg] = low;
    live.high[reg] = high;
  }
  return live;
}

void AllocateRegisters(const ptx::Function& function, const Liveness& liveness,
                       const std::vector<bool>& constant, Flow& flow) {
  const auto registers = static_cast<std::uint32_t>(function.registers.size());
  const std::size_t positions = 2 * function.code.size();
  const auto unused = [&](std::uint32_t reg) {
    return liveness.low[reg] > liveness.high[reg] || (reg < constant.size() && constant[reg]);
  };
  Adjacency begins, ends;
  {
    std::vector<Edge> begin_edges, end_edges;
    for (std::uint32_t reg = 0; reg < registers; ++reg) {
      if (unused(reg)) continue;
      begin_edges.emplace_back(liveness.low[reg], reg);
      end_edges.emplace_back(liveness.high[reg], reg);
    }
    begins = FromEdges(static_cast<std::uint32_t>(positions), begin_edges, false);
    ends = FromEdges(static_cast<std::uint32_t>(positions), end_edges, false);
  }
  Area predicates(kMaxPredicates), narrow(kMaxSlots), wide(kMaxSlots / 2);  // wide: in b64
  std::vector<std::uint32_t> number(registers, 0);
  const auto area_of = [&](std::uint32_t reg) -> std::pair<Area*, std::uint32_t> {
    const ptx::Type type = function.registers[reg].type;
    if (type == ptx::Type::kPred) return {&predicates, 1};
    const int size = ptx::SizeOf(type);
    if (size <= 4) return {&narrow, 1};
    return {&wide, size <= 8 ? 1 : 2};
  };
  const auto fail = [&flow] {
    flow.ok = false;
    flow.error = fmt::format("more registers live at once than fit ({} of 32 bits, {} predicates)",
                             kMaxSlots, kMaxPredicates);
  };
  for (std::uint32_t position = 0; position < positions; ++position) {
    for (const std::uint32_t reg : begins[position]) {
      const auto [area, width] = area_of(reg);
      number[reg] = area->Take(width);
      if (number[reg] == kNone) return fail();
    }
    for (const std::uint32_t reg : ends[position]) {
      const auto [area, width] = area_of(reg);
      area->Give(number[reg], width);
    }
  }
  const std::uint32_t wide_slots = 2 * wide.used();
  if (wide_slots + narrow.used() > kMaxSlots) return fail();
  flow.slots = static_cast<int>(wide_slots + narrow.used());
  flow.wide_slots = static_cast<int>(wide_slots);
  flow.predicates = static_cast<int>(predicates.used());
  for (std::uint32_t reg = 0; reg < registers; ++reg) {
    if (unused(reg)) continue;
    const Area* area = area_of(reg).first;
    std::uint32_t place = number[reg];
    if (area == &wide) place *= 2;
    if (area == &narrow) place += wide_slots;
    flow.place[reg] = static_cast<Slot>(place);
  }
}

}  // namespace allranks::node::flow_internal
