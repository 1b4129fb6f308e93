// Every row is made fp8 once by the same float operations, so bytes and scales are exact.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {

// Rounded to nearest, ties to even; 448 at most. In units of the last place a carry runs into the
// exponent, as it should.
std::uint8_t E4m3(float x) {
  const double magnitude = std::min<double>(std::abs(x), 448);
  const int exponent = magnitude < 0x1p-6 ? -6 : std::ilogb(magnitude);
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 3 - exponent)));
  const int code = (exponent + 6) * 8 + units;
  return static_cast<std::uint8_t>((std::signbit(x) ? 0x80 : 0) | code);
}

// Tokens of rank s that go to rank d, ascending.
std::vector<std::int32_t> TokensTo(const Call& call, int s, int d) {
  const auto ids = call.In<std::int32_t>(s, "ids");
  const std::int64_t topk = call.Param("topk"), per = call.Param("per");
  std::vector<std::int32_t> tokens;
  for (std::int64_t t = 0; t < call.Param("tokens"); ++t) {
    bool goes = false;
    for (std::int64_t k = 0; k < topk; ++k) goes |= ids[t * topk + k] / per == d;
    if (goes) tokens.push_back(static_cast<std::int32_t>(t));
  }
  return tokens;
}

}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t tokens = call.Param("tokens"), groups = call.Param("groups");
  std::vector<std::vector<std::int32_t>> counts(call.world());
  for (int s = 0; s < call.world(); ++s) {
    const auto x = call.In<BF16>(s, "x");
    std::vector<std::uint8_t> q(x.size());
    std::vector<float> scale(tokens * groups);
    for (std::size_t g = 0; g < scale.size(); ++g) {
      float largest = 0;
      for (std::size_t i = g * 128; i < g * 128 + 128; ++i) {
        largest = std::max(largest, std::abs(static_cast<float>(ToDouble(x[i]))));
      }
      const float factor = largest > 0 ? 448 / largest : 0;
      scale[g] = largest / 448;
      for (std::size_t i = g * 128; i < g * 128 + 128; ++i) {
        q[i] = E4m3(static_cast<float>(ToDouble(x[i])) * factor);
      }
    }
    const std::int64_t row = groups * 128;
    for (int d = 0; d < call.world(); ++d) {
      const std::vector<std::int32_t> list = TokensTo(call, s, d);
      std::int64_t at = s * tokens;
      check.ExactAt<std::int32_t>(d, "recv_token", at, list);
      for (const std::int32_t t : list) {
        check.ExactAt<std::uint8_t>(d, "recv_q", at * row, std::span(q).subspan(t * row, row));
        check.ExactAt<float>(d, "recv_scale", at * groups,
                             std::span(scale).subspan(t * groups, groups));
        ++at;
      }
      const std::int64_t end = (s + 1) * tokens;
      check.Untouched(d, "recv_token", at, end);
      check.Untouched(d, "recv_q", at * row, end * row);
      check.Untouched(d, "recv_scale", at * groups, end * groups);
      counts[d].push_back(static_cast<std::int32_t>(list.size()));
    }
  }
  for (int d = 0; d < call.world(); ++d) check.Exact(d, "recv_count", counts[d]);
}

// A row comes once to each rank that has experts of it, and leaves once if one of them is another:
// a byte per number; scales may follow from these.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  std::vector<char> leaves(call.Param("tokens"));
  std::int64_t came = 0, left = 0, crossed = 0;
  for (int s = 0; s < call.world(); ++s) {
    for (int d = 0; d < call.world(); ++d) {
      if (s == d) continue;
      const std::vector<std::int32_t> list = TokensTo(call, s, d);
      crossed += static_cast<std::int64_t>(list.size());
      if (d == rank) came += static_cast<std::int64_t>(list.size());
      if (s != rank) continue;
      for (const std::int32_t t : list) leaves[t] = 1;
    }
  }
  for (const char one : leaves) left += one;
  const double row_bytes = 128.0 * static_cast<double>(call.Param("groups"));
  floor.ingress = static_cast<double>(came) * row_bytes;
  floor.egress = static_cast<double>(left) * row_bytes;
  floor.busiest = static_cast<double>(crossed) / call.world() * row_bytes;
  floor.hbm = 2 * static_cast<double>(leaves.size()) * row_bytes + floor.ingress;
}
