// How Check compares; included by check.h. Nothing here is a template: an oracle is compiled for
// every problem, and instances for ten types would be most of that.
#pragma once

#include "allranks/oracle/check.h"

namespace allranks::oracle {

inline std::uint32_t Check::Use(int rank, std::string_view tensor, std::uint64_t at,
                                std::uint64_t count) {
  const std::uint32_t t = call_.Find(tensor, Dir::kOut);
  const std::uint64_t size = call_.raw().tensors[t].count;
  if (at > size || count > size - at) {
    throw std::runtime_error("tensor '" + std::string(tensor) + "' has " + std::to_string(size) +
                             " elements, not " + std::to_string(at) + " + " +
                             std::to_string(count));
  }
  looked_at_[call_.Slot(rank, t)] += count;
  return t;
}

inline const unsigned char* Check::BytesAt(int rank, std::uint32_t tensor, std::uint64_t at) const {
  const RawCall& raw = call_.raw();
  return static_cast<const unsigned char*>(raw.data[call_.Slot(rank, tensor)]) +
         at * SizeOf(raw.tensors[tensor].type);
}

inline bool Check::PoisonAt(int rank, std::uint32_t tensor, std::uint64_t index) const {
  const std::uint64_t size = SizeOf(call_.raw().tensors[tensor].type);
  const std::uint32_t word = call_.raw().poison[call_.Slot(rank, tensor)];
  const unsigned char* bytes = BytesAt(rank, tensor, index);
  for (std::uint64_t b = 0; b < size; ++b) {
    if (bytes[b] != (word >> (index * size + b) % 4 * 8 & 0xff)) return false;
  }
  return true;
}

inline std::string Check::TextAt(int rank, std::uint32_t tensor, std::uint64_t index) const {
  if (PoisonAt(rank, tensor, index)) return "never written";
  const void* at = BytesAt(rank, tensor, index);
  const Type type = call_.raw().tensors[tensor].type;
  if (type == Type::kI64) return std::to_string(*static_cast<const std::int64_t*>(at));
  if (type == Type::kU64) return std::to_string(*static_cast<const std::uint64_t*>(at));
  double value = 0;
  ToDoubles(type, at, 1, &value);
  char text[48];
  // A NaN that is not this call's poison may be an earlier call's: its bits tell.
  if (value != value) {
    unsigned long long bits = 0;
    std::memcpy(&bits, at, SizeOf(type));
    std::snprintf(text, sizeof text, "nan (0x%0*llx)", static_cast<int>(2 * SizeOf(type)), bits);
    return text;
  }
  std::snprintf(text, sizeof text, IsFloat(type) ? "%.9g" : "%.0f", value);
  return text;
}

inline void Check::Report(int rank, std::uint32_t tensor, std::uint64_t index,
                          const std::string& expected, const std::string& got) {
  if (report_.wrong_count++ >= report_.limit) return;
  report_.wrong(report_.context, rank, tensor, index, expected.c_str(), got.c_str());
}

inline void Check::CompareExact(int rank, std::uint32_t tensor, std::uint64_t at,
                                const void* expected, std::uint64_t count) {
  const Type type = call_.raw().tensors[tensor].type;
  const std::uint64_t size = SizeOf(type);
  const unsigned char* got = BytesAt(rank, tensor, at);
  const auto* want = static_cast<const unsigned char*>(expected);
  for (std::uint64_t block = 0; block < count; block += kBlock) {
    const std::uint64_t end = std::min<std::uint64_t>(count, block + kBlock);
    // Equal bytes are equal values as long as no NaN is expected, and none ever is.
    if (std::memcmp(got + block * size, want + block * size, (end - block) * size) == 0) continue;
    for (std::uint64_t i = block; i < end; ++i) {
      if (std::memcmp(got + i * size, want + i * size, size) == 0) continue;
      double wanted = 0, have = 0;
      ToDoubles(type, want + i * size, 1, &wanted);
      ToDoubles(type, got + i * size, 1, &have);
      if (IsFloat(type) && wanted == have) continue;  // the two zeros
      if (!Tells()) {
        ++report_.wrong_count;
        continue;
      }
      std::string text = Text(wanted);
      if (type == Type::kU64) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, want + i * size, size);
        text = std::to_string(bits);
      } else if (!IsFloat(type)) {
        std::int64_t bits = static_cast<std::int64_t>(wanted);
        if (type == Type::kI64) std::memcpy(&bits, want + i * size, size);
        text = std::to_string(bits);
      }
      ReportElement(rank, tensor, at + i, text);
    }
  }
}

// At most kBlock elements.
inline void Check::CompareNear(int rank, std::uint32_t tensor, std::uint64_t at,
                               const double* expected, const double* bound, std::size_t count) {
  double got[kBlock];
  ToDoubles(call_.raw().tensors[tensor].type, BytesAt(rank, tensor, at), count, got);
  std::uint64_t far = 0;
  // Written so that NaN counts as far.
  for (std::size_t i = 0; i < count; ++i) {
    far += std::abs(got[i] - expected[i]) <= bound[i] ? 0u : 1u;
  }
  if (far == 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::abs(got[i] - expected[i]) <= bound[i]) continue;
    if (Tells()) {
      ReportElement(rank, tensor, at + i, Text(expected[i]) + " +- " + Text(bound[i]));
    } else {
      ++report_.wrong_count;
    }
  }
}

inline void Check::NearAt(int rank, std::string_view tensor, std::uint64_t at,
                          std::span<const double> expected, std::span<const double> bound) {
  if (bound.size() != expected.size()) {
    throw std::runtime_error("Near: as many bounds as values are needed");
  }
  const std::uint32_t t = Use(rank, tensor, at, expected.size());
  for (std::size_t i = 0; i < expected.size(); i += kBlock) {
    const std::size_t n = std::min(kBlock, expected.size() - i);
    CompareNear(rank, t, at + i, expected.data() + i, bound.data() + i, n);
  }
}

inline void Check::SumFloats(std::span<const Piece> from, std::span<const Piece> to,
                             std::uint64_t at, std::size_t count, const Budget& budget) {
  double sum[kBlock] = {}, bound[kBlock] = {}, term[kBlock];
  for (const Piece& piece : from) {
    const std::uint32_t t = call_.Find(piece.tensor);
    ToDoubles(call_.raw().tensors[t].type, BytesAt(piece.rank, t, piece.at + at), count, term);
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] += term[i];
      bound[i] += std::abs(term[i]);
    }
  }
  for (std::size_t i = 0; i < count; ++i) bound[i] = budget.Of(bound[i], sum[i]);
  for (const Piece& piece : to) {
    CompareNear(piece.rank, call_.Find(piece.tensor), piece.at + at, sum, bound, count);
  }
}

// Sums modulo 2^64, of which a type keeps its low bits.
inline void Check::SumIntegers(std::span<const Piece> from, std::span<const Piece> to,
                               std::uint64_t at, std::size_t count) {
  std::uint64_t sum[kBlock] = {};
  unsigned char expected[kBlock * 8];
  const Type type = call_.TypeOfTensor(from[0].tensor);
  const std::size_t size = SizeOf(type);
  for (const Piece& piece : from) {
    const unsigned char* in = BytesAt(piece.rank, call_.Find(piece.tensor), piece.at + at);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, in + i * size, size);
      sum[i] += bits;
    }
  }
  for (std::size_t i = 0; i < count; ++i) std::memcpy(expected + i * size, &sum[i], size);
  for (const Piece& piece : to) {
    CompareExact(piece.rank, call_.Find(piece.tensor), piece.at + at, expected, count);
  }
}

inline void Check::Sum(std::span<const Piece> from, std::span<const Piece> to, std::uint64_t count,
                       Type accumulated) {
  if (from.empty() || to.empty()) throw std::runtime_error("Sum: nothing to add or to compare");
  const Type in = call_.TypeOfTensor(from[0].tensor), out = call_.TypeOfTensor(to[0].tensor);
  for (const Piece& piece : from) {
    const std::uint32_t t = call_.Find(piece.tensor, Dir::kIn);
    call_.Slot(piece.rank, t);
    const RawTensor& tensor = call_.raw().tensors[t];
    if (tensor.type != in || piece.at > tensor.count || count > tensor.count - piece.at) {
      throw std::runtime_error("Sum: another type, or beyond the end of '" +
                               std::string(piece.tensor) + "'");
    }
  }
  for (const Piece& piece : to) {
    if (call_.TypeOfTensor(piece.tensor) != out || (!IsFloat(out) && out != in)) {
      throw std::runtime_error("Sum: outputs of different types");
    }
    Use(piece.rank, piece.tensor, piece.at, count);
  }
  const Budget budget = SumBudget(in, accumulated, out, from.size());
  for (std::uint64_t at = 0; at < count; at += kBlock) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, count - at));
    if (IsFloat(out)) {
      SumFloats(from, to, at, n, budget);
    } else {
      SumIntegers(from, to, at, n);
    }
  }
}

inline void Check::Untouched(int rank, std::string_view tensor, std::uint64_t from,
                             std::uint64_t to) {
  to = std::min(to, call_.raw().tensors[call_.Find(tensor, Dir::kOut)].count);
  if (from >= to) return;
  const std::uint32_t t = Use(rank, tensor, from, to - from);
  const std::uint64_t size = SizeOf(call_.raw().tensors[t].type);
  const std::uint32_t word = call_.raw().poison[call_.Slot(rank, t)];
  for (std::uint64_t at = from; at < to;) {
    // Whole words at once, where they are all poison.
    std::uint64_t n = std::min<std::uint64_t>(kBlock, to - at) * size / 4 * 4 / size;
    if (at * size % 4 == 0 && n != 0) {
      const unsigned char* bytes = BytesAt(rank, t, at);
      std::uint32_t other = 0;
      for (std::size_t b = 0; b < n * size; b += 4) {
        std::uint32_t have = 0;
        std::memcpy(&have, bytes + b, 4);
        other |= have ^ word;
      }
      if (other == 0) {
        at += n;
        continue;
      }
    } else {
      n = 1;
    }
    for (const std::uint64_t end = at + n; at < end; ++at) {
      if (!PoisonAt(rank, t, at)) ReportElement(rank, t, at, "nothing written here");
    }
  }
}

inline void Check::RequireAllSeen() const {
  const RawCall& raw = call_.raw();
  for (int rank = 0; rank < raw.world; ++rank) {
    for (std::uint32_t t = 0; t < raw.tensor_count; ++t) {
      const std::uint64_t seen = looked_at_[call_.Slot(rank, t)];
      if (raw.tensors[t].dir != Dir::kOut || seen >= raw.tensors[t].count) continue;
      throw std::runtime_error("only " + std::to_string(seen) + " of " +
                               std::to_string(raw.tensors[t].count) + " elements of rank " +
                               std::to_string(rank) + "'s '" + raw.tensors[t].name +
                               "' were compared");
    }
  }
}

}  // namespace allranks::oracle
