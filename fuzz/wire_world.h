// A whole node behind four connections, driven by bytes: what fuzz/wire.cpp plays and what
// tests/server/wire_seeds_test.cpp records. The machine is real but tiny, and made anew for every
// input, so that handles are the same numbers each time and an input can name them.
//
// An input is a list of records: a tag, and for most a body.
//   tag bits 0-1  which connection
//       bits 2-3  0: a frame: op (u8), payload length (u16), payload
//                 1: bytes as they are: length (u16), bytes
//                 2: the connection closes
//                 3: wall time passes (4 s): silent threads are detached
//       bit 4     let virtual time pass afterwards (else more may arrive first)
// Tokens are random by design; in a Hello the tokens 1, 2, ... stand for those handed out so far.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "node/machine.h"
#include "server/core.h"
#include "wire/frame.h"

namespace allranks::server {

inline node::Profile TinyProfile() {
  node::Profile profile;
  profile.name = "tiny";
  profile.version = node::Profile::kVersion;
  profile.validated = "rough";
  profile.machine = {1, 2};
  profile.device = {.name = "Tiny",
                    .compute_major = 9,
                    .compute_minor = 0,
                    .clock_mhz = 1000,
                    .memory_clock_mhz = 1000,
                    .memory_bus_bits = 64,
                    .sms = 2,
                    .gpcs = 1,
                    .gpc_sms = {2},
                    .memory_bytes = 1 << 22,
                    .l2_bytes = 1 << 16,
                    .total_const_mem = 65536,
                    .max_threads_per_cta = 128,
                    .max_grid_x = 65535,
                    .max_grid_yz = 65535,
                    .max_cta_xy = 128,
                    .max_cta_z = 64,
                    .max_cluster_size = 2,
                    .max_cluster_size_opt_in = 2,
                    .vector16_atomic = true};
  profile.sm = {.max_threads = 256,
                .max_warps = 8,
                .max_ctas = 4,
                .registers = 65536,
                .register_granularity = 256,
                .max_registers_per_thread = 255,
                .shared_bytes = 65536,
                .shared_per_cta_bytes = 49152,
                .shared_default_bytes = 32768,
                .shared_reserved_per_cta = 1024,
                .shared_granularity = 128,
                .schedulers = 1,
                .issue_per_cycle = 1};
  profile.latency = {4, 8, 18, 29, 8, 33, 100, 200, 4, 20, 15, 100, 200};
  profile.bandwidth = {100, 0.9, 200, 128, 128, 32, 128, 64};
  profile.topology.kinds = {{"nvlink", 100, 0.9, node::Ns(400), 128, 128, 128, 16, 16, 16},
                            {"pcie", 16, 0.9, node::Ns(600), 256, 256, 256, 24, 24, 24}};
  profile.topology.vertices = {{node::Topology::Kind::kDevice, "gpu0", 0, 0},
                               {node::Topology::Kind::kDevice, "gpu1", 0, 1},
                               {node::Topology::Kind::kNvswitch, "nvswitch", 0, 0},
                               {node::Topology::Kind::kCpu, "cpu0", 0, 0}};
  profile.topology.links = {{0, 2, 0}, {1, 2, 0}, {0, 3, 1}, {1, 3, 1}};
  profile.multicast = {true, 0.9, node::Ns(100)};
  profile.copy_engine = {2, node::Ns(1000), 50};
  profile.launch = {node::Ns(2000), node::Ns(1000), node::Ns(2000), node::Ns(500),
                    node::Ns(1500), node::Ns(500),  node::Ns(200)};
  profile.host = {node::Ns(100)};
  profile.time = {200, 128, node::Ns(32), {0}};
  return profile;
}

class WireWorld {
 public:
  static constexpr std::size_t kConnections = 4;

  WireWorld() {
    node::MachineOptions machine_options;
    machine_options.memory_limit = 8 << 20;
    machine_options.fuel = 2'000;
    machine_options.secret = "seed";  // so that an input can name fabric handles
    auto machine = node::Machine::Create(TinyProfile(), machine_options);
    CHECK(machine.has_value());
    CoreOptions options;
    options.limits = {.processes = 8,
                      .threads = 8,
                      .children = 8,
                      .objects = 16,
                      .image_bytes = 1 << 16,
                      .queued_bytes = 1 << 16,
                      .keys = 4};
    core_ = std::make_unique<Core>(std::move(*machine), std::move(options));
    for (std::size_t i = 0; i < kConnections; ++i) Open(i);
  }

  void Play(std::span<const std::uint8_t> input) {
    // A bound on the work of one input, not on what it may contain.
    for (int records = 0; !input.empty() && records < 64; ++records) {
      const std::uint8_t tag = Take<std::uint8_t>(input);
      const std::size_t which = tag & 3;
      switch ((tag >> 2) & 3) {
        case 0: {
          const auto op = static_cast<wire::Op>(Take<std::uint8_t>(input) %
                                                (static_cast<unsigned>(wire::Op::kLast_) + 1));
          wire::Blob payload = TakeBytes(input);
          if (op == wire::Op::kHello) Substitute(payload);
          Feed(which, wire::EncodeFrame(op, ++sequence_, payload));
          break;
        }
        case 1:
          Feed(which, TakeBytes(input));
          break;
        case 2:
          if (!links_[which]->closed) core_->Closed(links_[which].get());
          Open(which);
          break;
        case 3:
          core_->Tick(wall_ms_ += 4'000);
          break;
      }
      if ((tag & 16) != 0) core_->Run();
      for (std::size_t i = 0; i < kConnections; ++i)
        if (links_[i]->closed) Open(i);
    }
  }
  void Finish() { core_->Run(); }

  bool ViolationSeen() const { return violation_; }
  // The reply on a connection, if one came since this was last asked.
  wire::Blob TakeReply(std::size_t which) { return std::exchange(links_[which]->reply, {}); }

 private:
  struct Connection final : Link {
    WireWorld* world = nullptr;
    bool closed = false;
    wire::FrameReader reader;
    wire::Blob reply;
    void Send(wire::Op op, std::uint64_t, const wire::Blob& payload, int) override {
      reply = payload;
      world->Learn(op, payload);
    }
    void Close() override {
      closed = true;
      world->violation_ = true;
    }
  };

  void Open(std::size_t which) {
    if (links_[which] != nullptr) buried_.push_back(std::move(links_[which]));
    links_[which] = std::make_unique<Connection>();
    links_[which]->world = this;
    // Connections 0 and 1 are one process, 2 and 3 are others.
    core_->Opened(links_[which].get(), which < 2 ? 1000 : 1000 + static_cast<int>(which));
  }
  void Feed(std::size_t which, const wire::Blob& bytes) {
    Connection& link = *links_[which];
    link.reader.Append(bytes);
    while (!link.closed) {
      wire::Frame frame;
      const wire::FrameReader::State state = link.reader.Next(&frame);
      if (state == wire::FrameReader::State::kBad) core_->Violated(&link, link.reader.error());
      if (state != wire::FrameReader::State::kFrame) return;
      core_->Received(&link, std::move(frame));
    }
  }
  // Tokens in the replies to Hello, NewProcess and Exec, in order.
  void Learn(wire::Op op, const wire::Blob& payload) {
    if (op != wire::Op::kHello && op != wire::Op::kNewProcess && op != wire::Op::kExec) return;
    std::span<const std::byte> bytes = payload;
    wire::ReplyHeader header;
    wire::NewProcessReply reply;
    if (wire::DecodeFrom(bytes, &header) && wire::DecodeFrom(bytes, &reply) && tokens_.size() < 64)
      tokens_.push_back(reply.token);
  }
  void Substitute(wire::Blob& payload) const {
    std::span<const std::byte> bytes = payload;
    wire::RequestHeader header;
    wire::Hello hello;
    if (!wire::DecodeFrom(bytes, &header) || !wire::DecodeFrom(bytes, &hello)) return;
    if (hello.token == 0 || hello.token > tokens_.size()) return;
    hello.token = tokens_[hello.token - 1];
    payload = wire::EncodePayload(header, hello);
  }

  template <class T>
  static T Take(std::span<const std::uint8_t>& input) {
    T value{};
    const std::size_t size = std::min(sizeof value, input.size());
    std::memcpy(&value, input.data(), size);
    input = input.subspan(size);
    return value;
  }
  static wire::Blob TakeBytes(std::span<const std::uint8_t>& input) {
    const std::size_t size = std::min<std::size_t>(Take<std::uint16_t>(input), input.size());
    const auto* bytes = reinterpret_cast<const std::byte*>(input.data());
    wire::Blob result(bytes, bytes + size);
    input = input.subspan(size);
    return result;
  }

  std::unique_ptr<Core> core_;
  std::unique_ptr<Connection> links_[kConnections];
  std::vector<std::unique_ptr<Connection>> buried_;  // the core may still know them
  std::vector<std::uint64_t> tokens_;
  std::uint64_t sequence_ = 0;
  std::int64_t wall_ms_ = 0;
  bool violation_ = false;
};

}  // namespace allranks::server
