// See property.h.
#include "alu/property.h"

#include <algorithm>
#include <cfenv>
#include <cstring>

namespace allranks::node::alu_test {

namespace {

constexpr int kCarry = 5;                 // %p5 stands for the carry flag
constexpr std::size_t kEdgePairs = 6000;  // more than any two lists of edges make
// Threads at once: what they need stays in the cache.
constexpr std::size_t kChunk = 2048;
constexpr u64 kUntouched = 0xa5a5a5a5a5a5a5a5;

// Registers are declared in the order h, r, rd, p, q, b, six each.
Slot SlotOf(char kind, int number) {
  switch (kind) {
    case 'h':
      return static_cast<Slot>(number);
    case 'r':
      return static_cast<Slot>(6 + number);
    case 'b':
      return static_cast<Slot>(12 + number);
    case 'd':
      return static_cast<Slot>(18 + 2 * number);
    case 'q':
      return static_cast<Slot>(30 + 4 * number);
    default:
      return static_cast<Slot>(number);
  }
}
Slot SlotOf(int reg) {
  constexpr char kKinds[] = {'h', 'r', 'd', 'p', 'q', 'b'};
  return SlotOf(kKinds[reg / 6], reg % 6);
}

// A pool of random values per width, made once: random bits, edges and their neighbours, small
// numbers, floats of like size so that sums cancel, and few bits.
constexpr std::size_t kPool = 1 << 18;
const std::vector<u64>& Pool(int bytes) {
  const auto make = [](int width) {
    std::mt19937_64 random(20240607 + static_cast<unsigned>(width));
    std::vector<u64> pool(kPool);
    const auto& edges = EdgeValues(width);
    for (u64& v : pool) {
      const u64 r = random(), fraction = random();
      switch (r & 7) {
        case 0:
          v = edges[(r >> 8) % edges.size()];
          break;
        case 1:
          v = edges[(r >> 8) % edges.size()] + ((r >> 40) & 7) - 3;
          break;
        case 2:
          v = (r >> 8) & 0xff;
          break;
        case 3:
          if (width == 8) {
            v = (r & u64{1} << 63) | (1020 + ((r >> 8) & 7)) << 52 | fraction >> 12;
          } else if (width == 4) {
            v = (r >> 16 & 0x80000000) | (124 + ((r >> 8) & 7)) << 23 | fraction >> 41;
          } else {
            v = (r >> 48 & 0x8000) | (12 + ((r >> 8) & 7)) << 10 | fraction >> 54;
          }
          break;
        case 4:
          v = u64{1} << (r >> 8 & 63) | u64{1} << (r >> 16 & 63);
          break;
        default:
          v = fraction;
          break;
      }
      v &= Mask(8 * width);
    }
    return pool;
  };
  static const std::vector<u64> k1 = make(1), k2 = make(2), k4 = make(4), k8 = make(8);
  return bytes == 1 ? k1 : bytes == 2 ? k2 : bytes == 4 ? k4 : k8;
}

int WidthOf(char kind) { return kind == 'b' ? 1 : kind == 'h' ? 2 : kind == 'r' ? 4 : 8; }

}  // namespace

const std::vector<u64>& EdgeValues(int bytes) {
  // clang-format off
  static const std::vector<u64> k1 = {0, 1, 2, 7, 8, 0x0f, 0x10, 0x3f, 0x40, 0x7e, 0x7f, 0x80, 0x81,
                                      0xf0, 0xfe, 0xff};
  static const std::vector<u64> k2 = {
      0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 0x7f, 0x80, 0xff, 0x100, 0x3ff, 0x400, 0x401, 0x3c00,
      0x3c01, 0x3bff, 0x3800, 0x4000, 0x7bff, 0x7c00, 0x7c01, 0x7e00, 0x7fff, 0x8000, 0x8001,
      0x83ff, 0x8400, 0xbc00, 0xc000, 0xfbff, 0xfc00, 0xfe00, 0xffff, 0x3f80, 0x7f80, 0x7f7f,
      0xff80, 0x7f81, 0x4b00, 0x5bff, 0x3555, 0x6400};
  static const std::vector<u64> k4 = {
      0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, 255, 256, 0x7fff, 0x8000, 0xffff, 0x10000, 0x12345678,
      0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0x007fffff,
      0x00800000, 0x00800001, 0x33800000, 0x3effffff, 0x3f000000, 0x3f000001, 0x3f7fffff,
      0x3f800000, 0x3f800001, 0x3fc00000, 0x40000000, 0x40200000, 0x4b000000, 0x4b800000,
      0x4b7fffff, 0x4f000000, 0x4effffff, 0x4f800000, 0x5f000000, 0x5f800000, 0x7f000000,
      0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000, 0x807fffff, 0x80800000, 0xbf000000,
      0xbf800000, 0xbfc00000, 0xcf000000, 0xcf000001, 0xdf000000, 0xff7fffff, 0xff800000,
      0xffc00000, 0x477fefff, 0x477ff000, 0x38800000, 0x387fe000, 0x33000000, 0x33000001,
      0x7f7f8000, 0x00400000, 0x7e800000, 0x7e800001, 0x01000000, 0x7bff7bff, 0xfc007c00,
      0x7fff0001};
  static const std::vector<u64> k8 = {
      0, 1, 2, 3, 31, 32, 63, 64, 65, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
      0x7ffffffffffffffe, 0x7fffffffffffffff, 0x8000000000000000, 0x8000000000000001,
      0xfffffffffffffffe, 0xffffffffffffffff, 0x000fffffffffffff, 0x0010000000000000,
      0x0010000000000001, 0x3fe0000000000000, 0x3fdfffffffffffff, 0x3ff0000000000000,
      0x3ff0000000000001, 0x3fefffffffffffff, 0x3ff8000000000000, 0x4000000000000000,
      0x4004000000000000, 0x41dfffffffc00000, 0x41e0000000000000, 0x41efffffffe00000,
      0x41f0000000000000, 0x43e0000000000000, 0x43dfffffffffffff, 0x43f0000000000000,
      0x7fe0000000000000, 0x7fefffffffffffff, 0x7ff0000000000000, 0x7ff0000000000001,
      0x7ff8000000000000, 0xbff0000000000000, 0xbfe0000000000000, 0xc1e0000000000000,
      0xc3e0000000000000, 0xffefffffffffffff, 0xfff0000000000000, 0xfff8000000000000,
      0x800fffffffffffff, 0x47efffffe0000000, 0x47efffffefffffff, 0x47effffff0000000,
      0x36a0000000000000, 0x3690000000000000, 0x3690000000000001, 0x380fffffe0000000,
      0x600000000000, 0x610000000010, 0x620000000020, 0x5fffffffffff, 0x630000000000,
      0x3fffffffe0000000, 0x3ff0000010000000, 0x3ff0000030000000, 0x40effc0000000000};
  // clang-format on
  return bytes == 1 ? k1 : bytes == 2 ? k2 : bytes == 4 ? k4 : k8;
}

Property::Property(const Line& line) : line_(line) {
  auto parsed = ptx::Parse(
      ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n"
      ".reg .b16 %h<6>;\n.reg .b32 %r<6>;\n.reg .b64 %rd<6>;\n.reg .pred %p<6>;\n"
      ".reg .b128 %q<6>;\n.reg .b8 %b<6>;\n" +
      line.text + "\nret;\n}\n");
  if (!parsed) {
    error_ = parsed.error().message;
    return;
  }
  module_ = std::move(*parsed);
  for (const alu::Isa isa : {alu::Isa::kV2, alu::Isa::kV3, alu::Isa::kV4}) {
    if (!alu::IsaSupported(isa)) continue;
    const alu::ScopedIsa scoped(isa);
    Op op;
    if (!Decode(&op)) {
      error_ = "no handler";
      return;
    }
    // Slow handlers exist once.
    if (ops_.empty() || ops_.back().alu != op.alu) ops_.push_back(op);
  }
  selected_ = true;
  const auto flatten = [](const std::vector<Place>& places, std::vector<Value>* values) {
    for (const Place& p : places) {
      values->push_back({p});
      if (p.kind == 'q') values->push_back({p, true});
    }
  };
  flatten(line.from, &sources_);
  flatten(line.to, &results_);
  Place carry;
  carry.kind = 'p';
  carry.number = kCarry;
  if (line.ReadsCarry()) sources_.push_back({carry, false, true});
  if (line.WritesCarry()) results_.push_back({carry, false, true});
}

bool Property::Decode(Op* op) {
  const ptx::Function& function = module_.functions.at(0);
  const ptx::Instruction& in = function.code.at(0);
  form_ = AluForm{};
  if (!SelectAlu(in, &form_, &function.registers)) return false;
  op->alu = form_.fn;
  op->imm = form_.imm;
  op->flags = form_.flags;
  int constant = 0;
  for (const AluForm::Place& place : form_.places) {
    const ptx::Operand* o = &in.operands.at(place.operand);
    if (place.element != 0xff) o = &o->elements.at(place.element);
    Slot slot = kNoSlot;
    if (o->kind == ptx::Operand::Kind::kReg) {
      slot = SlotOf(o->reg);
    } else if (o->kind != ptx::Operand::Kind::kSink) {
      slot = static_cast<Slot>(kConstant | constant);
      for (int l = 0; l < kLanes; ++l) {
        std::memcpy(&constants_[32 * constant + l * place.bytes / 4], &o->imm, place.bytes);
      }
      constant += place.bytes / 4;
    }
    Slot* const where[] = {&op->d, &op->d2, &op->s[0], &op->s[1], &op->s[2], &op->s[3]};
    *where[static_cast<int>(place.where)] = slot;
  }
  if ((form_.flags & kReadsCarry) != 0) op->s[3] = kCarry;
  if ((form_.flags & kWritesCarry) != 0) op->d2 = kCarry;
  return true;
}

void Property::Load(const Place& place, const std::vector<u64>& values, std::size_t first) {
  if (place.kind == '#' || place.kind == '_') return;
  if (place.kind == 'p') {
    u32 bits = 0;
    for (u32 l = 0; l < kLanes; ++l) bits |= static_cast<u32>(values[first + l] & 1) << l;
    predicates_[place.number] = place.negated ? ~bits : bits;
    return;
  }
  u32* slot = file_ + 32 * SlotOf(place.kind, place.number);
  if (WidthOf(place.kind) == 8) {
    std::memcpy(slot, &values[first], 8 * kLanes);
  } else {
    for (std::size_t l = 0; l < kLanes; ++l) slot[l] = static_cast<u32>(values[first + l]);
  }
}

u64 Property::Read(const Place& place, int lane, bool high) const {
  if (place.kind == 'p') return predicates_[place.number] >> lane & 1;
  const u32* slot = file_ + 32 * SlotOf(place.kind, place.number) + (high ? 64 : 0);
  if (WidthOf(place.kind) == 4 || WidthOf(place.kind) < 4) return slot[lane];
  u64 v = 0;
  std::memcpy(&v, slot + 2 * lane, 8);
  return v;
}

// All pairs of edges in the first two sources, then random ones; the others are random throughout.
void Property::Fill(std::size_t first, std::size_t threads) {
  std::size_t seed = std::hash<std::string>()(line_.text);
  in_.resize(sources_.size());
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    std::vector<u64>& values = in_[i];
    const Place& place = sources_[i].place;
    values.resize(threads);
    if (place.kind == '#') {
      std::fill(values.begin(), values.end(), place.literal);
      continue;
    }
    const int width = place.kind == 'p' ? 8 : WidthOf(place.kind);
    const std::vector<u64>& pool = Pool(width);
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const std::size_t offset = seed >> 20;
    for (std::size_t t = 0; t < threads; ++t) values[t] = pool[(first + t + offset) & (kPool - 1)];
    if (place.kind == 'p') {
      for (u64& v : values) v = v >> 17 & 1;
      continue;
    }
    if (i < 2) {
      const auto& edges = EdgeValues(width);
      std::size_t other = 1;
      if (i == 0 && sources_.size() > 1 && sources_[1].place.kind != '#') {
        other = EdgeValues(WidthOf(sources_[1].place.kind)).size();
      }
      for (std::size_t t = 0; t < threads && first + t < kEdgePairs; ++t) {
        values[t] = edges[(first + t) / other % edges.size()];
      }
    }
  }
}

std::string Property::Describe(std::size_t thread, std::size_t which, u64 got, u64 want) const {
  char buffer[96];
  std::string s = line_.text + " (" + line_.form + "), operands";
  for (const auto& values : in_) {
    std::snprintf(buffer, sizeof buffer, " %llx", static_cast<unsigned long long>(values[thread]));
    s += buffer;
  }
  std::snprintf(buffer, sizeof buffer, ": result %zu is %llx, not %llx", which,
                static_cast<unsigned long long>(got), static_cast<unsigned long long>(want));
  return s + buffer;
}

void Property::LoadSources(std::size_t first) {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (!sources_[i].high) {
      Load(sources_[i].place, in_[i], first);
    } else {
      std::memcpy(file_ + 32 * SlotOf('q', sources_[i].place.number) + 64, &in_[i][first],
                  8 * kLanes);
    }
  }
}

// Whether all lanes have what the model says: the usual case, without a word on which differs.
bool Property::AllEqual(std::size_t first) const {
  for (std::size_t r = 0; r < results_.size(); ++r) {
    const Place& place = results_[r].place;
    const u64* want = &want_[r][first];
    if (place.kind == '_') continue;
    u64 difference = 0;
    if (place.kind == 'p') {
      for (int l = 0; l < kLanes; ++l) difference |= want[l] ^ (predicates_[place.number] >> l & 1);
    } else {
      const u32* slot = file_ + 32 * SlotOf(place.kind, place.number) + (results_[r].high ? 64 : 0);
      if (WidthOf(place.kind) == 8) {
        difference = static_cast<u64>(std::memcmp(slot, want, 8 * kLanes));
      } else {
        for (int l = 0; l < kLanes; ++l) difference |= want[l] ^ slot[l];
      }
    }
    if (difference != 0) return false;
  }
  return true;
}

std::string Property::Check(const Model& model, std::size_t block) {
  const std::size_t first = block * kLanes;
  const u32 some = static_cast<u32>((block + 1) * 2654435761u) ^ 0x5bd1e995u;
  const u32 mask = block % 4 == 3 ? (some | 1u << (block / 4 % 32)) : kAllLanes;
  const bool onto_source = block % 8 == 5 && results_.size() == 1 && !sources_.empty() &&
                           results_[0].place.kind == sources_[0].place.kind &&
                           results_[0].place.kind != 'p' && results_[0].place.kind != 'q';
  for (const Op& original : ops_) {
    Op op = original;
    for (const Value& v : results_) {
      if (v.place.kind == '_') continue;
      if (v.place.kind == 'p') {
        predicates_[v.place.number] = kAllLanes;
        continue;
      }
      u32* slot = file_ + 32 * SlotOf(v.place.kind, v.place.number) + (v.high ? 64 : 0);
      const int width = WidthOf(v.place.kind);
      std::fill_n(slot, width == 8 ? 64 : 32, static_cast<u32>(kUntouched & Mask(8 * width)));
    }
    // A result may have been written over a source, or over the carry.
    LoadSources(first);
    if (onto_source) op.d = SlotOf(sources_[0].place.kind, sources_[0].place.number);
    const Lanes lanes{reinterpret_cast<std::byte*>(file_),
                      reinterpret_cast<const std::byte*>(constants_), predicates_};
    op.alu(lanes, op, mask);
    if (mask == kAllLanes && !onto_source && !model.accept && AllEqual(first)) continue;
    for (std::size_t r = 0; r < results_.size(); ++r) {
      const Place& place = onto_source ? sources_[0].place : results_[r].place;
      if (place.kind == '_') continue;
      const u64 untouched = results_[r].place.kind == 'p'
                                ? kUntouched & 1
                                : kUntouched & Mask(8 * WidthOf(place.kind));
      for (int l = 0; l < kLanes; ++l) {
        const std::size_t thread = first + static_cast<std::size_t>(l);
        const u64 got = Read(place, l, results_[r].high);
        if ((mask >> l & 1) == 0) {
          // The carry is read and written by the same instruction.
          const u64 before = onto_source                                  ? in_[0][thread]
                             : results_[r].carry && sources_.back().carry ? in_.back()[thread]
                                                                          : untouched;
          if (got != before) return "inactive lane: " + Describe(thread, r, got, before);
          continue;
        }
        if (model.accept) {
          u64 s[kMaxOperands];
          for (std::size_t i = 0; i < in_.size(); ++i) s[i] = in_[i][thread];
          if (!model.accept(s, got)) return Describe(thread, r, got, 0);
          // Whatever is accepted, all instruction sets must agree.
          if (&original == &ops_.front()) want_[r][thread] = got;
          if (got != want_[r][thread]) return Describe(thread, r, got, want_[r][thread]);
        } else if (got != want_[r][thread]) {
          return Describe(thread, r, got, want_[r][thread]);
        }
      }
    }
  }
  return "";
}

std::string Property::RunChunk(const Model& model, std::size_t first, std::size_t threads) {
  Fill(first, threads);
  // Approximations are accepted or not with the result at hand.
  want_.resize(results_.size());
  for (auto& values : want_) values.resize(threads);
  if (!model.accept) {
    std::fesetround(model.rounding);
    for (std::size_t t = 0; t < threads; ++t) {
      u64 s[kMaxOperands], d[kMaxOperands] = {};
      for (std::size_t i = 0; i < in_.size(); ++i) s[i] = in_[i][t];
      model.compute(s, d);
      for (std::size_t r = 0; r < results_.size(); ++r) want_[r][t] = d[r];
    }
    std::fesetround(FE_TONEAREST);
  }
  for (std::size_t block = 0; block < threads / kLanes; ++block) {
    std::string difference = Check(model, block);
    if (!difference.empty()) return difference;
  }
  return "";
}

std::string Property::Run(const Model& model, std::size_t random) {
  const std::size_t threads = (kEdgePairs + random + kLanes - 1) / kLanes * kLanes;
  for (std::size_t first = 0; first < threads; first += kChunk) {
    std::string difference = RunChunk(model, first, std::min(kChunk, threads - first));
    if (!difference.empty()) return difference;
  }
  return "";
}

}  // namespace allranks::node::alu_test
