// liballranks_nvtx.so: what programs mark by NVTX 3. The headers of NVTX load the library that
// NVTX_INJECTION64_PATH names when the program first calls one of their functions, and let it put
// its own functions in place of theirs; each shared object of the program does so for itself.
//
// Events go to liballranks_host.so (ar_range). Of domains, registered strings and resources only
// the names are kept, for as long as the process lives: programs use handles after destroying them.
// Colours, payloads and categories are not kept.
#define NVTX_NO_IMPL
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "shim/abi.h"

namespace {

using Kind = allranks::wire::RangeEvent::Kind;

// What a domain handle or a handle of a registered string points to.
struct Text {
  std::string text;
};

template <class Handle>
Handle Register(std::string text) {
  return reinterpret_cast<Handle>(new Text{std::move(text)});
}

template <class Handle>
const char* TextOf(Handle handle) {
  return handle == nullptr ? "" : reinterpret_cast<const Text*>(handle)->text.c_str();
}

// As UTF-8. wchar_t holds a code point here; what is none becomes a question mark.
std::string Narrow(const wchar_t* wide) {
  std::string text;
  for (; wide != nullptr && *wide != 0; ++wide) {
    auto code = static_cast<std::uint32_t>(*wide);
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) code = '?';
    if (code < 0x80) {
      text += static_cast<char>(code);
      continue;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr std::uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
    text += static_cast<char>(kLead[more] | code >> (6 * more));
    for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
  }
  return text;
}

std::string MessageOf(std::int32_t type, const nvtxMessageValue_t& message) {
  switch (type) {
    case NVTX_MESSAGE_TYPE_ASCII:
      return message.ascii == nullptr ? "" : message.ascii;
    case NVTX_MESSAGE_TYPE_UNICODE:
      return Narrow(message.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED:
      return TextOf(message.registered);
    default:
      return "";
  }
}

std::string MessageOf(const nvtxEventAttributes_t* event) {
  return event == nullptr ? "" : MessageOf(event->messageType, event->message);
}

void Tell(Kind kind, std::uint64_t id, nvtxDomainHandle_t domain, const std::string& text) {
  ar_range(static_cast<int>(kind), id, TextOf(domain), text.c_str());
}

// --- ranges and marks --------------------------------------------------------------------------

// How many ranges the thread has open in each domain that it has used.
int& DepthOf(nvtxDomainHandle_t domain) {
  static thread_local std::vector<std::pair<nvtxDomainHandle_t, int>> depths;
  for (auto& [known, depth] : depths)
    if (known == domain) return depth;
  return depths.emplace_back(domain, 0).second;
}

int Push(nvtxDomainHandle_t domain, const std::string& text) {
  Tell(Kind::kPush, 0, domain, text);
  return DepthOf(domain)++;
}

int Pop(nvtxDomainHandle_t domain) {
  int& depth = DepthOf(domain);
  if (depth == 0) return NVTX_NO_PUSH_POP_TRACKING;
  Tell(Kind::kPop, 0, domain, "");
  return --depth;
}

nvtxRangeId_t Begin(nvtxDomainHandle_t domain, const std::string& text) {
  static std::atomic<std::uint64_t> last{0};
  const std::uint64_t id = ++last;
  Tell(Kind::kStart, id, domain, text);
  return id;
}

void End(nvtxDomainHandle_t domain, nvtxRangeId_t id) { Tell(Kind::kEnd, id, domain, ""); }

void Mark(nvtxDomainHandle_t domain, const std::string& text) {
  Tell(Kind::kMark, 0, domain, text);
}

std::string Safe(const char* text) { return text == nullptr ? "" : text; }

// --- names -------------------------------------------------------------------------------------

void NameThread(std::uint32_t thread, const std::string& name) {
  Tell(Kind::kNameThread, thread, nullptr, name);
}

// Only libcuda.so.1 knows what a handle stands for; a program with a stream has it.
void NameStream(void* stream, const std::string& name) {
  using NumberOf = unsigned long long (*)(void*);
  const auto number_of = reinterpret_cast<NumberOf>(dlsym(RTLD_DEFAULT, "ar_number_of_stream"));
  const std::uint64_t number = number_of == nullptr ? 0 : number_of(stream);
  if (number != 0) Tell(Kind::kNameStream, number, nullptr, name);
}

nvtxResourceHandle_t CreateResource(nvtxDomainHandle_t, nvtxResourceAttributes_t* resource) {
  if (resource == nullptr) return nullptr;
  const std::string name = MessageOf(resource->messageType, resource->message);
  switch (resource->identifierType) {
    case NVTX_RESOURCE_TYPE_CUDA_STREAM:
    case NVTX_RESOURCE_TYPE_CUDART_STREAM:
      NameStream(const_cast<void*>(resource->identifier.pValue), name);
      break;
    case NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE:
      NameThread(static_cast<std::uint32_t>(resource->identifier.ullValue), name);
      break;
    default:
      break;
  }
  return Register<nvtxResourceHandle_t>(name);
}

// --- the functions of NVTX ---------------------------------------------------------------------

// Puts a function where calls of it are made; a newer or older header may have no place for it.
class Table {
 public:
  Table(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module) {
    if (callbacks.GetModuleFunctionTable(module, &functions_, &size_) == 0) size_ = 0;
  }

  template <class F>
  void Set(unsigned id, F function) {
    if (id < size_ && functions_[id] != nullptr)
      *functions_[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  }

 private:
  NvtxFunctionTable functions_ = nullptr;
  unsigned size_ = 0;
};

void SetCore(Table table) {
  using Event = const nvtxEventAttributes_t*;
  table.Set(NVTX_CBID_CORE_MarkEx, +[](Event event) { Mark(nullptr, MessageOf(event)); });
  table.Set(NVTX_CBID_CORE_MarkA, +[](const char* text) { Mark(nullptr, Safe(text)); });
  table.Set(NVTX_CBID_CORE_MarkW, +[](const wchar_t* text) { Mark(nullptr, Narrow(text)); });
  table.Set(
      NVTX_CBID_CORE_RangeStartEx, +[](Event event) { return Begin(nullptr, MessageOf(event)); });
  table.Set(
      NVTX_CBID_CORE_RangeStartA, +[](const char* text) { return Begin(nullptr, Safe(text)); });
  table.Set(
      NVTX_CBID_CORE_RangeStartW,
      +[](const wchar_t* text) { return Begin(nullptr, Narrow(text)); });
  table.Set(NVTX_CBID_CORE_RangeEnd, +[](nvtxRangeId_t id) { End(nullptr, id); });
  table.Set(
      NVTX_CBID_CORE_RangePushEx, +[](Event event) { return Push(nullptr, MessageOf(event)); });
  table.Set(NVTX_CBID_CORE_RangePushA, +[](const char* text) { return Push(nullptr, Safe(text)); });
  table.Set(
      NVTX_CBID_CORE_RangePushW, +[](const wchar_t* text) { return Push(nullptr, Narrow(text)); });
  table.Set(NVTX_CBID_CORE_RangePop, +[] { return Pop(nullptr); });
  table.Set(
      NVTX_CBID_CORE_NameOsThreadA,
      +[](std::uint32_t id, const char* name) { NameThread(id, Safe(name)); });
  table.Set(
      NVTX_CBID_CORE_NameOsThreadW,
      +[](std::uint32_t id, const wchar_t* name) { NameThread(id, Narrow(name)); });
}

void SetDomains(Table table) {
  using Domain = nvtxDomainHandle_t;
  using Event = const nvtxEventAttributes_t*;
  table.Set(
      NVTX_CBID_CORE2_DomainMarkEx,
      +[](Domain domain, Event event) { Mark(domain, MessageOf(event)); });
  table.Set(
      NVTX_CBID_CORE2_DomainRangeStartEx,
      +[](Domain domain, Event event) { return Begin(domain, MessageOf(event)); });
  table.Set(NVTX_CBID_CORE2_DomainRangeEnd, &End);
  table.Set(
      NVTX_CBID_CORE2_DomainRangePushEx,
      +[](Domain domain, Event event) { return Push(domain, MessageOf(event)); });
  table.Set(NVTX_CBID_CORE2_DomainRangePop, &Pop);
  table.Set(NVTX_CBID_CORE2_DomainResourceCreate, &CreateResource);
  table.Set(
      NVTX_CBID_CORE2_DomainRegisterStringA,
      +[](Domain, const char* text) { return Register<nvtxStringHandle_t>(Safe(text)); });
  table.Set(
      NVTX_CBID_CORE2_DomainRegisterStringW,
      +[](Domain, const wchar_t* text) { return Register<nvtxStringHandle_t>(Narrow(text)); });
  table.Set(
      NVTX_CBID_CORE2_DomainCreateA,
      +[](const char* name) { return Register<Domain>(Safe(name)); });
  table.Set(
      NVTX_CBID_CORE2_DomainCreateW,
      +[](const wchar_t* name) { return Register<Domain>(Narrow(name)); });
}

void SetStreams(Table driver, Table runtime) {
  const auto name = +[](void* stream, const char* text) { NameStream(stream, Safe(text)); };
  const auto wide = +[](void* stream, const wchar_t* text) { NameStream(stream, Narrow(text)); };
  driver.Set(NVTX_CBID_CUDA_NameCuStreamA, name);
  driver.Set(NVTX_CBID_CUDA_NameCuStreamW, wide);
  runtime.Set(NVTX_CBID_CUDART_NameCudaStreamA, name);
  runtime.Set(NVTX_CBID_CUDART_NameCudaStreamW, wide);
}

}  // namespace

ALLRANKS_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof *callbacks) return 0;
  SetCore(Table(*callbacks, NVTX_CB_MODULE_CORE));
  SetDomains(Table(*callbacks, NVTX_CB_MODULE_CORE2));
  SetStreams(Table(*callbacks, NVTX_CB_MODULE_CUDA), Table(*callbacks, NVTX_CB_MODULE_CUDART));
  return 1;
}
