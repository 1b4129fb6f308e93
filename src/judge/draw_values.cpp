// See draw_values.h. Only integer arithmetic and exact float operations, so that every machine
// draws the same. Floats are made 1024 at a time, in loops without branches that the compiler
// vectorises: 4 bytes of the stream per element.
#include "judge/draw_values.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/check.h"

namespace allranks::judge {
namespace {

using problem::Draw;
using problem::Type;

constexpr std::size_t kBlock = 1024;
enum Mixture : std::uint8_t { kUniform, kWide, kIntegers, kSparse, kHuge };

struct Shape {
  int wide_exponents = 24;  // from 2^-12
  float huge = 0x1p20f;
};

// The upper 24 bits as a number in [-1, 1).
inline float Uniform(std::uint32_t bits) {
  return static_cast<float>(static_cast<std::int32_t>(bits) >> 8) * 0x1p-23f;
}

// Sign and mantissa of the word's upper 24 bits, exponent by the lower 8.
inline float Wide(std::uint32_t bits, std::uint32_t exponents) {
  const std::uint32_t exponent = 127 - 12 + ((bits & 0xff) * exponents >> 8);
  return std::bit_cast<float>((bits & 0x80000000u) | exponent << 23 | (bits >> 8 & 0x7fffffu));
}

inline float KeepIf(bool keep, float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & (keep ? ~0u : 0u));
}

void MakeFloats(Mixture mixture, const Shape& shape, const std::uint32_t* words, std::size_t count,
                float* to) {
  const auto exponents = static_cast<std::uint32_t>(shape.wide_exponents);
  switch (mixture) {
    case kUniform:
      for (std::size_t i = 0; i < count; ++i) to[i] = Uniform(words[i]);
      return;
    case kWide:
      for (std::size_t i = 0; i < count; ++i) to[i] = Wide(words[i], exponents);
      return;
    case kIntegers:
      for (std::size_t i = 0; i < count; ++i) {
        to[i] = static_cast<float>(static_cast<std::int32_t>((words[i] >> 8) * 17 >> 24) - 8);
      }
      return;
    case kSparse:
      // The bits that decide are the lowest of the mantissa: far from those of the exponent.
      for (std::size_t i = 0; i < count; ++i) {
        to[i] = KeepIf((words[i] >> 8 & 0xf) == 0, Wide(words[i], exponents));
      }
      return;
    case kHuge:
      for (std::size_t i = 0; i < count; ++i) {
        const float scale = (words[i] & 7) == 0 ? shape.huge : 1.0f;
        to[i] = Uniform(words[i]) * scale;
      }
      return;
  }
}

// Cuts to the type's mantissa: towards zero, so ranges stay as they are. All values are normal or 0
// in f16 too, or become 0.
void Store(Type type, const float* from, std::size_t count, std::byte* to) {
  if (type == Type::kF32) {
    std::memcpy(to, from, count * sizeof(float));
  } else if (type == Type::kF64) {
    auto* out = reinterpret_cast<double*>(to);
    for (std::size_t i = 0; i < count; ++i) out[i] = from[i];
  } else if (type == Type::kBf16) {
    auto* out = reinterpret_cast<std::uint16_t*>(to);
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(from[i]) >> 16);
    }
  } else {
    auto* out = reinterpret_cast<std::uint16_t*>(to);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(from[i]);
      const std::uint32_t magnitude = bits & 0x7fffffffu;
      const std::uint32_t moved = (magnitude - (112u << 23)) >> 13;
      const std::uint32_t kept = magnitude >= 113u << 23 ? moved : 0u;
      out[i] = static_cast<std::uint16_t>(bits >> 16 & 0x8000u) | static_cast<std::uint16_t>(kept);
    }
  }
}

void FillFloats(Mixture mixture, Type type, Stream& stream, std::span<std::byte> to) {
  const std::size_t size = problem::SizeOf(type), count = to.size() / size;
  Shape shape;
  if (type == Type::kF16) shape.wide_exponents = 23;
  if (type == Type::kF16 || type == Type::kBf16) shape.huge = 0x1p11f;
  std::uint32_t words[kBlock];
  float values[kBlock];
  for (std::size_t at = 0; at < count; at += kBlock) {
    const std::size_t n = std::min(kBlock, count - at);
    stream.Bytes(words, n * sizeof(std::uint32_t));
    MakeFloats(mixture, shape, words, n, values);
    Store(type, values, n, to.data() + at * size);
  }
}

// An integer as an element of any type.
void StoreInteger(Type type, std::int64_t value, std::byte* to) {
  if (type == Type::kF64) {
    const auto x = static_cast<double>(value);
    std::memcpy(to, &x, sizeof x);
  } else if (problem::IsFloat(type)) {
    const auto x = static_cast<float>(value);
    Store(type, &x, 1, to);
  } else {
    std::memcpy(to, &value, problem::SizeOf(type));
  }
}

// Largest integer up to which a type holds every one.
std::int64_t LargestInteger(Type type) {
  switch (type) {
    case Type::kF32:
      return 1 << 24;
    case Type::kF16:
      return 1 << 11;
    case Type::kBf16:
      return 1 << 8;
    case Type::kF64:
      return std::int64_t{1} << 53;
    case Type::kI8:
      return 127;
    case Type::kU8:
      return 255;
    case Type::kI32:
      return 0x7fffffff;
    case Type::kU32:
      return 0xffffffff;
    default:
      return std::int64_t{1} << 62;
  }
}

// Uniform in [low, low + span).
void FillUniformIntegers(Type type, std::int64_t low, std::uint64_t span, Stream& stream,
                         std::span<std::byte> to) {
  const std::size_t size = problem::SizeOf(type), count = to.size() / size;
  if (span > 0xffffffff) {
    for (std::size_t i = 0; i < count; ++i) {
      StoreInteger(type, low + static_cast<std::int64_t>(stream.Below(span)), to.data() + i * size);
    }
    return;
  }
  // 64 bits per element: the bias of 2^-32 shows in no number of draws that a judgement makes.
  std::uint64_t words[kBlock];
  for (std::size_t at = 0; at < count; at += kBlock) {
    const std::size_t n = std::min(kBlock, count - at);
    stream.Bytes(words, n * sizeof(std::uint64_t));
    for (std::size_t i = 0; i < n; ++i) {
      const auto step = static_cast<std::int64_t>((words[i] >> 32) * span >> 32);
      StoreInteger(type, low + step, to.data() + (at + i) * size);
    }
  }
}

// One row of counts with a sum of at most `limit`: nothing at all, everything to one, or shares as
// 1, 1/2, 1/3, ... in any order, with some left out.
void DrawCounts(std::int64_t limit, Stream& stream, std::vector<std::int64_t>* row) {
  std::fill(row->begin(), row->end(), 0);
  const std::uint64_t kind = stream.Below(8);
  if (kind == 0) return;
  // Mostly more than half of what there is room for.
  const std::uint64_t fullness = stream.Below(4);
  const std::int64_t total =
      fullness == 0 ? limit : stream.Between(fullness == 1 ? 0 : limit / 2, limit);
  if (kind == 1) {
    (*row)[stream.Below(row->size())] = total;
    return;
  }
  std::vector<std::int64_t> weights(row->size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = (std::int64_t{1} << 20) / static_cast<std::int64_t>(i + 1);
  }
  for (std::size_t i = weights.size() - 1; i > 0; --i) {
    std::swap(weights[i], weights[stream.Below(i + 1)]);
  }
  std::int64_t sum = 0;
  for (std::int64_t& weight : weights) {
    if (stream.Below(4) == 0) weight = 0;
    sum += weight;
  }
  if (sum == 0) return;
  std::int64_t left = total;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    // total * weight / sum without overflow: sum < 2^24 for any world, weights are below 2^21.
    (*row)[i] = total / sum * weights[i] + total % sum * weights[i] / sum;
    left -= (*row)[i];
  }
  // What rounding left over goes to any of those that have a share.
  for (std::size_t i = stream.Below(weights.size());; i = (i + 1) % weights.size()) {
    if (weights[i] == 0) continue;
    (*row)[i] += left;
    return;
  }
}

Status FillRows(const DrawRequest& request, Stream& stream, std::span<std::byte> to) {
  const std::size_t size = problem::SizeOf(request.type), count = to.size() / size;
  const auto row_size = static_cast<std::size_t>(std::max<std::int64_t>(request.row, 1));
  if (count % row_size != 0) return Fail("the size is not a multiple of the row size");
  std::vector<std::int64_t> row(row_size);
  std::vector<std::int64_t> experts;
  if (request.kind == Draw::Kind::kTopK) {
    if (static_cast<std::int64_t>(row_size) > request.limit) {
      return Fail("no {} distinct integers below {}", row_size, request.limit);
    }
    if (request.limit > 1 << 20) return Fail("topk of {} integers is too many", request.limit);
    experts.resize(static_cast<std::size_t>(request.limit));
    std::iota(experts.begin(), experts.end(), 0);
    Stream common(KeyOf(fmt::format("{}/{}", request.common, request.call), "experts"), "");
    for (std::size_t i = experts.size() - 1; i > 0; --i) {
      std::swap(experts[i], experts[common.Below(i + 1)]);
    }
  }
  for (std::size_t at = 0; at < count; at += row_size) {
    if (request.kind == Draw::Kind::kCounts) {
      DrawCounts(request.limit, stream, &row);
    } else {
      // The smaller of two draws: the first experts get about twice the mean, the last nearly none.
      for (std::size_t i = 0; i < row_size; ++i) {
        std::uint64_t pick = std::min(stream.Below(experts.size()), stream.Below(experts.size()));
        const auto taken = [&] {
          return std::find(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(i),
                           experts[pick]) != row.begin() + static_cast<std::ptrdiff_t>(i);
        };
        while (taken()) pick = (pick + 1) % experts.size();
        row[i] = experts[pick];
      }
    }
    for (std::size_t i = 0; i < row_size; ++i) {
      StoreInteger(request.type, row[i], to.data() + (at + i) * size);
    }
  }
  return Ok();
}

}  // namespace

Status FillValues(const DrawRequest& request, Stream& stream, std::span<std::byte> to) {
  const Type type = request.type;
  CHECK_EQ(to.size() % problem::SizeOf(type), 0u);
  const std::int64_t largest = LargestInteger(type);
  switch (request.kind) {
    case Draw::Kind::kMixed:
    case Draw::Kind::kUniform:
      if (!problem::IsFloat(type)) {
        stream.Bytes(to.data(), to.size());
        return Ok();
      }
      FillFloats(request.kind == Draw::Kind::kUniform
                     ? kUniform
                     : static_cast<Mixture>(request.order[request.call % kMixtures]),
                 type, stream, to);
      return Ok();
    case Draw::Kind::kIntegers: {
      if (request.limit < 0 || request.limit > largest) {
        return Fail("integers up to {}: {} represents all only up to {}", request.limit,
                    problem::NameOf(type), largest);
      }
      const bool is_unsigned = type == Type::kU8 || type == Type::kU32 || type == Type::kU64;
      const std::int64_t low = is_unsigned ? 0 : -request.limit;
      FillUniformIntegers(type, low, static_cast<std::uint64_t>(request.limit - low) + 1, stream,
                          to);
      return Ok();
    }
    case Draw::Kind::kBits:
      if (problem::IsFloat(type)) return Fail("arbitrary bits include NaN: use mixed");
      stream.Bytes(to.data(), to.size());
      return Ok();
    case Draw::Kind::kBelow:
      if (request.limit < 1 || request.limit - 1 > largest) {
        return Fail("integers below {}: {} represents all only up to {}", request.limit,
                    problem::NameOf(type), largest);
      }
      FillUniformIntegers(type, 0, static_cast<std::uint64_t>(request.limit), stream, to);
      return Ok();
    case Draw::Kind::kCounts:
    case Draw::Kind::kTopK:
      if (request.limit < 0 || request.limit > largest) {
        return Fail("{} cannot represent integers up to {}", problem::NameOf(type), request.limit);
      }
      return FillRows(request, stream, to);
  }
  return Ok();
}

}  // namespace allranks::judge
