// See draw.h. Every stream's name says what it is for, so that no two uses share numbers.
#include "judge/draw.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.h"
#include "judge/draw_values.h"

namespace allranks::judge {
namespace {

constexpr std::int64_t kNs = 1000;                            // ps
constexpr std::int64_t kLatestBegin = std::int64_t{1} << 42;  // some four seconds

// Any order of magnitude is as likely as any other.
std::int64_t AnySize(Stream& stream, std::int64_t low, std::int64_t high) {
  const auto bits = [](std::int64_t x) {
    return static_cast<int>(
        std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(x, 0))));
  };
  const std::int64_t width = stream.Between(bits(low), bits(high));
  const std::int64_t from = width == 0 ? 0 : std::int64_t{1} << (width - 1);
  const std::int64_t to = width == 0 ? 0 : from + (from - 1);
  return stream.Between(std::clamp(from, low, high), std::clamp(to, low, high));
}

// One of low, low + step, ... up to high.
std::int64_t DrawParam(Stream& stream, std::int64_t low, std::int64_t high, std::int64_t step,
                       int world) {
  const std::int64_t last = low + (high - low) / step * step;
  switch (stream.Below(8)) {
    case 0:
      return low;
    case 1:
      return last;
    case 2:
      return low + stream.Between(0, (last - low) / step) * step;
    default:
      break;
  }
  std::int64_t value = low + (AnySize(stream, low, last) - low) / step * step;
  // Up to the next odd one that the world does not divide, if there is one near.
  for (int tries = 0; tries < 4 && (value % 2 == 0 || value % world == 0); ++tries) {
    if (value >= last) break;
    value += step;
  }
  return value;
}

}  // namespace

std::vector<problem::Case> Drawer::DrawCases(const problem::Problem& problem) const {
  const problem::DrawnCases& drawn = problem.drawn;
  Stream stream(key_, "cases");
  const auto other = static_cast<int>(
      stream.Between(drawn.world_low, std::max(drawn.world_low, drawn.world_high - 1)));
  std::vector<problem::Case> cases;
  for (int i = 0; i < drawn.count; ++i) {
    problem::Case one;
    one.name = fmt::format("drawn.{}", i);
    one.kind = problem::Case::Kind::kDrawn;
    one.world = i % 2 == 0 ? other : drawn.world_high;
    one.skew = drawn.skew;
    for (std::size_t p = 0; p < problem.params.size(); ++p) {
      one.params.push_back(
          DrawParam(stream, drawn.low[p], drawn.high[p], drawn.step[p], one.world));
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

Status Drawer::Fill(const problem::Problem& problem, const problem::Case& one, std::size_t tensor,
                    std::uint32_t call, int rank, std::span<std::byte> to) const {
  const problem::Tensor& what = problem.tensors[tensor];
  const problem::Values values = problem::ValuesOf(problem, one);
  DrawRequest request{.type = what.type, .kind = what.draw.kind};
  if (!what.draw.limit.empty()) {
    const Result<std::int64_t> limit = what.draw.limit.Evaluate(values);
    if (!limit) return Fail("{}: limit: {}", what.name, limit.error().message);
    request.limit = *limit;
  }
  if (!what.shape.empty()) {
    const Result<std::int64_t> row = what.shape.back().Evaluate(values);
    if (!row) return Fail("{}: shape: {}", what.name, row.error().message);
    request.row = *row;
  }
  // What all ranks share: which distribution, which experts are hot.
  Stream common(key_, fmt::format("tensor/{}/{}", one.name, tensor));
  std::iota(request.order.begin(), request.order.end(), std::uint8_t{0});
  for (std::size_t i = request.order.size() - 1; i > 0; --i) {
    std::swap(request.order[i], request.order[common.Below(i + 1)]);
  }
  request.call = call;
  request.common = common.Next64();
  const int whose = what.same ? 0 : rank;
  Stream stream(key_, fmt::format("input/{}/{}/{}/{}", one.name, call, whose, tensor));
  const Status filled = FillValues(request, stream, to);
  if (!filled) return Fail("{}: {}", what.name, filled.error().message);
  return Ok();
}

std::uint32_t Drawer::PoisonWord(std::string_view case_name, std::uint32_t call) const {
  Stream stream(key_, fmt::format("poison/{}/{}", case_name, call));
  const std::uint32_t bits = stream.Next32();
  // The upper half has f64's eleven exponent bits and a bit of mantissa, the lower one bf16's eight
  // (f16's five are among them) and one of seven bits of mantissa; signs and the rest are random.
  const std::uint32_t upper = 0x7ff8u | (bits & 0x8007u);
  const std::uint32_t lower = 0x7fc0u | (bits >> 16 & 0x803fu);
  return upper << 16 | lower;
}

std::int64_t Drawer::DelayPs(std::string_view case_name, std::uint32_t call, int rank) const {
  Stream stream(key_, fmt::format("delay/{}/{}/{}", case_name, call, rank));
  switch (stream.Below(4)) {
    case 0:
      return stream.Between(0, 1000 * kNs);  // within one call's time
    case 1:
      return stream.Between(0, 20'000 * kNs);  // several calls late
    default:
      return 0;
  }
}

std::int64_t Drawer::BeginPs(std::string_view case_name, std::uint32_t call) const {
  Stream stream(key_, fmt::format("begin/{}/{}", case_name, call));
  return stream.Between(0, kLatestBegin);
}

std::uint64_t Drawer::ScheduleSeed(std::string_view case_name, std::uint32_t call) const {
  Stream stream(key_, fmt::format("schedule/{}/{}", case_name, call));
  return stream.Next64() | 1;
}

std::uint64_t Drawer::SampleSeed(std::string_view case_name, std::uint32_t call) const {
  Stream stream(key_, fmt::format("sample/{}/{}", case_name, call));
  return stream.Next64() | 1;
}

double Drawer::Fraction(std::string_view case_name, std::string_view label) const {
  Stream stream(key_, fmt::format("fraction/{}/{}", case_name, label));
  return static_cast<double>(stream.Next32()) * 0x1p-32;
}

void Drawer::Shuffle(std::string_view case_name, std::size_t count,
                     const std::function<void(std::size_t, std::size_t)>& exchange) const {
  Stream stream(key_, fmt::format("shuffle/{}", case_name));
  for (std::size_t i = count; i > 1; --i) exchange(i - 1, stream.Below(i));
}

std::array<std::uint64_t, 4> Drawer::OracleRandom(std::string_view case_name,
                                                  std::uint32_t call) const {
  Stream stream(key_, fmt::format("oracle/{}/{}", case_name, call));
  return {stream.Next64(), stream.Next64(), stream.Next64(), stream.Next64()};
}

std::string Drawer::Secret(std::string_view label) const {
  Stream stream(key_, fmt::format("secret/{}", label));
  Key secret{};
  stream.Bytes(secret.data(), secret.size());
  return Hex(secret);
}

}  // namespace allranks::judge
