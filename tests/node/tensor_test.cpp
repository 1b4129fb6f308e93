// Tiles of tensors: boxes, borders, steps and swizzling against a plain model of the ISA's text.
#include <gtest/gtest.h>

#include <numeric>

#include "base/tensor_map.h"
#include "ptx_machine.h"

namespace allranks::node {
namespace {

using U32 = std::uint32_t;

class TensorTest : public PtxMachineTest {
 protected:
  // A tensor of u32 with the values 1, 2, ... in the input.
  static TensorMap Map(std::vector<U32> size, std::vector<U32> box, int swizzle = 0) {
    TensorMap map;
    map.type = TensorMap::Type::kU32;
    map.rank = static_cast<std::uint8_t>(size.size());
    map.swizzle = static_cast<std::uint8_t>(swizzle);
    std::uint64_t stride = 4;
    for (std::size_t i = 0; i < size.size(); ++i) {
      map.size[i] = size[i] - 1;
      map.box[i] = static_cast<std::uint16_t>(box[i]);
      map.step[i] = 1;
      stride *= size[i];
      if (i < 4) map.stride[i] = stride;
    }
    return map;
  }

  // What an element of the tile must be: 0 outside.
  static U32 Expected(const TensorMap& map, const std::vector<int>& at, std::vector<U32> index) {
    std::uint64_t linear = 0, scale = 1;
    for (int i = 0; i < map.rank; ++i) {
      const std::int64_t c =
          at[static_cast<std::size_t>(i)] +
          std::int64_t{index[static_cast<std::size_t>(i)]} * (i == 0 ? 1 : map.step[i]);
      if (c < 0 || c > map.size[i]) return 0;
      linear += static_cast<std::uint64_t>(c) * scale;
      scale *= std::uint64_t{map.size[i]} + 1;
    }
    return static_cast<U32>(linear + 1);
  }

  // Loads the tile at `at` and returns shared memory, up to `words`.
  std::vector<U32> Load(TensorMap map, const std::vector<int>& at, std::size_t words) {
    std::size_t count = 1, bytes = 4;
    for (int i = 0; i < map.rank; ++i) {
      count *= std::size_t{map.size[i]} + 1;
      bytes *= map.Taken(i);
    }
    std::vector<U32> tensor(count);
    std::iota(tensor.begin(), tensor.end(), 1);
    Address out = 0;
    EXPECT_EQ(machine_->Allocate(process_, 0, words * 4, &out), Status::kSuccess);
    EXPECT_EQ(machine_->Allocate(process_, 0, count * 4, &input_), Status::kSuccess);
    Write(input_, tensor.data(), count * 4);
    map.address = input_;
    Options options;
    options.map.resize(128);
    StoreTensorMap(map, options.map.data());
    options.dynamic_shared = static_cast<U32>(words * 4);
    std::string coordinates;
    for (const int c : at) coordinates += (coordinates.empty() ? "" : ", ") + std::to_string(c);
    return RunAt<U32>(R"(
      .shared .align 8 .b64 bar;
      mov.u32 %r9, bar;
      mov.u32 %r0, dynamic;
      setp.eq.u32 %p0, %t, 0;
      @!%p0 ret;
      mbarrier.init.shared.b64 [bar], 1;
      mov.u32 %r2, 0;
    CLEAR:
      add.u32 %r3, %r0, %r2;
      st.shared.u32 [%r3], 0xffffffff;
      add.u32 %r2, %r2, 4;
      setp.lt.u32 %p1, %r2, )" +
                          std::to_string(words * 4) + R"(;
      @%p1 bra CLEAR;
      mov.b64 %rd1, map;
      cvta.param.u64 %rd2, %rd1;
      fence.proxy.tensormap::generic.acquire.sys [%rd2], 128;
      prefetch.tensormap [%rd2];
      mbarrier.arrive.expect_tx.shared.b64 _, [bar], )" +
                          std::to_string(bytes) + R"(;
      cp.async.bulk.prefetch.tensor.)" +
                          std::to_string(map.rank) + "d.L2.global.tile [%rd2, {" + coordinates +
                          R"(}];
      cp.async.bulk.tensor.)" +
                          std::to_string(map.rank) +
                          "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r0], "
                          "[%rd2, {" +
                          coordinates + R"(}], [%r9];
    WAIT:
      mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
      @!%p1 bra WAIT;
      mov.u32 %r2, 0;
    COPY:
      add.u32 %r3, %r0, %r2;
      ld.shared.u32 %r4, [%r3];
      cvt.u64.u32 %rd3, %r2;
      add.u64 %rd4, %out, %rd3;
      st.global.u32 [%rd4], %r4;
      add.u32 %r2, %r2, 4;
      setp.lt.u32 %p1, %r2, )" +
                          std::to_string(words * 4) + R"(;
      @%p1 bra COPY;
  )",
                      out, words, options);
  }
};

TEST_F(TensorTest, OneDimensionWithBorders) {
  for (const int at : {0, 5, -3, 95, 200}) {
    const TensorMap map = Map({100}, {16});
    const auto out = Load(map, {at}, 20);
    ASSERT_EQ(fault_, "");
    ASSERT_EQ(out.size(), 20u);
    for (U32 i = 0; i < 16; ++i) EXPECT_EQ(out[i], Expected(map, {at}, {i})) << at << " " << i;
    EXPECT_EQ(out[16], 0xffffffffu);
  }
}

TEST_F(TensorTest, ThreeDimensionsAndSteps) {
  TensorMap map = Map({12, 7, 5}, {8, 6, 3});
  map.step[1] = 4;  // 2 of 6
  map.step[0] = 8;  // ignored
  for (const std::vector<int>& at : {std::vector<int>{0, 0, 0}, {6, 1, 3}, {-4, -1, -1}}) {
    const auto out = Load(map, at, 48);
    ASSERT_EQ(fault_, "");
    ASSERT_EQ(out.size(), 48u);
    for (U32 z = 0; z < 3; ++z) {
      for (U32 y = 0; y < 2; ++y) {
        for (U32 x = 0; x < 8; ++x) {
          EXPECT_EQ(out[(z * 2 + y) * 8 + x], Expected(map, at, {x, y, z})) << x << y << z;
        }
      }
    }
  }
}

TEST_F(TensorTest, FiveDimensions) {
  const TensorMap map = Map({4, 3, 3, 3, 3}, {4, 2, 2, 2, 2});
  const auto out = Load(map, {0, 1, 2, 0, 1}, 64);
  ASSERT_EQ(fault_, "");
  ASSERT_EQ(out.size(), 64u);
  for (U32 i = 0; i < 64; ++i) {
    EXPECT_EQ(out[i],
              Expected(map, {0, 1, 2, 0, 1}, {i % 4, i / 4 % 2, i / 8 % 2, i / 16 % 2, i / 32 % 2}))
        << i;
  }
}

// CUDA C++ Programming Guide, swizzle patterns: within a span of 128, 64 or 32 bytes the 16-byte
// chunk at column c of the 128-byte line l goes to column c xor l (mod 8, 4, 2).
TEST_F(TensorTest, Swizzling) {
  for (const int mode : {1, 2, 3}) {
    const U32 span = 4u << mode;  // words of a row
    const TensorMap map = Map({64, 40}, {span, 32}, mode);
    const auto out = Load(map, {4, 3}, std::size_t{span} * 32);
    ASSERT_EQ(fault_, "");
    ASSERT_EQ(out.size(), std::size_t{span} * 32);
    const U32 chunks = 1u << mode;
    for (U32 y = 0; y < 32; ++y) {
      for (U32 x = 0; x < span; ++x) {
        const U32 word = y * span + x;
        const U32 line = word / 32, chunk = word / 4 % 8;
        const U32 moved = chunk ^ (line % chunks);
        const U32 place = line * 32 + moved * 4 + word % 4;
        EXPECT_EQ(out[place], Expected(map, {4, 3}, {x, y})) << mode << " " << x << " " << y;
      }
    }
  }
}

// Store and reduce a tile of 8 x 4 at the lower right corner: what is outside is not written.
TEST_F(TensorTest, StoreAndReduce) {
  for (const bool reduce : {false, true}) {
    SetUp();
    Address out = 0;
    std::vector<U32> old(16 * 6, 1000);
    ASSERT_EQ(machine_->Allocate(process_, 0, old.size() * 4, &out), Status::kSuccess);
    Write(out, old.data(), old.size() * 4);
    TensorMap map = Map({16, 6}, {8, 4});
    map.address = out;
    Options options;
    options.map.resize(128);
    StoreTensorMap(map, options.map.data());
    options.dynamic_shared = 128;
    const auto result = RunAt<U32>(
        R"(
      mov.u32 %r0, dynamic;
      mad.lo.u32 %r1, %t, 4, %r0;
      st.shared.u32 [%r1], %t;
      fence.proxy.async.shared::cta;
      bar.sync 0;
      setp.ne.u32 %p0, %t, 0;
      @%p0 ret;
      mov.b64 %rd1, map;
      cvta.param.u64 %rd2, %rd1;
      mov.u32 %r2, 12;
      )" +
            std::string(
                reduce ? "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
                       : "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group") +
            R"( [%rd2, {%r2, 4}], [%r0];
      cp.async.bulk.commit_group;
      cp.async.bulk.wait_group 0;
  )",
        out, old.size(), options);
    ASSERT_EQ(fault_, "");
    ASSERT_EQ(result.size(), old.size());
    for (U32 y = 0; y < 6; ++y) {
      for (U32 x = 0; x < 16; ++x) {
        const bool inside = x >= 12 && y >= 4;
        const U32 value = (y - 4) * 8 + x - 12;
        EXPECT_EQ(result[y * 16 + x], !inside ? 1000 : reduce ? 1000 + value : value) << x << y;
      }
    }
  }
}

TEST_F(TensorTest, MapsThatAreNone) {
  TensorMap map = Map({100}, {16});
  map.magic = 7;
  Load(map, {0}, 20);
  EXPECT_NE(fault_.find("cuTensorMapEncodeTiled"), std::string::npos) << fault_;
  SetUp();
  TensorMap two = Map({100, 1}, {16, 1});
  two.size[1] = 1000;
  Options options;
  options.map.resize(128);
  two.address = 0x1234560;
  StoreTensorMap(two, options.map.data());
  options.dynamic_shared = 256;
  Run<U32>(R"(
      .shared .align 8 .b64 bar;
      mov.u32 %r9, bar;
      mov.u32 %r0, dynamic;
      mov.b64 %rd1, map;
      cvta.param.u64 %rd2, %rd1;
      cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%rd2, {0, 0}], [%r9];
  )",
           1, std::vector<U32>{}, options);
  EXPECT_NE(fault_.find("not mapped"), std::string::npos) << fault_;
}

// Fields are written where cuTensorMapEncodeTiled would have written them, in both spaces.
TEST_F(TensorTest, ReplacedFields) {
  TensorMap map = Map({64, 32, 16}, {8, 4, 2});
  std::vector<U32> before(kTensorMapBytes / 4, 0);
  std::memcpy(before.data(), &map, sizeof map);
  map.address = 0x123456789a00;
  map.stride[1] = 0x4000;
  map.box[2] = 7;
  map.step[1] = 3;
  map.type = TensorMap::Type::kF64;
  map.swizzle = 3;
  map.fill_nan = 1;
  std::vector<U32> after(kTensorMapBytes / 4, 0);
  std::memcpy(after.data(), &map, sizeof map);
  const auto replace = [](const std::string& space, const std::string& at) {
    const std::string start = "tensormap.replace.tile.", b32 = "." + space + ".b1024.b32 [" + at,
                      b64 = "." + space + ".b1024.b64 [" + at;
    return "mov.u64 %rd1, 0x123456789a00;\nmov.u32 %r1, 7;\n" + start + "global_address" + b64 +
           "], %rd1;\n" + start + "global_stride" + b64 + "], 1, 0x4000;\n" + start + "box_dim" +
           b32 + "], 2, %r1;\n" + start + "element_stride" + b32 + "], 1, 3;\n" + start +
           "elemtype" + b32 + "], 9;\n" + start + "interleave_layout" + b32 + "], 0;\n" + start +
           "swizzle_mode" + b32 + "], 3;\n" + start + "fill_mode" + b32 + "], 1;\n";
  };
  // Every lane moves a word of the map; one replaces.
  const std::string word =
      "mul.wide.u32 %rd2, %t, 4;\nadd.u64 %rd3, %in, %rd2;\nadd.u64 %rd4, %out, %rd2;\n"
      "ld.global.u32 %r2, [%rd3];\nsetp.eq.u32 %p1, %t, 0;\n@!%p1 bra ";
  EXPECT_EQ(Run<U32>(word + "A;\n" + replace("global", "%in") +
                         "A: bar.sync 0;\nld.global.u32 %r2, [%rd3];\nst.global.u32 [%rd4], %r2;",
                     32, before, Options{}),
            after);
  Options options;
  options.dynamic_shared = 128;
  EXPECT_EQ(
      Run<U32>("mov.u32 %r5, dynamic;\nshl.b32 %r6, %t, 2;\nadd.u32 %r6, %r6, %r5;\n" +
                   word.substr(0, word.find("setp")) + "st.shared.u32 [%r6], %r2;\nbar.sync 0;\n" +
                   word.substr(word.find("setp")) + "A;\n" + replace("shared::cta", "%r5") +
                   "A: bar.sync 0;\nld.shared.u32 %r2, [%r6];\nst.global.u32 [%rd4], %r2;",
               32, before, options),
      after);
}

}  // namespace
}  // namespace allranks::node
