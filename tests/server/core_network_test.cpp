// The server without sockets: when bytes arrive that processes of two simulated hosts send each
// other. The fake carries a byte per nanosecond, and each for 10 us.
#include <gtest/gtest.h>

#include "tests/server/core_fixture.h"

namespace allranks::server {
namespace {

using node::Ms;
using node::Ns;
using node::Us;

constexpr std::uint16_t kPort = 5000, kClient = 40'000;
constexpr std::uint64_t kSegment = 64 << 10;  // what is said to arrive together

wire::Endpoint At(std::uint16_t port) {
  wire::Endpoint end;
  end.address[15] = 1;
  end.port = port;
  return end;
}

wire::NetworkOpen Open(std::uint16_t mine, std::uint16_t theirs, std::uint64_t socket = 1) {
  return {.mine = At(mine), .theirs = At(theirs), .socket = socket};
}
wire::NetworkSend Send(std::uint16_t mine, std::uint16_t theirs, std::uint64_t bytes) {
  return {.mine = At(mine), .theirs = At(theirs), .bytes = bytes};
}
wire::NetworkReceive Receive(std::uint16_t mine, std::uint16_t theirs, std::uint64_t bytes) {
  return {.mine = At(mine), .theirs = At(theirs), .bytes = bytes};
}

// A server and a client, which runs while the server sleeps. Everybody else has to be asleep when
// one is to be heard.
class CoreNetworkTest : public CoreTest {
 protected:
  void Join(int server_host, int client_host) {
    fake->SetHosts(2);
    server = On(100, server_host);
    client = On(200, client_host);
    server->Take<wire::Hello>();
  }
  void Start(int server_host, int client_host) {
    Join(server_host, client_host);
    server->Ask(Open(kPort, kClient));
    core->Run();
    Sleep(*server, Ms(1));
    client->Take<wire::Hello>();
    client->Call(Open(kClient, kPort));
  }
  std::unique_ptr<Client> On(pid_t pid, int host) {
    auto made = std::make_unique<Client>(*core, pid);
    wire::Hello hello;
    hello.host = host;
    made->Ask(hello);
    core->Run();
    return made;
  }
  void Sleep(Client& who, std::int64_t ps) {
    while (who.Answered()) who.Take<wire::NetworkOpen>();
    wire::Sleep sleep;
    sleep.ps = ps;
    who.Ask(sleep);
    core->Run();
  }
  std::uint64_t Carried(int from, int to) const {
    std::uint64_t all = 0;
    for (const auto& [source, target, bytes] : fake->sends)
      all += source == from && target == to ? bytes : 0;
    return all;
  }

  std::unique_ptr<Client> server, client;
};

TEST_F(CoreNetworkTest, BytesTakeTheirTime) {
  Start(0, 1);
  client->Call(Send(kClient, kPort, 2'000'000));
  const node::Time sent = client->header.clock;
  EXPECT_EQ(Carried(1, 0), 2'000'000u);
  Sleep(*client, Ms(100));
  server->Take<wire::Sleep>();
  server->Call(Receive(kPort, kClient, 1'999'500));
  EXPECT_EQ(server->header.clock, sent + Ms(2) + Us(10));
  server->Call(Receive(kPort, kClient, 500));
  EXPECT_EQ(server->header.clock, sent + Ms(2) + Us(10)) << "they are there";
}

TEST_F(CoreNetworkTest, BytesArriveBySegments) {
  Start(0, 1);
  client->Call(Send(kClient, kPort, 4'000'000));
  const node::Time sent = client->header.clock;
  EXPECT_EQ(fake->sends[0], std::make_tuple(1, 0, kSegment));
  Sleep(*client, Ms(100));
  // The server has slept for as long as 15 of them take.
  constexpr std::uint64_t kFirst = 20 * kSegment + 1;
  server->Take<wire::Sleep>();
  server->Call(Receive(kPort, kClient, kFirst));
  EXPECT_EQ(server->header.clock, sent + Ns(static_cast<std::int64_t>(21 * kSegment)) + Us(10));
  server->Call(Receive(kPort, kClient, 4'000'000 - kFirst));
  EXPECT_EQ(server->header.clock, sent + Ms(4) + Us(10));
}

TEST_F(CoreNetworkTest, WhatHasArrivedIsNotWaitedFor) {
  Start(0, 1);
  client->Call(Send(kClient, kPort, 100));
  Sleep(*client, Ms(100));
  EXPECT_TRUE(server->Answered());
  server->Take<wire::Sleep>();
  const node::Time before = server->header.clock;
  server->Call(Receive(kPort, kClient, 100));
  EXPECT_EQ(server->header.clock, before);
}

TEST_F(CoreNetworkTest, BothDirectionsAreTheirOwn) {
  Start(0, 1);
  Sleep(*client, Ms(2));
  ASSERT_TRUE(server->Take<wire::Sleep>());
  server->Call(Send(kPort, kClient, 3'000'000));
  const node::Time sent = server->header.clock;
  EXPECT_EQ(Carried(0, 1), 3'000'000u);
  Sleep(*server, Ms(100));
  ASSERT_TRUE(client->Take<wire::Sleep>());
  client->Call(Receive(kClient, kPort, 3'000'000));
  EXPECT_EQ(client->header.clock, sent + Ms(3) + Us(10));
}

TEST_F(CoreNetworkTest, AReceiverThatIsQuickerThanTheMessageWaitsForIt) {
  Start(0, 1);
  Sleep(*client, Ms(1));
  ASSERT_TRUE(server->Take<wire::Sleep>());
  server->Ask(Receive(kPort, kClient, 100));
  core->Run();
  EXPECT_FALSE(server->Answered()) << "nobody has said that anything was sent";
  ASSERT_TRUE(client->Take<wire::Sleep>());
  client->Call(Send(kClient, kPort, 100));
  const node::Time sent = client->header.clock;
  Sleep(*client, Ms(100));
  ASSERT_TRUE(server->Take<wire::NetworkReceive>());
  EXPECT_EQ(server->header.clock, sent + Ns(100) + Us(10));
}

TEST_F(CoreNetworkTest, BytesOnADeadLinkNeverArrive) {
  Start(0, 1);
  fake->network_dead = true;
  client->Call(Send(kClient, kPort, 100));
  Sleep(*client, Ms(100));
  ASSERT_TRUE(server->Take<wire::Sleep>());
  server->Ask(Receive(kPort, kClient, 100));
  core->Run();
  ASSERT_TRUE(client->Take<wire::Sleep>());
  EXPECT_GE(client->header.clock, Ms(100)) << "time goes on without it";
  EXPECT_FALSE(server->Answered());
}

TEST_F(CoreNetworkTest, WhatNobodyTellsIsThereAtOnce) {
  Start(0, 1);
  Sleep(*client, Ms(100));
  ASSERT_TRUE(server->Take<wire::Sleep>());
  const node::Time before = server->header.clock;
  server->Call(Receive(kPort, kClient, 100));
  EXPECT_EQ(server->header.clock, before + Us(25));
  server->Call(Receive(kPort, kClient, 100));
  EXPECT_EQ(server->header.clock, before + Us(50)) << "again: nobody has said anything";
  Sleep(*server, Ms(100));
  ASSERT_TRUE(client->Take<wire::Sleep>());
  client->Call(Send(kClient, kPort, 1'000'000));
  const node::Time sent = client->header.clock;
  Sleep(*client, Ms(300));
  ASSERT_TRUE(server->Take<wire::Sleep>());
  EXPECT_LT(server->header.clock, sent + Ms(200));
}

TEST_F(CoreNetworkTest, OnAHostNothingIsCarried) {
  Start(1, 1);
  client->Call(Send(kClient, kPort, 1'000'000));
  EXPECT_TRUE(fake->sends.empty());
}

TEST_F(CoreNetworkTest, OutsideTheRunNothingIsCarried) {
  Join(0, 1);
  Sleep(*server, Ms(1));
  client->Take<wire::Hello>();
  client->Call(Open(kClient, 80));
  client->Call(Send(kClient, 80, 1'000'000));
  const node::Time before = client->header.clock;
  client->Call(Receive(kClient, 80, 1'000'000));
  EXPECT_EQ(client->header.clock, before);
  EXPECT_TRUE(fake->sends.empty());
}

TEST_F(CoreNetworkTest, BytesFromBeforeTheOtherEndOpenedAreCarriedThen) {
  Join(0, 1);
  server->Ask(Open(kPort, kClient));
  core->Run();
  ASSERT_TRUE(server->Answered());
  server->Take<wire::NetworkOpen>();
  server->Ask(Send(kPort, kClient, 1'000));
  core->Run();
  Sleep(*server, Ms(100));
  EXPECT_TRUE(fake->sends.empty());
  client->Take<wire::Hello>();
  client->Call(Open(kClient, kPort));
  EXPECT_EQ(Carried(0, 1), 1'000u);
  const node::Time opened = client->header.clock;
  client->Call(Receive(kClient, kPort, 1'000));
  EXPECT_EQ(client->header.clock, opened + Us(1) + Us(10));
}

TEST_F(CoreNetworkTest, AnEndThatIsOpenedAgainGoesOn) {
  Start(0, 1);
  client->Call(Send(kClient, kPort, 1'000'000));
  const node::Time sent = client->header.clock;
  client->Call(Open(kClient, kPort));
  Sleep(*client, Ms(100));
  server->Take<wire::Sleep>();
  server->Call(Receive(kPort, kClient, 1'000'000));
  EXPECT_EQ(server->header.clock, std::max(sent + Ms(1) + Us(10), server->header.clock));
  EXPECT_GE(server->header.clock, sent + Ms(1) + Us(10));
}

TEST_F(CoreNetworkTest, AnotherSocketOnTheSameEndsBeginsAnew) {
  Start(0, 1);
  client->Call(Send(kClient, kPort, 50'000'000));
  client->Call(Open(kClient, kPort, 2));
  Sleep(*client, Ms(100));
  server->Take<wire::Sleep>();
  const node::Time before = server->header.clock;
  server->Call(Receive(kPort, kClient, 100));
  EXPECT_EQ(server->header.clock, before) << "the server has not opened it";
}

TEST_F(CoreNetworkTest, WhoIsOnAnotherHostHasNoEnd) {
  Start(0, 1);
  client->Call(Send(kPort, kClient, 1'000));
  EXPECT_TRUE(fake->sends.empty());
}

TEST_F(CoreNetworkTest, ASmallPartOfALargeMessageArrivesEarly) {
  Start(0, 1);
  client->Call(Send(kClient, kPort, 640'000'000));
  const node::Time sent = client->header.clock;
  Sleep(*client, Ms(5'000));
  server->Take<wire::Sleep>();
  server->Call(Receive(kPort, kClient, 1));
  EXPECT_EQ(server->header.clock, sent + Ms(10) + Us(10)) << "a 64th";
  server->Call(Receive(kPort, kClient, 639'999'999));
  EXPECT_EQ(server->header.clock, sent + Ms(640) + Us(10));
}

TEST_F(CoreNetworkTest, WaitingForRoomInARealSocketIsTold) {
  Start(0, 1);
  EXPECT_TRUE(core->Report().deterministic);
  client->Call(wire::NetworkFull{});
  EXPECT_FALSE(core->Report().deterministic);
}

TEST_F(CoreNetworkTest, MoreThanACallCanSendIsRefused) {
  Start(0, 1);
  client->Call(Send(kClient, kPort, 1ull << 40));
  EXPECT_EQ(client->header.status, 1);
  client->Call(Receive(kClient, kPort, 1ull << 40));
  EXPECT_EQ(client->header.status, 1);
  EXPECT_TRUE(fake->sends.empty());
}

}  // namespace
}  // namespace allranks::server
