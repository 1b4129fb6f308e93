// Holds a conversation with the fuzzer's world and writes down the bytes that would hold it again.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/wire_world.h"

namespace allranks::server {

inline constexpr const char* kKernel = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry store(.param .u64 p, .param .u32 v) {
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [v];
  st.global.u32 [%rd1], %r1;
  ret;
}
)";

// Plays each record as it is made, so that later ones can use what was answered.
class Recorder {
 public:
  template <class M>
  typename M::Reply Call(std::size_t which, const M& message) {
    Ask(which, message, true);
    return Answer<M>(which);
  }
  template <class M>
  typename M::Reply Answer(std::size_t which) {
    const wire::Blob payload = world_.TakeReply(which);
    std::span<const std::byte> bytes = payload;
    typename M::Reply reply;
    EXPECT_TRUE(wire::DecodeFrom(bytes, &header));
    EXPECT_TRUE(wire::DecodeFrom(bytes, &reply)) << wire::OpName(wire::kOpOf<M>);
    return reply;
  }
  template <class M>
  void Ask(std::size_t which, const M& message, bool run) {
    wire::RequestHeader request;
    request.ranges = std::exchange(ranges, {});
    const wire::Blob payload = wire::EncodePayload(request, message);
    std::vector<std::uint8_t> record = {static_cast<std::uint8_t>(which | (run ? 16u : 0u)),
                                        static_cast<std::uint8_t>(wire::kOpOf<M>),
                                        static_cast<std::uint8_t>(payload.size()),
                                        static_cast<std::uint8_t>(payload.size() >> 8)};
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(payload.data());
    record.insert(record.end(), bytes, bytes + payload.size());
    Append(record);
  }
  void Close(std::size_t which) { Append({static_cast<std::uint8_t>(which | 8u | 16u)}); }
  void Append(const std::vector<std::uint8_t>& record) {
    world_.Play(record);
    recorded.insert(recorded.end(), record.begin(), record.end());
  }
  std::uint64_t Kernel(std::size_t which) {
    wire::PutImage image;
    image.image = 1;
    const std::string text = kKernel;
    image.total = text.size() + 1;
    const auto* begin = reinterpret_cast<const std::byte*>(text.c_str());
    image.bytes.assign(begin, begin + image.total);
    Call(which, image);
    wire::LoadModule load;
    load.image = 1;
    wire::GetKernel get;
    get.module = Call(which, load).module;
    EXPECT_EQ(header.status, 0);
    get.name = "store";
    return Call(which, get).kernel;
  }
  bool violation() const { return world_.ViolationSeen(); }

  std::vector<wire::RangeEvent> ranges;  // of the next message
  wire::ReplyHeader header;
  std::vector<std::uint8_t> recorded;

 private:
  WireWorld world_;
};

}  // namespace allranks::server
