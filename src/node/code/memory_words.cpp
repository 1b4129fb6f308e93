// See memory_words.h.
#include "node/code/memory_words.h"

#include <unordered_map>

namespace allranks::node {
namespace {

using ptx::Space;

template <class T>
using Table = std::unordered_map<std::string_view, T>;

const Table<Space>& Spaces() {
  static const Table<Space> kTable = {{"global", Space::kGlobal},
                                      {"const", Space::kConst},
                                      {"shared", Space::kShared},
                                      {"shared::cta", Space::kShared},
                                      {"shared::cluster", Space::kShared},
                                      {"local", Space::kLocal},
                                      {"param", Space::kParam},
                                      {"param::entry", Space::kParam},
                                      {"param::func", Space::kParam}};
  return kTable;
}

const Table<Order>& Orders() {
  static const Table<Order> kTable = {{"relaxed", Order::kRelaxed},
                                      {"acquire", Order::kAcquire},
                                      {"release", Order::kRelease},
                                      {"acq_rel", Order::kAcqRel},
                                      {"sc", Order::kSc}};
  return kTable;
}

const Table<Scope>& Scopes() {
  static const Table<Scope> kTable = {{"cta", Scope::kCta},
                                      {"cluster", Scope::kCluster},
                                      {"gpu", Scope::kGpu},
                                      {"gl", Scope::kGpu},
                                      {"sys", Scope::kSys}};
  return kTable;
}

const Table<AtomicOp>& Atomics() {
  static const Table<AtomicOp> kTable = {{"exch", AtomicOp::kExch}, {"cas", AtomicOp::kCas},
                                         {"add", AtomicOp::kAdd},   {"min", AtomicOp::kMin},
                                         {"max", AtomicOp::kMax},   {"inc", AtomicOp::kInc},
                                         {"dec", AtomicOp::kDec},   {"and", AtomicOp::kAnd},
                                         {"or", AtomicOp::kOr},     {"xor", AtomicOp::kXor}};
  return kTable;
}

template <class T>
bool Take(const Table<T>& table, std::string_view word, T* value) {
  const auto it = table.find(word);
  if (it == table.end()) return false;
  *value = it->second;
  return true;
}

bool IsCacheOperator(std::string_view word) {
  for (const std::string_view known : {"ca", "cg", "cs", "lu", "cv", "wb", "wt"}) {
    if (word == known) return true;
  }
  return false;
}

bool IsHint(std::string_view word) {
  for (const std::string_view known :
       {"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last",
        "L1::no_allocate", "L2::evict_normal", "L2::evict_first", "L2::evict_last", "L2::64B",
        "L2::128B", "L2::256B"}) {
    if (word == known) return true;
  }
  return false;
}

}  // namespace

MemoryWords ReadMemoryWords(const ptx::Instruction& in) {
  MemoryWords words;
  for (const std::string_view word : in.modifiers) {
    if (Take(Spaces(), word, &words.space)) {
      words.function_param = word == "param::func";
    } else if (Take(Orders(), word, &words.order)) {
      words.has_order = true;
    } else if (Take(Scopes(), word, &words.scope)) {
      words.has_scope = true;
    } else if (Take(Atomics(), word, &words.atomic) || IsHint(word)) {
      words.hints |= word[0] == 'L';
    } else if (IsCacheOperator(word)) {
      words.cache_operator = true;
    } else if (word == "L2::cache_hint") {
      words.cache_hint = true;
    } else if (word == "weak") {
      words.weak = true;
    } else if (word == "volatile") {
      words.is_volatile = true;
    } else if (word == "mmio") {
      words.mmio = true;
    } else if (word == "nc") {
      words.nc = true;
    } else if (word == "noftz") {
      words.noftz = true;
    } else if (word == "v2" || word == "v4" || word == "v8") {
      words.vector = word[1] - '0';
    } else if (word == "acc::f32") {
      words.accumulate = 32;
    } else if (word == "acc::f16") {
      words.accumulate = 16;
    } else if (const ptx::Type type = ptx::TypeFromWord(word); type != ptx::Type::kNone) {
      words.type = type;
      words.type_word = word;
    } else if (words.unknown.empty()) {
      words.unknown = word;
    }
  }
  return words;
}

std::optional<Number> NumberOf(ptx::Type type) {
  switch (type) {
    case ptx::Type::kU32:
    case ptx::Type::kB32:
      return Number::kU32;
    case ptx::Type::kS32:
      return Number::kS32;
    case ptx::Type::kU64:
    case ptx::Type::kB64:
      return Number::kU64;
    case ptx::Type::kS64:
      return Number::kS64;
    case ptx::Type::kF16:
      return Number::kF16;
    case ptx::Type::kBF16:
      return Number::kBF16;
    case ptx::Type::kF32:
      return Number::kF32;
    case ptx::Type::kF64:
      return Number::kF64;
    default:
      return std::nullopt;
  }
}

}  // namespace allranks::node
