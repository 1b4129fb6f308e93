// Bits of written bytes against a plain list of them.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "node/check/initialised.h"

namespace allranks::node::check {
namespace {

struct Model {
  std::vector<bool> written;
  bool Any(std::uint64_t offset, std::uint64_t size, bool value) const {
    for (std::uint64_t i = offset; i < offset + size && i < written.size(); ++i) {
      if (written[i] == value) return true;
    }
    return false;
  }
};

// Writes and copies between two objects, at any offset, also beyond the ends.
RC_GTEST_PROP(InitialisedTest, AgreesWithAListOfBytes, ()) {
  const auto size = *rc::gen::inRange<std::uint64_t>(1, 400);
  std::shared_ptr<Initialised> bits[2] = {Initialised::Make(size), Initialised::Make(size)};
  Model models[2] = {{std::vector<bool>(size)}, {std::vector<bool>(size)}};
  for (int step = 0; step < 12; ++step) {
    const auto which = *rc::gen::inRange(0, 2);
    const auto offset = *rc::gen::inRange<std::uint64_t>(0, size);
    const auto length = *rc::gen::inRange<std::uint64_t>(1, 200);
    const auto from = *rc::gen::inRange<std::uint64_t>(0, size);
    if (*rc::gen::arbitrary<bool>()) {
      bits[which]->Write(offset, length);
      for (std::uint64_t i = offset; i < std::min(size, offset + length); ++i)
        models[which].written[i] = true;
    } else {
      // A copy has all its bytes within both objects.
      const std::uint64_t room = std::min(length, size - std::max(offset, from));
      bits[which]->Put(offset, room, bits[1 - which]->Take(from, room));
      for (std::uint64_t i = 0; i < room; ++i)
        models[which].written[offset + i] = models[1 - which].written[from + i];
    }
    for (int k = 0; k < 2; ++k) {
      RC_ASSERT(bits[k]->All(offset, length) == !models[k].Any(offset, length, false));
      RC_ASSERT(bits[k]->None(from, length) == !models[k].Any(from, length, true));
      RC_ASSERT(bits[k]->complete() == !models[k].Any(0, size, false));
    }
  }
}

TEST(InitialisedTest, TakesNoMemoryBeforeItIsTouched) {
  const auto bits = Initialised::Make(std::uint64_t{16} << 30);
  ASSERT_NE(bits, nullptr);
  EXPECT_TRUE(bits->None(std::uint64_t{8} << 30, 4096));
  bits->Write((std::uint64_t{16} << 30) - 4, 4);
  EXPECT_TRUE(bits->All((std::uint64_t{16} << 30) - 4, 4));
  EXPECT_FALSE(bits->complete());
}

}  // namespace
}  // namespace allranks::node::check
