// What streams do beside kernels and copies, without sockets: host functions, values in memory,
// graphs, events of several processes, visible devices.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "node/hardware/profile.h"
#include "node/machine.h"
#include "test_machine.h"

namespace allranks::node {
namespace {

constexpr const char* kKernels = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry append(.param .u64 p, .param .u32 v) {
  .reg .b64 %rd<2>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [v];
  ld.global.u32 %r2, [%rd1];
  mad.lo.u32 %r3, %r2, 10, %r1;
  st.global.u32 [%rd1], %r3;
  ret;
}
)";

class MachineWorkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    machine_ = MakeTestMachine();
    ASSERT_NE(machine_, nullptr);
    process_ = machine_->AddProcess(0, 0);
  }

  StreamId NewStream(int device = 0) {
    StreamId stream = 0;
    EXPECT_EQ(machine_->CreateStream(process_, device, true, 0, &stream), Status::kSuccess);
    return stream;
  }
  Address Alloc(int device = 0) {
    Address address = 0;
    EXPECT_EQ(machine_->Allocate(process_, device, 64, &address), Status::kSuccess);
    OpId op = 0;
    EXPECT_EQ(machine_->Memset(process_, machine_->DefaultStream(process_, device),
                               {.dst = address, .value = 0, .width = 4, .count = 16, .rows = {}},
                               machine_->now(), &op),
              Status::kSuccess);
    EXPECT_TRUE(Wait(op));
    return address;
  }
  std::uint32_t Read(Address from) {
    auto copy = std::make_shared<CopyRequest>();
    copy->src = from;
    copy->size = 4;
    OpId op = 0;
    EXPECT_EQ(machine_->Copy(process_, NewStream(), copy, machine_->now(), &op), Status::kSuccess);
    EXPECT_TRUE(Wait(op));
    std::uint32_t value = 0;
    std::memcpy(&value, copy->bytes.data(), 4);
    return value;
  }
  bool Wait(OpId op) { return node::WaitFor(*machine_, op); }
  // A digit behind those already at `place`.
  LaunchRequest Append(Address place, std::uint32_t digit, int device = 0) {
    Status status;
    const std::string text = kKernels;
    auto module = machine_->LoadModule(process_, device, std::as_bytes(std::span(text)), &status);
    EXPECT_TRUE(module) << module.error().message;
    KernelInfo info;
    EXPECT_EQ(machine_->GetKernel(*module, "append", &info), Status::kSuccess);
    LaunchRequest request;
    request.kernel = info.id;
    request.params.resize(12);
    std::memcpy(request.params.data(), &place, 8);
    std::memcpy(request.params.data() + 8, &digit, 4);
    return request;
  }
  GraphNode Node(Address place, std::uint32_t digit, std::vector<std::uint32_t> after) {
    GraphNode node;
    node.kind = GraphNode::Kind::kKernel;
    node.launch = Append(place, digit);
    node.after = std::move(after);
    return node;
  }
  static ValueOp WaitFor(Address address, std::uint64_t value, ValueOp::Compare compare) {
    return {.kind = ValueOp::Kind::kWait, .compare = compare, .address = address, .value = value};
  }
  static ValueOp WriteTo(Address address, std::uint64_t value) {
    return {.kind = ValueOp::Kind::kWrite, .address = address, .value = value};
  }

  std::unique_ptr<Machine> machine_;
  ProcessId process_ = 0;
};

TEST_F(MachineWorkTest, AHostFunctionHoldsItsStreamUntilItHasReturned) {
  const Address place = Alloc();
  const StreamId stream = NewStream();
  std::vector<HostCall> calls;
  Time called = 0;
  machine_->SetHostCaller([&](const HostCall& call, Time at) {
    calls.push_back(call);
    called = at;
    machine_->Stop();
  });
  OpId op = 0, last = 0;
  ASSERT_EQ(machine_->Launch(process_, stream, Append(place, 1), 0, &op), Status::kSuccess);
  ASSERT_EQ(machine_->CallHost(process_, stream, {.function = 77, .argument = 88}, 0, &op),
            Status::kSuccess);
  ASSERT_EQ(machine_->Launch(process_, stream, Append(place, 2), 0, &last), Status::kSuccess);
  EXPECT_EQ(machine_->FinishHostCall(process_, op, 0), Status::kInvalidValue) << "not its turn yet";
  machine_->RunUntil(kTimeNever);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].function.function, 77u);
  EXPECT_EQ(calls[0].function.argument, 88u);
  EXPECT_EQ(Read(place), 1u);
  machine_->RunUntil(called + Ms(1));
  EXPECT_FALSE(machine_->Done(std::vector<OpId>{last}));
  EXPECT_EQ(machine_->FinishHostCall(process_, calls[0].op, machine_->now()), Status::kSuccess);
  EXPECT_EQ(machine_->FinishHostCall(process_, calls[0].op, machine_->now()),
            Status::kInvalidValue);
  EXPECT_TRUE(Wait(last));
  EXPECT_EQ(Read(place), 12u);
}

TEST_F(MachineWorkTest, AValueIsWaitedForAndFound) {
  const Address place = Alloc();
  const StreamId waits = NewStream(), writes = NewStream();
  OpId waiting = 0, op = 0;
  ASSERT_EQ(machine_->Values(
                process_, waits,
                {WaitFor(place, 5, ValueOp::Compare::kGreaterOrEqual), WriteTo(place + 4, 9)}, 0,
                &waiting),
            Status::kSuccess);
  machine_->RunUntil(Ms(1));
  EXPECT_FALSE(machine_->Done(std::vector<OpId>{waiting}));
  EXPECT_TRUE(machine_->Stuck());
  const auto waiters = machine_->Waiters();
  ASSERT_EQ(waiters.size(), 1u);
  EXPECT_EQ(waiters[0].kernel, "");
  EXPECT_EQ(waiters[0].what, "cuStreamWaitValue");
  ASSERT_EQ(machine_->Values(process_, writes, {WriteTo(place, 4)}, machine_->now(), &op),
            Status::kSuccess);
  ASSERT_TRUE(Wait(op));
  machine_->RunUntil(machine_->now() + Ms(1));
  EXPECT_FALSE(machine_->Done(std::vector<OpId>{waiting}));
  ASSERT_EQ(machine_->Values(process_, writes, {WriteTo(place, 6)}, machine_->now(), &op),
            Status::kSuccess);
  EXPECT_TRUE(Wait(waiting));
  EXPECT_EQ(Read(place + 4), 9u);
}

TEST_F(MachineWorkTest, ComparisonsAreTheDriversOwn) {
  struct Case {
    ValueOp::Compare compare;
    std::uint32_t have, want;
    bool holds;
  };
  const Case cases[] = {
      {ValueOp::Compare::kGreaterOrEqual, 0, 0xfffffff0u, true},  // cyclic
      {ValueOp::Compare::kGreaterOrEqual, 0xfffffff0u, 0, false},
      {ValueOp::Compare::kGreaterOrEqual, 7, 7, true},
      {ValueOp::Compare::kEqual, 7, 7, true},
      {ValueOp::Compare::kEqual, 8, 7, false},
      {ValueOp::Compare::kAnd, 6, 2, true},
      {ValueOp::Compare::kAnd, 6, 8, false},
      {ValueOp::Compare::kNor, 0x0fffffffu, 0xf0000000u, false},
      {ValueOp::Compare::kNor, 0x0ffffffeu, 0xf0000000u, true},
  };
  for (const Case& c : cases) {
    const Address place = Alloc();
    OpId op = 0;
    ASSERT_EQ(machine_->Values(process_, NewStream(),
                               {WriteTo(place, c.have), WaitFor(place, c.want, c.compare)},
                               machine_->now(), &op),
              Status::kSuccess);
    machine_->RunUntil(machine_->now() + Ms(1));
    EXPECT_EQ(machine_->Done(std::vector<OpId>{op}), c.holds)
        << static_cast<int>(c.compare) << " " << c.have << " " << c.want;
  }
}

TEST_F(MachineWorkTest, ValuesThatCannotBeAreRefused) {
  const Address place = Alloc();
  OpId op = 0;
  const auto refused = [&](std::vector<ValueOp> values) {
    return machine_->Values(process_, NewStream(), std::move(values), 0, &op) ==
           Status::kInvalidValue;
  };
  EXPECT_TRUE(refused({WriteTo(place + 2, 1)}));
  EXPECT_TRUE(refused({WriteTo(place + (1 << 20), 1)}));
  EXPECT_TRUE(refused({WriteTo(0, 1)}));
  EXPECT_TRUE(refused({{.kind = ValueOp::Kind::kWait, .width = 3, .address = place}}));
  EXPECT_TRUE(refused(std::vector<ValueOp>(1000, WriteTo(place, 1))));
}

TEST_F(MachineWorkTest, AGraphRunsInItsOrderAndNeverBesideItself) {
  const Address place = Alloc();
  // 1 -> 2 -> 3, written down in another order than it was made in.
  std::vector<GraphNode> nodes = {Node(place, 1, {}), GraphNode{}, Node(place, 2, {0, 1}),
                                  Node(place, 3, {2})};
  GraphId graph = 0;
  ASSERT_EQ(machine_->PutGraph(process_, nodes, &graph), Status::kSuccess);
  OpId first = 0, second = 0;
  ASSERT_EQ(machine_->LaunchGraph(process_, NewStream(), graph, 0, &first), Status::kSuccess);
  ASSERT_EQ(machine_->LaunchGraph(process_, NewStream(), graph, 0, &second), Status::kSuccess);
  ASSERT_TRUE(Wait(second));
  EXPECT_TRUE(machine_->Done(std::vector<OpId>{first}));
  EXPECT_EQ(Read(place), 123123u);
  // An update counts for later launches, and dropping the graph does not end one under way.
  ASSERT_EQ(machine_->UpdateGraph(process_, graph, 3, Node(place, 9, {})), Status::kSuccess);
  ASSERT_EQ(machine_->LaunchGraph(process_, NewStream(), graph, machine_->now(), &first),
            Status::kSuccess);
  ASSERT_EQ(machine_->DropGraph(process_, graph), Status::kSuccess);
  ASSERT_TRUE(Wait(first));
  EXPECT_EQ(Read(place), 123123129u);
  EXPECT_EQ(machine_->DropGraph(process_, graph), Status::kInvalidHandle);
}

TEST_F(MachineWorkTest, AGraphCostsItsLaunch) {
  const Address place = Alloc();
  GraphId graph = 0;
  ASSERT_EQ(machine_->PutGraph(process_, {Node(place, 1, {})}, &graph), Status::kSuccess);
  const Time start = machine_->now();
  OpId op = 0;
  ASSERT_EQ(machine_->LaunchGraph(process_, NewStream(), graph, start, &op), Status::kSuccess);
  ASSERT_TRUE(Wait(op));
  EXPECT_GE(machine_->stats().kernels.back().start, start + machine_->profile().launch.graph);
}

TEST_F(MachineWorkTest, GraphsThatCannotBeAreRefused) {
  const Address place = Alloc();
  GraphId graph = 0;
  EXPECT_EQ(machine_->PutGraph(process_, {Node(place, 1, {0})}, &graph), Status::kInvalidValue);
  EXPECT_EQ(machine_->PutGraph(process_, {Node(place, 1, {7})}, &graph), Status::kInvalidValue);
  GraphNode node = Node(place, 1, {});
  node.device = 1;  // its module is on device 0
  EXPECT_EQ(machine_->PutGraph(process_, {node}, &graph), Status::kInvalidHandle);
  node.device = -1;
  EXPECT_EQ(machine_->PutGraph(process_, {node}, &graph), Status::kInvalidDevice);
  node = Node(place, 1, {});
  node.launch.block = {2048, 1, 1};
  EXPECT_EQ(machine_->PutGraph(process_, {node}, &graph), Status::kInvalidValue);
  node.kind = GraphNode::Kind::kRecord;
  node.event = 12345;
  EXPECT_EQ(machine_->PutGraph(process_, {node}, &graph), Status::kInvalidHandle);
  OpId op = 0;
  EXPECT_EQ(machine_->LaunchGraph(process_, NewStream(), 999, 0, &op), Status::kInvalidHandle);
}

// A stream of device 0 waits for a flag; device 1 waits for all that device 0 has to do.
TEST_F(MachineWorkTest, AnEventStandsForAWholeContext) {
  const Address flag = Alloc(), place = Alloc(), there = Alloc(1);
  const StreamId held = NewStream(), free = NewStream(), early = NewStream(1);
  EventId event = 0, other = 0;
  ASSERT_EQ(machine_->CreateEvent(process_, 0, true, &event), Status::kSuccess);
  ASSERT_EQ(machine_->CreateEvent(process_, 1, true, &other), Status::kSuccess);
  OpId op = 0, before = 0, first = 0, second = 0, third = 0;
  const auto now = [&] { return machine_->now(); };
  ASSERT_EQ(machine_->WaitContext(process_, 1, event, now()), Status::kSuccess) << "not recorded";
  ASSERT_EQ(machine_->Launch(process_, early, Append(there, 1, 1), now(), &before),
            Status::kSuccess);
  ASSERT_TRUE(Wait(before));
  ASSERT_EQ(
      machine_->Values(process_, held, {WaitFor(flag, 1, ValueOp::Compare::kEqual)}, now(), &op),
      Status::kSuccess);
  ASSERT_EQ(machine_->Launch(process_, held, Append(place, 1), now(), &op), Status::kSuccess);
  ASSERT_EQ(machine_->RecordContext(process_, 0, event, now()), Status::kSuccess);
  ASSERT_EQ(machine_->WaitContext(process_, 1, event, now()), Status::kSuccess);
  ASSERT_EQ(machine_->WaitContext(process_, 1, event, now()), Status::kSuccess);
  ASSERT_EQ(machine_->Launch(process_, early, Append(there, 2, 1), now(), &first),
            Status::kSuccess);
  // Behind the record, and in its own context.
  ASSERT_EQ(machine_->Launch(process_, free, Append(place, 7), now(), &op), Status::kSuccess);
  EXPECT_TRUE(Wait(op));
  EXPECT_EQ(Read(place), 7u);
  const StreamId late = NewStream(1), legacy = machine_->DefaultStream(process_, 1);
  ASSERT_EQ(machine_->Launch(process_, late, Append(there + 4, 3, 1), now(), &second),
            Status::kSuccess);
  ASSERT_EQ(machine_->Launch(process_, legacy, Append(there + 8, 4, 1), now(), &third),
            Status::kSuccess);
  machine_->RunUntil(now() + Ms(1));
  std::vector<OpId> tail;
  ASSERT_EQ(machine_->EventTail(process_, event, &tail), Status::kSuccess);
  EXPECT_FALSE(machine_->Done(tail));
  EXPECT_EQ(Read(there), 1u);
  EXPECT_EQ(Read(there + 4), 0u);
  EXPECT_EQ(Read(there + 8), 0u);

  ASSERT_EQ(machine_->Values(process_, free, {WriteTo(flag, 1)}, now(), &op), Status::kSuccess);
  for (const OpId id : {tail.back(), first, second, third}) EXPECT_TRUE(Wait(id));
  EXPECT_EQ(Read(place), 71u);
  EXPECT_EQ(Read(there), 12u);
  EXPECT_EQ(Read(there + 4), 3u);
  EXPECT_EQ(Read(there + 8), 4u);
  Time time = 0;
  EXPECT_EQ(machine_->EventTime(process_, event, &time), Status::kSuccess);
  EXPECT_GT(time, Ms(1));

  EXPECT_EQ(machine_->RecordContext(process_, 0, other, now()), Status::kInvalidHandle);
  EXPECT_EQ(machine_->RecordContext(process_, 0, 12345, now()), Status::kInvalidHandle);
  EXPECT_EQ(machine_->WaitContext(process_, 0, 12345, now()), Status::kInvalidHandle);
  EXPECT_EQ(machine_->RecordContext(process_, 8, event, now()), Status::kInvalidContext);
  EXPECT_EQ(machine_->WaitContext(process_, -1, event, now()), Status::kInvalidContext);
  EXPECT_EQ(machine_->RecordContext(process_ + 1, 0, event, now()), Status::kInvalidContext);
}

TEST_F(MachineWorkTest, AnEventIsTheSameInAnotherProcess) {
  const ProcessId other = machine_->AddProcess(1, 0);
  const Address place = Alloc();
  EventId event = 0, opened = 0;
  ASSERT_EQ(machine_->CreateEvent(process_, 0, false, &event), Status::kSuccess);
  IpcHandle handle{};
  ASSERT_EQ(machine_->ExportEvent(process_, event, &handle), Status::kSuccess);
  int device = -1;
  ASSERT_EQ(machine_->OpenEvent(other, handle, &device, &opened), Status::kSuccess);
  EXPECT_EQ(device, 0);
  const StreamId stream = NewStream();
  OpId op = 0;
  ASSERT_EQ(machine_->Launch(process_, stream, Append(place, 1), machine_->now(), &op),
            Status::kSuccess);
  ASSERT_EQ(machine_->RecordEvent(process_, stream, event, machine_->now()), Status::kSuccess);
  std::vector<OpId> tail;
  ASSERT_EQ(machine_->EventTail(other, opened, &tail), Status::kSuccess);
  EXPECT_FALSE(machine_->Done(tail));
  ASSERT_TRUE(Wait(tail.back()));
  EXPECT_TRUE(machine_->Done(std::vector<OpId>{op}));
  handle.bytes[20] ^= 1;
  EXPECT_NE(machine_->OpenEvent(other, handle, &device, &opened), Status::kSuccess);
}

TEST_F(MachineWorkTest, AProcessSeesTheDevicesItAskedFor) {
  const std::int32_t wanted[] = {3, 1};
  ASSERT_EQ(machine_->SetVisible(process_, wanted), Status::kSuccess);
  EXPECT_EQ(machine_->DeviceCount(process_), 2);
  const Address place = Alloc(0);
  OpId op = 0;
  StreamId stream = 0;
  ASSERT_EQ(machine_->CreateStream(process_, 0, true, 0, &stream), Status::kSuccess);
  ASSERT_EQ(machine_->Launch(process_, stream, Append(place, 4), machine_->now(), &op),
            Status::kSuccess);
  ASSERT_TRUE(Wait(op));
  EXPECT_EQ(machine_->stats().kernels.back().device, 3) << "the machine's own number";
  EXPECT_EQ(machine_->Describe(process_, place).device, 0) << "the process's";
  Address none = 0;
  EXPECT_EQ(machine_->Allocate(process_, 2, 64, &none), Status::kInvalidDevice);
  EXPECT_EQ(machine_->SetVisible(process_, wanted), Status::kIllegalState) << "it is used already";
  const ProcessId other = machine_->AddProcess(1, 0);
  const std::int32_t twice[] = {1, 1}, beyond[] = {8};
  EXPECT_EQ(machine_->SetVisible(other, twice), Status::kInvalidDevice);
  EXPECT_EQ(machine_->SetVisible(other, beyond), Status::kInvalidDevice);
}

}  // namespace
}  // namespace allranks::node
