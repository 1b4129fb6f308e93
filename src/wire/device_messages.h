// Messages of the device API, named after what a driver does; part of wire/messages.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "wire/op.h"

namespace allranks::wire {

// One line per Visit, so that a struct and its description stand side by side.
// clang-format off

// --- devices and modules -----------------------------------------------------------------------

// NVLinks of a device to one other end.
struct NvLinks {
  std::int32_t peer = 0;    // a device of the same host; negative: a switch, its own number
  std::uint32_t links = 0;  // in parallel
  template <class A> void Visit(A& a) { a(peer, links); }
};

// Where a device or a NIC is attached in its host: equal numbers are the same one, -1 is none.
struct PciePlace {
  std::int32_t pcie_switch = -1;  // the nearest
  std::int32_t pcie_root = -1;    // the one at the CPU; mostly the same
  std::int32_t cpu = -1;
  template <class A> void Visit(A& a) { a(pcie_switch, pcie_root, cpu); }
};

struct DeviceInfo {
  std::string name;
  std::array<std::uint8_t, 16> uuid{};
  std::int32_t pci_domain = 0, pci_bus = 0, pci_device = 0;
  std::int32_t compute_major = 0, compute_minor = 0;
  std::uint64_t memory_bytes = 0, l2_bytes = 0, const_bytes = 0;
  std::uint32_t clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0;
  std::uint32_t sms = 0, copy_engines = 0;
  std::uint32_t max_threads_per_cta = 0, max_cta_xy = 0, max_cta_z = 0;
  std::uint32_t max_grid_x = 0, max_grid_yz = 0, max_cluster_size = 0;
  std::uint32_t sm_threads = 0, sm_ctas = 0, sm_registers = 0, max_registers_per_thread = 0;
  std::uint32_t sm_shared_bytes = 0, cta_shared_bytes = 0, cta_shared_optin_bytes = 0,
                cta_shared_reserved = 0;
  bool multicast = false, fabric = false;  // multicast objects, and fabric handles, work
  bool hosts_share_fabric = false;         // NVLink goes beyond the host
  bool host_handles = false, ranges = false;  // memory of the host by handles; ExportRange
  std::vector<NvLinks> nvlinks;
  PciePlace place;
  template <class A> void Visit(A& a) {
    a(name, uuid, pci_domain, pci_bus, pci_device, compute_major, compute_minor);
    a(memory_bytes, l2_bytes, const_bytes, clock_khz, memory_clock_khz, memory_bus_bits);
    a(sms, copy_engines, max_threads_per_cta, max_cta_xy, max_cta_z);
    a(max_grid_x, max_grid_yz, max_cluster_size);
    a(sm_threads, sm_ctas, sm_registers, max_registers_per_thread);
    a(sm_shared_bytes, cta_shared_bytes, cta_shared_optin_bytes, cta_shared_reserved);
    a(multicast, fabric, hosts_share_fabric, host_handles, ranges, nvlinks, place);
  }
};
struct InitReply {
  std::vector<DeviceInfo> devices;
  template <class A> void Visit(A& a) { a(devices); }
};
struct Init {
  using Reply = InitReply;
  template <class A> void Visit(A& a) { a(); }
};

// Part of a fat binary or PTX text, under a number that the process chose; parts come in order. It
// can be loaded when all `total` bytes are there.
struct PutImage {
  using Reply = Empty;
  std::uint64_t image = 0;
  std::uint64_t total = 0, offset = 0;
  Blob bytes;
  template <class A> void Visit(A& a) { a(image, total, offset, bytes); }
};
// The same of an image that lies in a file: nothing is sent if the node can read it there.
struct FileImageReply {
  bool known = false;  // false: send it
  template <class A> void Visit(A& a) { a(known); }
};
struct FileImage {
  using Reply = FileImageReply;
  struct Part {
    std::uint64_t offset = 0, size = 0;
    template <class A> void Visit(A& a) { a(offset, size); }
  };
  std::uint64_t image = 0;
  std::string path;
  std::vector<Part> parts;  // several are linked into one module
  template <class A> void Visit(A& a) { a(image, path, parts); }
};
struct DropImage {
  using Reply = Empty;
  std::uint64_t image = 0;
  template <class A> void Visit(A& a) { a(image); }
};

struct LoadModuleReply {
  std::uint64_t module = 0;
  std::string message;  // why not
  template <class A> void Visit(A& a) { a(module, message); }
};
struct LoadModule {
  using Reply = LoadModuleReply;
  std::int32_t device = 0;
  std::uint64_t image = 0;
  bool launched = false;  // a kernel of it is, which fails if the image cannot be loaded
  template <class A> void Visit(A& a) { a(device, image, launched); }
};
struct UnloadModule {
  using Reply = Empty;
  std::uint64_t module = 0;
  template <class A> void Visit(A& a) { a(module); }
};

struct GetKernelReply {
  std::uint64_t kernel = 0;
  std::vector<std::uint32_t> param_offsets, param_sizes;
  std::uint32_t param_bytes = 0;
  std::uint32_t registers = 0, static_shared = 0, local = 0, max_threads = 0, const_bytes = 0;
  std::uint32_t ptx_version = 0, binary_version = 0;
  template <class A> void Visit(A& a) {
    a(kernel, param_offsets, param_sizes, param_bytes);
    a(registers, static_shared, local, max_threads, const_bytes, ptx_version, binary_version);
  }
};
struct GetKernel {
  using Reply = GetKernelReply;
  std::uint64_t module = 0;
  std::string name;
  template <class A> void Visit(A& a) { a(module, name); }
};

// A managed variable's frame carries the memory file, `mapped` bytes to be mapped at `address`.
struct GetGlobalReply {
  std::uint64_t address = 0, size = 0;
  bool managed = false;
  std::uint64_t mapped = 0;
  template <class A> void Visit(A& a) { a(address, size, managed, mapped); }
};
struct GetGlobal {
  using Reply = GetGlobalReply;
  std::uint64_t module = 0;
  std::string name;
  template <class A> void Visit(A& a) { a(module, name); }
};

// By the numbers of CUlimit.
struct SetLimit {
  using Reply = Empty;
  std::int32_t device = 0;
  std::int32_t limit = 0;
  std::uint64_t value = 0;
  template <class A> void Visit(A& a) { a(device, limit, value); }
};

struct ListKernelsReply {
  std::vector<std::string> names;
  template <class A> void Visit(A& a) { a(names); }
};
struct ListKernels {
  using Reply = ListKernelsReply;
  std::uint64_t module = 0;
  template <class A> void Visit(A& a) { a(module); }
};

struct SetMaxDynamicShared {
  using Reply = Empty;
  std::uint64_t kernel = 0;
  std::uint32_t bytes = 0;
  template <class A> void Visit(A& a) { a(kernel, bytes); }
};

struct OccupancyReply {
  std::int32_t ctas_per_sm = 0, clusters = 0;
  template <class A> void Visit(A& a) { a(ctas_per_sm, clusters); }
};
struct Occupancy {
  using Reply = OccupancyReply;
  std::uint64_t kernel = 0;
  std::uint32_t threads = 0, dynamic_shared = 0;
  std::uint32_t cluster = 1;  // CTAs of a cluster
  template <class A> void Visit(A& a) { a(kernel, threads, dynamic_shared, cluster); }
};

// --- memory ------------------------------------------------------------------------------------

struct AddressReply {
  std::uint64_t address = 0;
  template <class A> void Visit(A& a) { a(address); }
};
struct Alloc {
  using Reply = AddressReply;
  std::int32_t device = 0;
  std::uint64_t size = 0;
  template <class A> void Visit(A& a) { a(device, size); }
};
struct Free {
  using Reply = Empty;
  std::uint64_t address = 0;
  template <class A> void Visit(A& a) { a(address); }
};

// The reply's frame carries the memory file, to be mapped (whole pages) at `address`.
struct AllocPinnedReply {
  std::uint64_t address = 0, size = 0;
  template <class A> void Visit(A& a) { a(address, size); }
};
struct AllocPinned {
  using Reply = AllocPinnedReply;
  std::uint64_t size = 0;
  bool managed = false;
  template <class A> void Visit(A& a) { a(size, managed); }
};
// Pinned, managed or registered.
struct FreePinned {
  using Reply = Empty;
  std::uint64_t address = 0;
  template <class A> void Visit(A& a) { a(address); }
};

struct DescribeReply {
  enum class Kind : std::uint8_t {
    kUnknown, kDevice, kPinned, kManaged, kReserved, kLast_ = kReserved
  };
  Kind kind = Kind::kUnknown;
  std::int32_t device = -1;
  std::uint64_t base = 0, size = 0;
  std::uint64_t object = 0;             // the same number is the same memory
  bool mapped_handle = false;           // by MapMemory
  std::uint64_t range = 0, range_size = 0;  // the reservation, or the allocation
  std::uint32_t share = 0;              // bits of CUmemAllocationHandleType
  std::uint64_t pool = 0;               // that it came from
  template <class A> void Visit(A& a) {
    a(kind, device, base, size, object, mapped_handle, range, range_size, share, pool);
  }
};
struct Describe {
  using Reply = DescribeReply;
  std::uint64_t address = 0;
  template <class A> void Visit(A& a) { a(address); }
};

using IpcBytes = std::array<std::uint8_t, 64>;
struct IpcExportReply {
  IpcBytes handle{};
  template <class A> void Visit(A& a) { a(handle); }
};
struct IpcExport {
  using Reply = IpcExportReply;
  std::uint64_t address = 0;
  template <class A> void Visit(A& a) { a(address); }
};
struct IpcOpen {
  using Reply = AddressReply;
  std::int32_t device = 0;
  IpcBytes handle{};
  template <class A> void Visit(A& a) { a(device, handle); }
};
struct IpcClose {
  using Reply = Empty;
  std::uint64_t address = 0;
  template <class A> void Visit(A& a) { a(address); }
};

struct CanAccessPeerReply {
  bool can = false;
  template <class A> void Visit(A& a) { a(can); }
};
struct CanAccessPeer {
  using Reply = CanAccessPeerReply;
  std::int32_t device = 0, peer = 0;
  template <class A> void Visit(A& a) { a(device, peer); }
};
struct EnablePeer {
  using Reply = Empty;
  std::int32_t device = 0, peer = 0;
  template <class A> void Visit(A& a) { a(device, peer); }
};
struct DisablePeer {
  using Reply = Empty;
  std::int32_t device = 0, peer = 0;
  template <class A> void Visit(A& a) { a(device, peer); }
};

struct MemInfoReply {
  std::uint64_t free = 0, total = 0;
  template <class A> void Visit(A& a) { a(free, total); }
};
struct MemInfo {
  using Reply = MemInfoReply;
  std::int32_t device = 0;
  template <class A> void Visit(A& a) { a(device); }
};

// What the NVLinks of a device have carried since the node started, in the order of
// DeviceInfo::nvlinks. `host_device` is the device's number on its host, as NVML counts.
struct LinkBytes {
  std::uint64_t sent = 0, received = 0;            // payload
  std::uint64_t sent_raw = 0, received_raw = 0;    // with packet headers
  template <class A> void Visit(A& a) { a(sent, received, sent_raw, received_raw); }
};
struct LinkTrafficReply {
  std::vector<LinkBytes> links;
  template <class A> void Visit(A& a) { a(links); }
};
struct LinkTraffic {
  using Reply = LinkTrafficReply;
  std::int32_t host_device = 0;
  template <class A> void Visit(A& a) { a(host_device); }
};

// The reply's status is the sticky error of the process on that device.
struct StickyError {
  using Reply = Empty;
  std::int32_t device = 0;
  template <class A> void Visit(A& a) { a(device); }
};
struct ResetDevice {
  using Reply = Empty;
  std::int32_t device = 0;
  template <class A> void Visit(A& a) { a(device); }
};

// --- streams, events, work ---------------------------------------------------------------------

struct StreamRef {
  std::int32_t device = 0;   // looked at only if stream is 0
  std::uint64_t stream = 0;
  template <class A> void Visit(A& a) { a(device, stream); }
};

struct CreateStreamReply {
  std::uint64_t stream = 0;
  template <class A> void Visit(A& a) { a(stream); }
};
struct CreateStream {
  using Reply = CreateStreamReply;
  std::int32_t device = 0;
  bool non_blocking = false;
  std::int32_t priority = 0;
  template <class A> void Visit(A& a) { a(device, non_blocking, priority); }
};
struct DestroyStream {
  using Reply = Empty;
  std::uint64_t stream = 0;
  template <class A> void Visit(A& a) { a(stream); }
};
struct StreamQuery {  // status 600 while unfinished
  using Reply = Empty;
  StreamRef stream;
  template <class A> void Visit(A& a) { a(stream); }
};
struct StreamSync {
  using Reply = Empty;
  StreamRef stream;
  template <class A> void Visit(A& a) { a(stream); }
};

struct CreateEventReply {
  std::uint64_t event = 0;
  template <class A> void Visit(A& a) { a(event); }
};
struct CreateEvent {
  using Reply = CreateEventReply;
  std::int32_t device = 0;
  bool timing = true;
  template <class A> void Visit(A& a) { a(device, timing); }
};
struct DestroyEvent {
  using Reply = Empty;
  std::uint64_t event = 0;
  template <class A> void Visit(A& a) { a(event); }
};
struct RecordEvent {
  using Reply = Empty;
  StreamRef stream;
  std::uint64_t event = 0;
  template <class A> void Visit(A& a) { a(stream, event); }
};
struct WaitEvent {  // the stream waits, not the thread
  using Reply = Empty;
  StreamRef stream;
  std::uint64_t event = 0;
  template <class A> void Visit(A& a) { a(stream, event); }
};
struct RecordContext {  // the event stands for all work of the device so far
  using Reply = Empty;
  std::int32_t device = 0;
  std::uint64_t event = 0;
  template <class A> void Visit(A& a) { a(device, event); }
};
struct WaitContext {  // all later work of the device waits, not the thread
  using Reply = Empty;
  std::int32_t device = 0;
  std::uint64_t event = 0;
  template <class A> void Visit(A& a) { a(device, event); }
};
struct EventQuery {
  using Reply = Empty;
  std::uint64_t event = 0;
  template <class A> void Visit(A& a) { a(event); }
};
struct EventSync {
  using Reply = Empty;
  std::uint64_t event = 0;
  template <class A> void Visit(A& a) { a(event); }
};
struct EventElapsedReply {
  std::int64_t ps = 0;
  template <class A> void Visit(A& a) { a(ps); }
};
struct EventElapsed {
  using Reply = EventElapsedReply;
  std::uint64_t start = 0, end = 0;
  template <class A> void Visit(A& a) { a(start, end); }
};
struct DeviceSync {
  using Reply = Empty;
  std::int32_t device = 0;
  template <class A> void Visit(A& a) { a(device); }
};

struct Dim {
  std::uint32_t x = 1, y = 1, z = 1;
  template <class A> void Visit(A& a) { a(x, y, z); }
};
struct Launch {
  using Reply = Empty;
  StreamRef stream;
  std::uint64_t kernel = 0;
  Dim grid, block, cluster;
  std::uint32_t dynamic_shared = 0;
  bool cooperative = false;
  bool has_priority = false;        // else the stream's
  std::int32_t priority = 0;
  bool programmatic = false;        // may begin when the kernel before it lets it
  std::uint64_t trigger_event = 0;  // recorded when every block has let dependents begin ...
  bool trigger_at_start = false;    // ... or has begun
  Blob params;  // packed as GetKernelReply says
  template <class A> void Visit(A& a) {
    a(stream, kernel, grid, block, cluster, dynamic_shared, cooperative, has_priority, priority);
    a(programmatic, trigger_event, trigger_at_start, params);
  }
};

// `depth` planes of `height` rows; pitches from row to row, slices from plane to plane. Bytes that
// travel in a message are packed.
struct Rows {
  std::uint64_t height = 1, depth = 1;
  std::uint64_t dst_pitch = 0, dst_slice = 0, src_pitch = 0, src_slice = 0;
  template <class A> void Visit(A& a) {
    a(height, depth, dst_pitch, dst_slice, src_pitch, src_slice);
  }
};
// Device and pinned memory by address. `wait`: reply when done, with its error if it failed.
struct Copy {
  using Reply = Empty;
  StreamRef stream;
  std::uint64_t dst = 0, src = 0, size = 0;  // size: of one row
  Rows rows;
  bool wait = false;
  template <class A> void Visit(A& a) { a(stream, dst, src, size, rows, wait); }
};
// From memory that only the process has.
struct CopyIn {
  using Reply = Empty;
  StreamRef stream;
  std::uint64_t dst = 0, size = 0;  // size: of one row
  Rows rows;
  bool wait = false;
  Blob bytes;
  template <class A> void Visit(A& a) { a(stream, dst, size, rows, wait, bytes); }
};
// To memory that only the process has: the reply comes when the bytes are there, at most kMaxChunk.
struct CopyOutReply {
  Blob bytes;
  template <class A> void Visit(A& a) { a(bytes); }
};
struct CopyOut {
  using Reply = CopyOutReply;
  StreamRef stream;
  std::uint64_t src = 0, size = 0;  // size: of one row
  Rows rows;
  template <class A> void Visit(A& a) { a(stream, src, size, rows); }
};
struct Memset {
  using Reply = Empty;
  StreamRef stream;
  std::uint64_t dst = 0;
  std::uint32_t value = 0;
  std::uint8_t width = 1;  // bytes per element: 1, 2, 4
  std::uint64_t count = 0;  // elements of one row
  Rows rows;
  bool wait = false;
  template <class A> void Visit(A& a) { a(stream, dst, value, width, count, rows, wait); }
};

// clang-format on
}  // namespace allranks::wire
