// What a rank of a judged run may ask of the node: a list of what is allowed by phase, and a look
// at the arguments of what could reach beyond it. Everything that is not listed is refused with a
// sentence that names the call. judged.h has the theory.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "server/image_files.h"
#include "server/judged.h"

namespace allranks::server {

using wire::Op;

namespace {

constexpr std::size_t kMaxNodes = 4'096;  // of a delivered graph

// Host code among itself.
bool OfThreads(Op op) {
  switch (op) {
    case Op::kNewThread:
    case Op::kThreadExit:
    case Op::kWaitThread:
    case Op::kSleep:
    case Op::kYield:
    case Op::kBarrierWait:
    case Op::kWatchKey:
    case Op::kUnwatchKey:
    case Op::kWaitKey:
    case Op::kWakeKey:
    case Op::kJudgeNext:
      return true;
    default:
      return false;
  }
}

// Starts no work and makes no memory.
bool Prepares(Op op) {
  switch (op) {
    case Op::kInit:
    case Op::kPutImage:
    case Op::kFileImage:
    case Op::kDropImage:
    case Op::kLoadModule:
    case Op::kGetKernel:
    case Op::kGetGlobal:
    case Op::kListKernels:
    case Op::kSetMaxDynamicShared:
    case Op::kOccupancy:
    case Op::kDescribe:
    case Op::kCanAccessPeer:
    case Op::kEnablePeer:
    case Op::kMemInfo:
    case Op::kStickyError:
    case Op::kCreateStream:
    case Op::kDestroyStream:
    case Op::kStreamQuery:
    case Op::kStreamSync:
    case Op::kCreateEvent:
    case Op::kDestroyEvent:
    case Op::kEventQuery:
    case Op::kEventSync:
    case Op::kEventElapsed:
    case Op::kDeviceSync:
    case Op::kDefaultPool:
    case Op::kGetPoolAttribute:
    case Op::kGetPoolAccess:
    case Op::kMemoryInfo:
    case Op::kGetMemoryAccess:
    case Op::kPutGraph:
    case Op::kDropGraph:
      return true;
    default:
      return false;
  }
}

bool OfSetup(Op op, const wire::JudgeRules& rules) {
  switch (op) {
    case Op::kUnloadModule:
    case Op::kSetLimit:
    case Op::kAlloc:
    case Op::kFree:
    case Op::kIpcExport:
    case Op::kIpcOpen:
    case Op::kIpcClose:
    case Op::kDisablePeer:
    case Op::kRecordEvent:
    case Op::kWaitEvent:
    case Op::kLaunch:
    case Op::kLaunchGraph:
    case Op::kCopy:
    case Op::kCopyIn:
    case Op::kCopyOut:
    case Op::kMemset:
    case Op::kStreamValues:
    case Op::kCreatePool:
    case Op::kDestroyPool:
    case Op::kSetPoolAttribute:
    case Op::kTrimPool:
    case Op::kSetPoolAccess:
    case Op::kAllocAsync:
    case Op::kFreeAsync:
    case Op::kExportPool:
    case Op::kImportPool:
    case Op::kExportPointer:
    case Op::kImportPointer:
    case Op::kCreateMemory:
    case Op::kReleaseMemory:
    case Op::kRetainMemory:
    case Op::kExportMemory:
    case Op::kImportMemory:
    case Op::kReserveAddress:
    case Op::kFreeAddress:
    case Op::kMapMemory:
    case Op::kUnmapMemory:
    case Op::kSetMemoryAccess:
    case Op::kJudgeGather:
      return true;
    case Op::kCreateMulticast:
    case Op::kAddMulticastDevice:
    case Op::kBindMulticast:
    case Op::kUnbindMulticast:
      return rules.multicast;
    default:
      return false;
  }
}

// What NCCL does beside it: memory that its threads on the host share with kernels, and sockets by
// which ranks find each other. It connects ranks when they first need it, which may be in a
// capture.
bool OfLibrary(Op op) {
  switch (op) {
    case Op::kAllocPinned:
    case Op::kFreePinned:
    case Op::kRegisterHost:
    case Op::kLinkTraffic:
      return true;
    default:
      return false;
  }
}
bool WaitsOfLibrary(Op op) { return op == Op::kWaitFd || op == Op::kHostPoll; }

bool OfWindow(Op op, const wire::JudgeRules& rules) {
  switch (op) {
    case Op::kLaunch:
    case Op::kLaunchGraph:
    case Op::kRecordEvent:
    case Op::kWaitEvent:
    case Op::kJudgeOpen:
    case Op::kJudgeClose:
      return true;
    case Op::kCopy:
    case Op::kMemset:
      return rules.copies;
    case Op::kStreamValues:
      return rules.values;
    default:
      return false;
  }
}

std::string CallName(Op op) {
  switch (op) {
    case Op::kNewProcess:
    case Op::kProcessStarted:
    case Op::kWaitProcess:
      return "fork";
    case Op::kExec:
      return "exec";
    case Op::kWaitFd:
      return "waiting for a file descriptor";
    case Op::kHostPoll:
      return "a loop on pinned memory";
    case Op::kBootstrapBarrier:
      return "allranks_barrier";
    case Op::kAlloc:
      return "cudaMalloc";
    case Op::kFree:
      return "cudaFree";
    case Op::kAllocAsync:
      return "cudaMallocAsync";
    case Op::kFreeAsync:
      return "cudaFreeAsync";
    case Op::kAllocPinned:
      return "pinned or managed host memory (cudaHostAlloc, cudaMallocManaged)";
    case Op::kFreePinned:
      return "cudaFreeHost";
    case Op::kRegisterHost:
      return "cudaHostRegister";
    case Op::kCopy:
      return "cudaMemcpy between devices";
    case Op::kCopyIn:
      return "cudaMemcpy host to device";
    case Op::kCopyOut:
      return "cudaMemcpy device to host";
    case Op::kMemset:
      return "cudaMemset";
    case Op::kLaunch:
      return "a kernel launch outside the given stream";
    case Op::kLaunchGraph:
      return "cudaGraphLaunch";
    case Op::kUpdateGraph:
      return "an update of an executable graph";
    case Op::kCallHost:
    case Op::kNextHostCall:
      return "a host function in a stream (cudaLaunchHostFunc, copies of host memory)";
    case Op::kStreamValues:
      return "a stream memory operation";
    case Op::kRecordEvent:
      return "cudaEventRecord outside the given stream";
    case Op::kWaitEvent:
      return "cudaStreamWaitEvent outside the given stream";
    case Op::kRecordContext:  // both in every phase: work of the judge is work of the context
      return "cuCtxRecordEvent";
    case Op::kWaitContext:
      return "cuCtxWaitEvent";
    case Op::kIpcExport:
    case Op::kIpcOpen:
    case Op::kIpcClose:
    case Op::kExportEvent:
    case Op::kOpenEvent:
      return "CUDA IPC";
    case Op::kExportRange:  // in every phase: what it is for is another driver
      return "cuMemGetHandleForAddressRange";
    case Op::kResetDevice:
      return "cudaDeviceReset";
    case Op::kSetVisible:
      return "CUDA_VISIBLE_DEVICES";
    case Op::kCreateMulticast:
    case Op::kAddMulticastDevice:
    case Op::kBindMulticast:
    case Op::kUnbindMulticast:
      return "a multicast object";
    case Op::kJudgeGather:
      return "allranks::Boot";
    default:
      return fmt::format("'{}'", wire::OpName(op));
  }
}

}  // namespace

std::string Judged::RefusedCall(Thread thread, Op op) {
  const Rank& rank = Of(thread.rank);
  if (OfThreads(op)) return {};
  const bool host = plan_.window == wire::JudgeWindow::kHost;
  if (host && (op == Op::kAllocPinned || op == Op::kJudgeHostStep || op == Op::kHostPoll))
    return {};
  const bool library = plan_.rules.library;
  if (library && WaitsOfLibrary(op)) return {};
  const char* when = "";
  switch (rank.phase) {
    case Phase::kBefore:
      if (Prepares(op)) return {};
      when = "before the first call";
      break;
    case Phase::kSetup:
      if (Prepares(op) || OfSetup(op, plan_.rules) || (library && OfLibrary(op))) return {};
      when = "in setup";
      break;
    case Phase::kCapture:
      if (Prepares(op)) return {};
      if (library && (OfSetup(op, plan_.rules) || OfLibrary(op))) return {};
      when = "in the capture";
      break;
    case Phase::kWindow:
      if (Prepares(op)) return {};
      if (plan_.window != wire::JudgeWindow::kQuery && OfWindow(op, plan_.rules)) return {};
      when = "in the window";
      break;
    case Phase::kServed:
      if (library && Prepares(op)) return {};
      when = "between calls";
      break;
  }
  return fmt::format("{} is not allowed {}", CallName(op), when);
}

// In a window a rank gives work to the stream that it was given and to no other: what it does is
// between the beginning and the end of a call.
std::string Judged::RefusedStream(std::int32_t rank, Op op, std::uint64_t stream) {
  const Rank& r = Of(rank);
  if (r.phase != Phase::kWindow || !OfWindow(op, plan_.rules) || stream == r.given_stream)
    return {};
  return "work in a stream other than the given one is not allowed in the window";
}

bool Judged::IsOwnModule(const node::ModuleImage& image) const {
  if (plan_.module_hash.empty()) return true;
  // Images in files are of the judge's library: no other file can be opened (ImageFiles).
  return ImageFiles::IsKey(image.key()) ||
         std::ranges::equal(std::as_bytes(std::span(image.key())), plan_.module_hash);
}

// --- arguments ---------------------------------------------------------------------------------

std::string Judged::RefusedKernel(std::int32_t rank, int device, const wire::Launch& launch) {
  if (!plan_.rules.kernels) return "a kernel is not allowed";
  if (device != Of(rank).device)
    return fmt::format("a kernel on device {} is not allowed: rank {} has device {}", device, rank,
                       Of(rank).device);
  const std::uint32_t most = plan_.rules.max_ctas;
  if (most == 0 || Of(rank).phase == Phase::kSetup) return {};
  const std::uint64_t plane = std::uint64_t{launch.grid.x} * launch.grid.y;
  if (plane <= most && plane * launch.grid.z <= most) return {};
  return fmt::format("a kernel of {} x {} x {} CTAs is not allowed: the limit is {}", launch.grid.x,
                     launch.grid.y, launch.grid.z, most);
}

std::string Judged::RefusedArguments(std::int32_t rank, const wire::Launch& message) {
  int device = message.stream.device;
  const auto& streams = desk_.roster().Of(rank).streams;
  if (const auto found = streams.find(message.stream.stream); found != streams.end())
    device = found->second;
  return RefusedKernel(rank, device, message);
}

std::string Judged::RefusedArguments(std::int32_t rank, const wire::PutGraph& message) {
  using Kind = wire::GraphNode::Kind;
  if (message.nodes.size() > kMaxNodes)
    return fmt::format("a graph of {} nodes is not allowed: the limit is {}", message.nodes.size(),
                       kMaxNodes);
  for (const wire::GraphNode& node : message.nodes) {
    std::string why;
    switch (node.kind) {
      case Kind::kEmpty:
        break;
      case Kind::kKernel:
        why = RefusedKernel(rank, node.device, node.launch);
        break;
      case Kind::kCopy:
        if (!plan_.rules.copies) why = "a copy in the graph is not allowed";
        break;
      case Kind::kMemset:
        if (!plan_.rules.copies) why = "a memset in the graph is not allowed";
        break;
      case Kind::kValues:
        if (!plan_.rules.values) why = "a stream memory operation in the graph is not allowed";
        break;
      case Kind::kHost:
        why = "a host function or a copy of host memory in the graph is not allowed";
        break;
      case Kind::kRecord:
      case Kind::kWait:
        // NCCL orders what uses one communicator so.
        if (!plan_.rules.library) why = "an event node in the graph is not allowed";
        break;
    }
    if (!why.empty()) return why;
  }
  return {};
}

std::string Judged::RefusedArguments(std::int32_t rank, const wire::DropGraph& message) {
  for (const node::GraphId graph : Of(rank).delivered)
    if (graph != 0 && graph == message.graph) return "a delivered graph cannot be destroyed";
  return {};
}

std::string Judged::RefusedGiven(std::int32_t rank, std::uint64_t address, std::uint64_t size,
                                 const char* what) {
  for (const auto& [base, given] : Of(rank).given) {
    const std::uint64_t bytes = given.size;
    const bool meets = address < base + bytes && base - address < (size == 0 ? 1 : size);
    const bool within = address >= base && address - base < bytes;
    if (within || (address < base && meets))
      return fmt::format("{} of memory that the problem gives is not allowed", what);
  }
  return {};
}

std::string Judged::RefusedArguments(std::int32_t rank, const wire::Free& message) {
  return RefusedGiven(rank, message.address, 1, "cudaFree");
}
std::string Judged::RefusedArguments(std::int32_t rank, const wire::FreeAsync& message) {
  return RefusedGiven(rank, message.address, 1, "cudaFreeAsync");
}
std::string Judged::RefusedArguments(std::int32_t rank, const wire::FreePinned& message) {
  return RefusedGiven(rank, message.address, 1, "cudaFreeHost");
}
std::string Judged::RefusedArguments(std::int32_t, const wire::RegisterHost& message) {
  return message.file_inode == 0 ? "" : "cudaHostRegister of memory that processes share";
}
std::string Judged::RefusedArguments(std::int32_t, const wire::CreateMemory& message) {
  if (message.place == wire::MemoryPlace::kDevice) return {};
  return "cuMemCreate of host memory is not allowed";
}
std::string Judged::RefusedArguments(std::int32_t rank, const wire::IpcClose& message) {
  return RefusedGiven(rank, message.address, 1, "cudaIpcCloseMemHandle");
}
std::string Judged::RefusedArguments(std::int32_t rank, const wire::UnmapMemory& message) {
  return RefusedGiven(rank, message.address, message.size, "cuMemUnmap");
}
std::string Judged::RefusedArguments(std::int32_t rank, const wire::FreeAddress& message) {
  return RefusedGiven(rank, message.address, message.size, "cuMemAddressFree");
}
std::string Judged::RefusedArguments(std::int32_t rank, const wire::SetMemoryAccess& message) {
  return RefusedGiven(rank, message.address, message.size, "cuMemSetAccess");
}
std::string Judged::RefusedArguments(std::int32_t rank, const wire::RetainMemory& message) {
  return RefusedGiven(rank, message.address, 1, "cuMemRetainAllocationHandle");
}

}  // namespace allranks::server
