// Picks the arithmetic handlers for the processor the program runs on, once, at first use.
#include "node/alu/alu.h"

#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "node/alu/alu_internal.h"
#include "node/alu/alu_table.h"

namespace allranks::node {
namespace alu {
namespace {

using Table = std::unordered_map<std::uint32_t, AluFn>;

Table MakeTable(std::initializer_list<Entries> groups) {
  Table table;
  for (const Entries& group : groups) {
    for (std::size_t i = 0; i < group.size; ++i) {
      const bool inserted = table.emplace(group.data[i].key, group.data[i].fn).second;
      CHECK(inserted, "two handlers for key {:#x}", group.data[i].key);
    }
  }
  return table;
}

#define ALLRANKS_ALU_GROUPS(isa)                                                 \
  {isa::IntegerEntries(),  isa::BitEntries(),     isa::MoveEntries(),            \
   isa::CompareEntries(),  isa::FloatEntries(),   isa::HalfEntries(),            \
   isa::ConvertEntries(),  isa::SpecialEntries(), isa_any::SlowConvertEntries(), \
   isa_any::VideoEntries()}

// Each table is made at its first use: a process needs one of them.
const Table& TableOf(Isa isa) {
#ifndef ALLRANKS_ALU_ONE_LEVEL
  if (isa == Isa::kV4) {
    static const Table kTable = MakeTable(ALLRANKS_ALU_GROUPS(isa_v4));
    return kTable;
  }
  if (isa == Isa::kV3) {
    static const Table kTable = MakeTable(ALLRANKS_ALU_GROUPS(isa_v3));
    return kTable;
  }
#endif
  CHECK(isa == Isa::kV2);
  static const Table kTable = MakeTable(ALLRANKS_ALU_GROUPS(isa_v2));
  return kTable;
}
#undef ALLRANKS_ALU_GROUPS

Isa BestIsa() {
  static const Isa kBest = IsaSupported(Isa::kV4)   ? Isa::kV4
                           : IsaSupported(Isa::kV3) ? Isa::kV3
                                                    : Isa::kV2;
  return kBest;
}

thread_local std::optional<Isa> forced_isa;

}  // namespace

bool IsaSupported(Isa isa) {
#ifdef ALLRANKS_ALU_ONE_LEVEL
  if (isa != Isa::kV2) return false;
#endif
  __builtin_cpu_init();
  switch (isa) {
    case Isa::kV2:
      return __builtin_cpu_supports("x86-64-v2") != 0;
    case Isa::kV3:
      return __builtin_cpu_supports("x86-64-v3") != 0;
    case Isa::kV4:
      return __builtin_cpu_supports("x86-64-v4") != 0;
  }
  return false;
}

AluFn FindHandler(Isa isa, std::uint32_t key) {
  const Table& table = TableOf(isa);
  const auto it = table.find(key);
  return it == table.end() ? nullptr : it->second;
}

AluFn FindHandler(std::uint32_t key) { return FindHandler(forced_isa.value_or(BestIsa()), key); }

ScopedIsa::ScopedIsa(Isa isa) {
  CHECK(IsaSupported(isa));
  forced_isa = isa;
}

ScopedIsa::~ScopedIsa() { forced_isa.reset(); }

}  // namespace alu

std::string_view AluIsa() {
  switch (alu::BestIsa()) {
    case alu::Isa::kV4:
      return "x86-64-v4";
    case alu::Isa::kV3:
      return "x86-64-v3";
    default:
      return "x86-64-v2";
  }
}

}  // namespace allranks::node
