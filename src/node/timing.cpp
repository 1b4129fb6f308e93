// What accesses cost: which servers an access passes and how long it is on its way.
#include "node/world.h"

namespace allranks::node {
namespace {

// Payload plus headers, in bytes on the wire.
std::int64_t WireBytes(std::uint64_t bytes, std::uint32_t packets, std::int32_t header) {
  return static_cast<std::int64_t>(bytes) + static_cast<std::int64_t>(packets) * header;
}

}  // namespace

Time World::DelayTo(const Device& device, const Object& object) const {
  if (object.device < 0) return costs.pcie;
  if (object.device != device.number) return costs.link + costs.l2 / 2;
  return costs.l2 / 2;
}

Time World::ChargeLoad(Device& device, const Object& object, std::uint64_t bytes,
                       std::uint32_t packets, Time at, bool strong) {
  const auto amount = static_cast<std::int64_t>(bytes);
  if (object.device < 0) {
    // Request out, data back in: a read occupies the way in with its data.
    const Time served =
        device.pcie_in.Take(at + costs.pcie, WireBytes(bytes, packets, profile.pcie.header_bytes));
    return served + costs.pcie;
  }
  Device& home = devices[static_cast<std::size_t>(object.device)];
  if (&home == &device) {
    Time served = device.l2.Take(at, amount);
    if (strong) return served + costs.l2;
    served = device.hbm.Take(served, amount);
    return served + costs.hbm;
  }
  const std::int64_t wire = WireBytes(bytes, packets, profile.nvlink.header_bytes);
  Time served =
      device.link_out.Take(at, static_cast<std::int64_t>(packets) * profile.nvlink.header_bytes);
  served = home.link_out.Take(served + costs.link + costs.l2, wire);
  served = device.link_in.Take(served, wire);
  return served + costs.link;
}

Time World::ChargeStore(Device& device, const Object& object, std::uint64_t bytes,
                        std::uint32_t packets, Time at) {
  const auto amount = static_cast<std::int64_t>(bytes);
  if (object.device < 0) {
    const Time served =
        device.pcie_out.Take(at, WireBytes(bytes, packets, profile.pcie.header_bytes));
    return served + costs.pcie;
  }
  Device& home = devices[static_cast<std::size_t>(object.device)];
  if (&home == &device) {
    const Time served = device.hbm.Take(device.l2.Take(at, amount), amount);
    return served + costs.l2 / 2;
  }
  const std::int64_t wire = WireBytes(bytes, packets, profile.nvlink.header_bytes);
  const Time sent = device.link_out.Take(at, wire);
  const Time received = home.link_in.Take(sent + costs.link, wire);
  return received + costs.l2 / 2;
}

Time World::ChargeCopy(int from, int to, std::uint64_t bytes, Time at) {
  const auto amount = static_cast<std::int64_t>(bytes);
  const auto packets = static_cast<std::uint32_t>(bytes / 128 + 1);
  Time served =
      at + static_cast<Time>(static_cast<double>(bytes) * 1000.0 / profile.copy_engine.gbs);
  if (from < 0 && to < 0) return served;
  if (from < 0 || to < 0) {
    Device& device = devices[static_cast<std::size_t>(from < 0 ? to : from)];
    Server& way = from < 0 ? device.pcie_in : device.pcie_out;
    return std::max(served,
                    way.Take(at, WireBytes(bytes, packets / 2 + 1, profile.pcie.header_bytes))) +
           costs.pcie;
  }
  Device& source = devices[static_cast<std::size_t>(from)];
  Device& target = devices[static_cast<std::size_t>(to)];
  served = std::max(served, source.hbm.Take(at, amount));
  served = std::max(served, target.hbm.Take(at, amount));
  if (from == to) return served;
  const std::int64_t wire = WireBytes(bytes, packets, profile.nvlink.header_bytes);
  const Time sent = source.link_out.Take(at, wire);
  return std::max(served, target.link_in.Take(sent + costs.link, wire));
}

}  // namespace allranks::node
