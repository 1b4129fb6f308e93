// A stored cubin against what ptxas reported when it was made, and damaged ones.
#include "ptx/cubin.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>

#include "ptx/ptxas_report.h"
#include "ptx/read_file.h"

namespace allranks::ptx {
namespace {

const std::string kStored = std::string(ALLRANKS_SOURCE_DIR "/tests/ptx/stored/");

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(CubinTest, AsPtxasReports) {
  const std::string bytes = ReadFile(kStored + "exchange_sm_90.cubin");
  const auto kernels = ReadCubin(BytesOf(bytes));
  ASSERT_TRUE(kernels.has_value()) << kernels.error().message;
  ExpectSameResources(*kernels, ParsePtxasReport(ReadFile(kStored + "exchange_sm_90.ptxas")));
  const KernelResources& exchange = kernels->at("_Z8ExchangeP6float4PKS_Pii");
  EXPECT_EQ(exchange.shared_bytes, 1024u);
  EXPECT_EQ(exchange.param_bytes, 28u);
  EXPECT_EQ(exchange.constant_bytes, 0x210u + 28u);
  EXPECT_EQ(exchange.max_threads[0], 256u);
  EXPECT_EQ(exchange.required_threads[0], 0u);
  EXPECT_EQ(kernels->at("_Z8TogetherPi").max_threads[0], 0u);
}

TEST(CubinTest, NotACubin) {
  EXPECT_FALSE(ReadCubin({}).has_value());
  EXPECT_FALSE(ReadCubin(BytesOf(std::string(100, 'x'))).has_value());
  std::string bytes = ReadFile(kStored + "exchange_sm_90.cubin");
  bytes[18] = 62;  // an x86-64 file
  EXPECT_EQ(ReadCubin(BytesOf(bytes)).error().message, "cubin: not for a GPU");
}

TEST(CubinTest, EveryTruncationAndManyFlips) {
  const std::string bytes = ReadFile(kStored + "exchange_sm_90.cubin");
  for (std::size_t size = 0; size < bytes.size(); size += 13) {
    (void)ReadCubin(BytesOf(bytes.substr(0, size)));
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    (void)ReadCubin(BytesOf(damaged));
  }
}

}  // namespace
}  // namespace allranks::ptx
