// The memory of a judged run's cases: allocated for all ranks before they do anything, as their own
// programs would have done it, and named in the bytes of Args. judged.h has the theory.
#include <algorithm>
#include <cstring>
#include <utility>

#include "server/judged.h"

namespace allranks::server {

using node::Address;
using node::Status;

namespace {

constexpr std::size_t kMaxCases = 1'024, kMaxTensors = 256, kMaxFields = 4'096;
constexpr std::size_t kMaxArgs = 4'096;              // what a kernel takes as one parameter
constexpr std::uint64_t kSetupFuel = 5'000'000'000;  // of a kernel before the first window
constexpr std::uint64_t kMaxTensor = std::uint64_t{1} << 36;

bool Good(const wire::JudgeCase& one, std::uint32_t world) {
  if (one.args.size() < sizeof(std::int32_t) || one.args.size() > kMaxArgs ||
      one.tensors.size() > kMaxTensors || one.fields.size() > kMaxFields)
    return false;
  for (const wire::JudgeTensor& tensor : one.tensors) {
    if (tensor.bytes > kMaxTensor || (tensor.host && (tensor.peers || tensor.multicast)))
      return false;
  }
  using Pointer = wire::JudgeField::Pointer;
  return std::all_of(one.fields.begin(), one.fields.end(), [&](const wire::JudgeField& field) {
    if (field.tensor >= one.tensors.size() || field.peer >= world ||
        field.offset > one.args.size() || one.args.size() - field.offset < sizeof(Address))
      return false;
    const wire::JudgeTensor& tensor = one.tensors[field.tensor];
    return field.pointer == Pointer::kOwn || (field.pointer == Pointer::kPeer && tensor.peers) ||
           (field.pointer == Pointer::kMulticast && tensor.multicast);
  });
}

}  // namespace

Status Judged::Plan(wire::JudgePlan plan) {
  if (plan.world != ranks_.size() || plan.cases.empty() || plan.cases.size() > kMaxCases ||
      plan.host_threads > 64)
    return Status::kInvalidValue;
  for (const wire::JudgeCase& one : plan.cases)
    if (!Good(one, plan.world)) return Status::kInvalidValue;
  plan_ = std::move(plan);
  machine_.SetFuel(kSetupFuel);
  for (Rank& rank : ranks_) {
    rank.tensors.resize(plan_.cases.size());
    rank.args.resize(plan_.cases.size());
    rank.delivered.resize(plan_.cases.size());
    const Status status = machine_.CreateStream(rank.process, rank.device, true, 0, &rank.stream);
    if (status != Status::kSuccess) return status;
  }
  for (std::uint32_t i = 0; i < plan_.cases.size(); ++i) {
    if (const Status status = PlaceCase(i); status != Status::kSuccess) return status;
    if (plan_.rules.setup) steps_.push_back({Do::kSetup, i});
    if (plan_.window == wire::JudgeWindow::kGraph) steps_.push_back({Do::kCapture, i});
  }
  return Status::kSuccess;
}

Status Judged::PlaceCase(std::uint32_t index) {
  const wire::JudgeCase& one = plan_.cases[index];
  const std::size_t world = ranks_.size();
  // By tensor, then by who sees it, then by whose it is; 0: it does not.
  std::vector<std::vector<std::vector<Address>>> places;
  std::vector<std::vector<Address>> multicast;
  for (const wire::JudgeTensor& tensor : one.tensors) {
    auto& at = places.emplace_back(world, std::vector<Address>(world));
    auto& all = multicast.emplace_back(world);
    const std::uint64_t bytes = std::max<std::uint64_t>(tensor.bytes, 1);
    // Handles of processes reach across one host; those of a fabric, where there is one, further.
    const bool across = ranks_.front().host != ranks_.back().host;
    if (tensor.multicast || (tensor.peers && !tensor.host && across)) {
      if (const Status status = PlaceShared(index, tensor, &at, &all); status != Status::kSuccess)
        return status;
      continue;
    }
    for (std::size_t r = 0; r < world; ++r) {
      Rank& rank = ranks_[r];
      Status status = Status::kSuccess;
      if (tensor.host) {
        Pinned& pinned = rank.pinned.emplace_back();
        pinned.case_index = index;
        status = machine_.AllocatePinned(rank.process, bytes, false, &pinned.memory);
        at[r][r] = pinned.memory.address;
        if (!tensor.device && status == Status::kSuccess)
          machine_.HideFromDevices(rank.process, pinned.memory.address);
        machine_.SeparateHost(rank.process, pinned.memory.address);
        desk_.roster().Of(static_cast<std::int32_t>(r)).pinned = true;
      } else {
        status = machine_.Allocate(rank.process, rank.device, bytes, &at[r][r]);
      }
      if (status != Status::kSuccess) return status;
      rank.given[at[r][r]] = {bytes, index};
    }
    if (!tensor.peers) continue;
    for (std::size_t owner = 0; owner < world; ++owner) {
      node::IpcHandle handle{};
      Status status = machine_.IpcExport(ranks_[owner].process, at[owner][owner], &handle);
      for (std::size_t r = 0; r < world && status == Status::kSuccess; ++r) {
        if (r == owner) continue;
        Rank& rank = ranks_[r];
        status = machine_.IpcOpen(rank.process, rank.device, handle, &at[r][owner]);
        rank.given[at[r][owner]] = {bytes, index};
      }
      if (status != Status::kSuccess) return status;
    }
  }
  for (std::size_t r = 0; r < world; ++r) {
    Rank& rank = ranks_[r];
    wire::Blob& args = rank.args[index];
    args = one.args;
    const auto number = static_cast<std::int32_t>(r);
    std::memcpy(args.data(), &number, sizeof number);
    for (const wire::JudgeField& field : one.fields) {
      using Pointer = wire::JudgeField::Pointer;
      const Address address = field.pointer == Pointer::kOwn ? places[field.tensor][r][r]
                              : field.pointer == Pointer::kPeer
                                  ? places[field.tensor][r][field.peer]
                                  : multicast[field.tensor][r];
      std::memcpy(args.data() + field.offset, &address, sizeof address);
    }
    for (const auto& at : places) rank.tensors[index].push_back(at[r][r]);
  }
  return Status::kSuccess;
}

// Memory by handles, bound to one multicast object if the tensor has one. No rank keeps a handle of
// it.
Status Judged::PlaceShared(std::uint32_t index, const wire::JudgeTensor& tensor,
                           std::vector<std::vector<Address>>* at, std::vector<Address>* multicast) {
  node::VirtualMemory& memory = machine_.virtual_memory();
  constexpr std::uint64_t kUnit = node::VirtualMemory::kGranularity;
  const std::uint64_t size = (std::max<std::uint64_t>(tensor.bytes, 1) + kUnit - 1) / kUnit * kUnit;
  const auto map = [&](Rank& rank, node::HandleId handle, Address* address) {
    Status status = memory.Reserve(rank.process, size, 0, 0, address);
    if (status == Status::kSuccess) status = memory.Map(rank.process, *address, size, 0, handle);
    if (status == Status::kSuccess)
      status = memory.SetAccess(rank.process, *address, size, rank.device,
                                node::AccessRight::kReadWrite);
    rank.given[*address] = {size, index};
    return status;
  };
  const std::size_t world = ranks_.size();
  node::FabricHandle team{};
  std::vector<node::HandleId> teams(world), own(world);
  Status status = Status::kSuccess;
  for (std::size_t r = 0; r < world && status == Status::kSuccess; ++r) {
    Rank& rank = ranks_[r];
    status = memory.Create(rank.process, rank.device, size, node::kShareByFabric, &own[r]);
    if (status == Status::kSuccess) status = map(rank, own[r], &(*at)[r][r]);
  }
  if (tensor.multicast && status == Status::kSuccess) {
    status = memory.CreateMulticast(ranks_[0].process, static_cast<std::uint32_t>(world), size,
                                    node::kShareByFabric, &teams[0]);
    if (status == Status::kSuccess)
      status = memory.ExportFabric(ranks_[0].process, teams[0], &team);
    for (std::size_t r = 0; r < world && status == Status::kSuccess; ++r) {
      Rank& rank = ranks_[r];
      if (r != 0) status = memory.ImportFabric(rank.process, team, &teams[r]);
      if (status == Status::kSuccess)
        status = memory.AddDevice(rank.process, teams[r], rank.device);
    }
    for (std::size_t r = 0; r < world && status == Status::kSuccess; ++r) {
      Rank& rank = ranks_[r];
      status = memory.Bind(rank.process, teams[r], 0, own[r], 0, size);
      if (status == Status::kSuccess) status = map(rank, teams[r], &(*multicast)[r]);
    }
  }
  for (std::size_t owner = 0; owner < world && tensor.peers; ++owner) {
    node::FabricHandle fabric{};
    if (status == Status::kSuccess)
      status = memory.ExportFabric(ranks_[owner].process, own[owner], &fabric);
    for (std::size_t r = 0; r < world && status == Status::kSuccess; ++r) {
      if (r == owner) continue;
      node::HandleId handle = 0;
      status = memory.ImportFabric(ranks_[r].process, fabric, &handle);
      if (status == Status::kSuccess) status = map(ranks_[r], handle, &(*at)[r][owner]);
      if (status == Status::kSuccess) status = memory.Release(ranks_[r].process, handle);
    }
  }
  for (std::size_t r = 0; r < world && status == Status::kSuccess; ++r) {
    if (tensor.multicast) status = memory.Release(ranks_[r].process, teams[r]);
    if (status == Status::kSuccess) status = memory.Release(ranks_[r].process, own[r]);
  }
  return status;
}

}  // namespace allranks::server
