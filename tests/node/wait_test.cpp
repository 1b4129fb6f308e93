// When a moving compare changes its outcome: the closed form against counting.
#include "node/exec/wait.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "node/hardware/servers.h"

namespace allranks::node {
namespace {

bool Outcome(const CompareCode& compare, std::uint64_t a, std::uint64_t b) {
  const auto decide = [&](auto x, auto y) {
    switch (compare.comparison) {
      case CompareCode::Comparison::kEq:
        return x == y;
      case CompareCode::Comparison::kNe:
        return x != y;
      case CompareCode::Comparison::kLt:
        return x < y;
      case CompareCode::Comparison::kLe:
        return x <= y;
      case CompareCode::Comparison::kGt:
        return x > y;
      default:
        return x >= y;
    }
  };
  if (compare.bytes == 4) {
    return compare.is_signed ? decide(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b))
                             : decide(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b));
  }
  return compare.is_signed ? decide(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b))
                           : decide(a, b);
}

// Never promises more iterations than there are, and (without slack) not one less until an operand
// wraps.
RC_GTEST_PROP(WaitTest, StableIterationsAgainstCounting, ()) {
  CompareCode compare;
  compare.comparison = static_cast<CompareCode::Comparison>(*rc::gen::inRange(0, 6));
  compare.is_signed = *rc::gen::arbitrary<bool>();
  compare.bytes = *rc::gen::element<std::uint8_t>(4, 8);
  const std::uint64_t low = compare.bytes == 4 ? 0xffffffffu : ~std::uint64_t{0};
  const std::uint64_t a = *rc::gen::oneOf(rc::gen::arbitrary<std::uint64_t>(),
                                          rc::gen::inRange<std::uint64_t>(0, 300)) &
                          low;
  const std::uint64_t b =
      *rc::gen::oneOf(rc::gen::just(a), rc::gen::map(rc::gen::inRange(-300, 300),
                                                     [a](int d) {
                                                       return a + static_cast<std::uint64_t>(
                                                                      static_cast<std::int64_t>(d));
                                                     })) &
      low;
  const std::int64_t da = *rc::gen::inRange(-5, 6), db = *rc::gen::inRange(-5, 6);
  const std::uint64_t stable = StableIterations(compare, a, b, da, db, 0);
  const bool now = Outcome(compare, a, b);
  constexpr std::uint64_t kTurns = 700;
  std::uint64_t counted = 0;
  while (counted < kTurns && Outcome(compare, a + (counted + 1) * static_cast<std::uint64_t>(da),
                                     b + (counted + 1) * static_cast<std::uint64_t>(db)) == now) {
    ++counted;
  }
  const bool sound = stable >= kTurns ? counted == kTurns : stable <= counted;
  RC_ASSERT(sound);
  if (counted < kTurns) {
    // It stopped early only where an operand wrapped within the counted span.
    const auto wraps = [&](std::uint64_t v, std::int64_t d) {
      const std::uint64_t end = (v + (counted + 1) * static_cast<std::uint64_t>(d)) & low;
      if (!compare.is_signed) return d > 0 ? end < v : d < 0 ? end > v : false;
      const int shift = 64 - compare.bytes * 8;
      const auto s = static_cast<std::int64_t>(v << shift),
                 e = static_cast<std::int64_t>(end << shift);
      return d > 0 ? e < s : d < 0 ? e > s : false;
    };
    if (!wraps(a, da) && !wraps(b, db)) RC_ASSERT(stable == counted);
  }
}

// A server never hands out more than its capacity, whatever the order of the requests.
RC_GTEST_PROP(ServerTest, CapacityHoldsInAnyOrder, ()) {
  constexpr Time kBucket = 1000;
  constexpr std::int64_t kPerBucket = 64;
  Server server(kBucket, kPerBucket);
  std::int64_t total = 0;
  Time last = 0, first = 1 << 30;
  const auto count = *rc::gen::inRange(1, 200);
  for (int i = 0; i < count; ++i) {
    const Time at = *rc::gen::inRange<Time>(0, 20000);
    const std::int64_t units = *rc::gen::inRange(1, 200);
    const Time served = server.Take(at, units);
    RC_ASSERT(served >= at);
    total += units;
    first = std::min(first, at);
    last = std::max(last, served);
  }
  RC_ASSERT(server.total() == total);
  // All of it fits between the first request's bucket and the last service.
  RC_ASSERT(total * kBucket <= (last - first / kBucket * kBucket + kBucket) * kPerBucket);
}

TEST(ServerTest, ABusyFutureLeavesThePresentFree) {
  Server server(1000, 64);
  for (int i = 0; i < 100; ++i) server.Take(50'000, 64);  // somebody ran ahead
  EXPECT_LE(server.Take(0, 32), 1000);                    // the one behind is not held up
}

}  // namespace
}  // namespace allranks::node
