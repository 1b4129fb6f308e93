// A host thread as the Core sees it, for tests: sends requests and keeps the replies.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "server/core.h"

namespace allranks::server {

class Client final : public Link {
 public:
  // `judged`: the rank whose socket it comes through, in a judged run.
  Client(Core& core, pid_t pid, int judged = -1) : core_(core) { core.Opened(this, pid, judged); }

  void Send(wire::Op op, std::uint64_t sequence, const wire::Blob& payload, int reply_fd) override {
    replies_.push_back({op, sequence, payload, reply_fd});
  }
  void Close() override { closed = true; }

  template <class M>
  void Ask(const M& message, std::vector<wire::Fd> fds = {}, std::int64_t local_ps = 0) {
    wire::Frame frame;
    frame.op = wire::kOpOf<M>;
    frame.sequence = ++sequence_;
    frame.payload = wire::EncodePayload(
        wire::RequestHeader{local_ps, {}, {}, std::exchange(ranges, {})}, message);
    frame.fds = std::move(fds);
    core_.Received(this, std::move(frame));
  }
  // The reply, if it has come.
  template <class M>
  std::optional<typename M::Reply> Take() {
    if (replies_.empty()) return std::nullopt;
    const Raw raw = replies_.front();
    replies_.pop_front();
    EXPECT_EQ(raw.op, wire::kOpOf<M>);
    EXPECT_EQ(raw.sequence, sequence_);
    std::span<const std::byte> bytes = raw.payload;
    typename M::Reply reply;
    EXPECT_TRUE(wire::DecodeFrom(bytes, &header));
    EXPECT_TRUE(wire::DecodeFrom(bytes, &reply));
    EXPECT_TRUE(bytes.empty());
    fd = raw.fd;
    return reply;
  }
  template <class M>
  typename M::Reply Call(const M& message) {
    Ask(message);
    core_.Run();
    auto reply = Take<M>();
    EXPECT_TRUE(reply.has_value()) << wire::OpName(wire::kOpOf<M>) << " was not answered";
    return reply.value_or(typename M::Reply{});
  }
  void Gone() { core_.Closed(this); }
  bool Answered() const { return !replies_.empty(); }

  std::vector<wire::RangeEvent> ranges;  // of the next request
  wire::ReplyHeader header;              // of the last reply taken
  int fd = -1;
  bool closed = false;

 private:
  struct Raw {
    wire::Op op;
    std::uint64_t sequence;
    wire::Blob payload;
    int fd;
  };
  Core& core_;
  std::uint64_t sequence_ = 0;
  std::deque<Raw> replies_;
};

}  // namespace allranks::server
