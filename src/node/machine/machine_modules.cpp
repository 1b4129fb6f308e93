// Modules: fat binary → PTX → parsed image → code, lazily; module-scope variables.
#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>

#include "base/check.h"
#include "node/code/lanes.h"
#include "node/decode/decode.h"
#include "node/machine/image_text.h"
#include "node/machine/machine_impl.h"
#include "node/machine/module_index.h"
#include "ptx/fatbin.h"
#include "ptx/link.h"
#include "ptx/outline.h"
#include "ptx/parser.h"

namespace allranks::node {
namespace {

std::uint32_t TargetNumber(std::string_view target) {
  std::uint32_t number = 0;
  for (const char c : target) {
    if (c >= '0' && c <= '9') number = number * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return number;
}

// Images of more PTX have their functions read one by one, as they are needed. Of those whose bytes
// stay, the text is not kept either.
constexpr std::uint64_t kReadAtOnce = std::uint64_t{8} << 20;

// Reads an image's text again, whose bytes stay.
std::function<Result<std::string>()> WholeText(const LinkSetImage& part, std::uint32_t arch) {
  return [part, arch]() -> Result<std::string> {
    auto text = TextOf(part, arch);
    if (!text) return Fail(text.error());
    return std::move(text->text);
  };
}

// The modules of an index; false if it is not one of these images.
bool ReadOutlines(ModuleIndex& index, const std::vector<LinkSetImage>& parts, std::uint32_t arch,
                  std::vector<ptx::LinkInput>* inputs) {
  for (ModuleIndex::Text& text : index.texts) {
    if (text.image >= parts.size()) return false;
    auto module = ptx::ParseOutline(std::move(text.outline), WholeText(parts[text.image], arch));
    if (!module) return false;
    inputs->push_back({std::move(*module), std::move(text.name)});
  }
  return true;
}

}  // namespace

Result<std::shared_ptr<ParsedImage>> MachineImpl::ParseImage(const ModuleImage& image,
                                                             Status* status) {
  *status = Status::kInvalidImage;
  std::erase_if(images_, [](const auto& entry) { return entry.second.expired(); });
  if (const auto it = images_.find(image.key()); it != images_.end()) {
    *status = Status::kSuccess;
    return it->second.lock();
  }
  const auto arch = static_cast<std::uint32_t>(profile().device.compute_major * 10 +
                                               profile().device.compute_minor);
  const auto without_ptx = [&](std::string_view what) {
    *status = Status::kNoBinaryForGpu;
    return Fail(
        "{0} has no PTX that compute_{1} can execute: build with -gencode "
        "arch=compute_{1},code=[sm_{1},compute_{1}]",
        what, arch);
  };
  const std::vector<LinkSetImage>& parts = image.parts();
  if (parts.empty()) return Fail("a damaged set of images");
  if (parts.size() == 1 && IsElf(parts[0])) return without_ptx("the image");
  std::uint64_t text_bytes = 0;
  for (const LinkSetImage& part : parts) {
    const std::uint64_t bytes = TextBytes(part, arch);  // as its header claims
    if (bytes > ptx::kMaxImageBytes - text_bytes)
      return Fail("more than {} bytes of PTX", ptx::kMaxImageBytes);
    text_bytes += bytes;
  }
  auto parsed = std::make_shared<ParsedImage>();
  parsed->trusted = image.trusted();
  parsed->bodies_later = text_bytes > kReadAtOnce;
  // Of a large library an index may be there, or is made.
  const bool outlined = parsed->bodies_later && image.stays();
  const std::string& folder = options_.index_folder;
  const std::string index_name =
      outlined && !folder.empty() ? IndexName(parts, arch) : std::string();
  std::optional<ModuleIndex> known;
  if (!index_name.empty()) known = LoadIndex(folder, index_name);
  ModuleIndex made;
  std::vector<ptx::LinkInput> inputs;
  if (!known || !ReadOutlines(*known, parts, arch, &inputs)) {
    known.reset();
    inputs.clear();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto text = TextOf(parts[i], arch);
      if (!text) return Fail(text.error());
      if (text->text.empty()) continue;
      auto module = Result<ptx::Module>();
      if (!outlined) {
        module = ptx::Parse(std::move(text->text),
                            parsed->bodies_later ? ptx::Bodies::kLater : ptx::Bodies::kNow);
      } else if (auto outline = ptx::MakeOutline(std::move(text->text))) {
        made.texts.push_back({i, text->name, *outline});
        module = ptx::ParseOutline(std::move(*outline), WholeText(parts[i], arch));
      } else {
        module = Fail(outline.error());
      }
      if (!module) {
        *status = Status::kInvalidPtx;
        return Fail("{}{}{}", text->name, text->name.empty() ? "" : ": ", module.error().message);
      }
      inputs.push_back({std::move(*module), std::move(text->name)});
    }
  }
  if (inputs.empty()) return without_ptx("the fat binary");
  // A single module, too: what it lacks is an error when it is loaded, not when it is called. What
  // a body lacks that is read later is one when it is executed.
  auto module = ptx::Link(std::move(inputs), [](std::string_view name) {
    return BuiltinOf(name) != CallOp::Builtin::kNone;
  });
  if (!module) {
    *status = parts.size() > 1 ? Status::kInvalidImage : Status::kInvalidPtx;
    return Fail(module.error());
  }
  parsed->module = std::move(*module);
  parsed->resources =
      known ? std::move(known->resources) : ResourcesOf(parts, arch, parsed->module);
  if (!known && !index_name.empty()) {
    made.resources = parsed->resources;
    StoreIndex(folder, index_name, made);
  }
  if (const std::uint32_t target = TargetNumber(parsed->module.target); target > arch)
    sim_.stats.ptx_above = std::max(sim_.stats.ptx_above, target);
  images_.emplace(image.key(), parsed);
  *status = Status::kSuccess;
  return parsed;
}

Result<ModuleId> MachineImpl::LoadModule(ProcessId id, int device, const ModuleImage& image,
                                         Status* status) {
  *status = Status::kInvalidContext;
  const Process* process = Find(id);
  if (process == nullptr || DeviceOf(*process, device) == nullptr) return Fail("no such device");
  auto parsed = ParseImage(image, status);
  if (!parsed) return Fail(parsed.error());
  LoadedModule module;
  module.process = id;
  module.device = sim_.NumberOf(*process, device);
  module.image = std::move(*parsed);
  *status = PlaceGlobals(module);
  if (*status != Status::kSuccess) return Fail("no memory for the module's variables");
  const ModuleId number = next_id_++;
  modules_.emplace(number, std::move(module));
  return number;
}

Status MachineImpl::PlaceGlobals(LoadedModule& module) {
  Process& process = sim_.ProcessOf(module.process);
  const int visible = sim_.OrdinalOf(process, module.device);
  for (const ptx::Variable& variable : module.image->module.variables) {
    const bool constant = variable.space == ptx::Space::kConst;
    if ((variable.space != ptx::Space::kGlobal && !constant) || variable.is_extern) continue;
    if (variable.managed) {
      ManagedGlobals& managed = managed_globals_[{module.process, module.image.get()}];
      if (const auto known = managed.globals.find(std::string(variable.name));
          known != managed.globals.end()) {
        module.globals[known->first] = known->second;
        continue;
      }
    }
    const Object::Kind kind = variable.managed ? Object::Kind::kManaged
                              : constant       ? Object::Kind::kConst
                                               : Object::Kind::kGlobal;
    Mapping mapping;
    const Status status =
        variable.managed && TooManyPinned(process)
            ? Status::kOutOfMemory
            : MapNew(process, visible, kind, std::max<std::uint64_t>(variable.size, 1),
                     std::string(variable.name), &mapping);
    if (status != Status::kSuccess) {
      UnmapGlobals(process, module);
      return status;
    }
    std::memcpy(mapping.object->data, variable.init.data(),
                std::min<std::uint64_t>(variable.init.size(), variable.size));
    GlobalInfo& info = module.globals[std::string(variable.name)];
    info.address = mapping.base;
    info.size = variable.size;
    if (!variable.managed) continue;
    info.managed = true;
    info.mapped = mapping.object->mapped;
    info.fd = mapping.object->fd;
    ManagedGlobals& managed = managed_globals_[{module.process, module.image.get()}];
    managed.image = module.image;
    managed.globals[std::string(variable.name)] = info;
  }
  for (const ptx::Variable& variable : module.image->module.variables) {
    const auto self = module.globals.find(std::string(variable.name));
    if (self == module.globals.end()) continue;
    const Mapping* mapping = process.table.Find(self->second.address);
    for (const ptx::SymbolRef& ref : variable.refs) {
      const auto target = module.globals.find(std::string(ref.symbol));
      if (ref.at + ref.size > variable.size || ref.size > 8) continue;
      std::uint64_t base = 0;
      if (target != module.globals.end()) {
        base = target->second.address;
      } else if (const auto function = FunctionAddress(module.image->module, ref.symbol)) {
        base = *function;
      } else {
        continue;
      }
      const std::uint64_t value = (base + static_cast<std::uint64_t>(ref.addend)) >> ref.shift;
      std::memcpy(mapping->object->data + ref.at, &value, ref.size);
    }
  }
  return Status::kSuccess;
}

bool MachineImpl::IsManagedGlobal(ProcessId process, Address address) const {
  for (const auto& [key, managed] : managed_globals_) {
    if (key.first != process) continue;
    for (const auto& [name, global] : managed.globals) {
      if (global.address == address) return true;
    }
  }
  return false;
}

void MachineImpl::UnmapGlobals(Process& process, const LoadedModule& module) {
  for (const auto& [name, global] : module.globals) {
    if (!global.managed) Unmap(process, global.address);
  }
}

Status MachineImpl::UnloadModule(ProcessId id, ModuleId number) {
  const auto it = modules_.find(number);
  if (it == modules_.end() || it->second.process != id) return Status::kInvalidHandle;
  Process& process = sim_.ProcessOf(id);
  UnmapGlobals(process, it->second);
  for (const auto& [name, kernel] : it->second.kernels) kernels_.erase(kernel);
  modules_.erase(it);
  return Status::kSuccess;
}

Status MachineImpl::GetKernel(ModuleId number, const std::string& name, KernelInfo* info) {
  const auto it = modules_.find(number);
  if (it == modules_.end()) return Status::kInvalidHandle;
  LoadedModule& module = it->second;
  const ptx::Module& ptx = module.image->module;
  const ptx::Function* function = ptx.FindFunction(name);
  if (function == nullptr || !function->is_entry || !function->has_body) return Status::kNotFound;
  KernelId& id = module.kernels[name];
  if (id == 0) {
    id = next_id_++;
    Kernel kernel;
    kernel.module = number;
    kernel.name = name;
    kernel.dynamic_shared_limit = static_cast<std::uint32_t>(profile().sm.shared_default_bytes);
    kernels_.emplace(id, std::move(kernel));
  }
  info->id = id;
  info->name = name;
  LayoutParams(*function, &info->param_offsets, &info->param_sizes, &info->param_bytes);
  const auto resources = module.image->resources.find(name);
  const bool known = resources != module.image->resources.end();
  if (known && module.image->bodies_later) {
    // What the real compiler found is enough, and many kernels of such a module are only asked for.
    info->registers =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(resources->second.registers, 255));
    info->max_threads = MaxThreads(*function);
    const Status status = StaticShared(kernels_.at(id), &info->static_shared);
    if (status != Status::kSuccess) return status;
  } else {
    const Status status = DecodeKernel(kernels_.at(id));
    if (status != Status::kSuccess) return status;
    const Code& code = *kernels_.at(id).code;
    info->registers = code.registers;
    info->static_shared = code.counted_shared;
    info->max_threads = code.max_threads;
    info->local = code.local_bytes;
  }
  if (known) {
    info->local = static_cast<std::uint32_t>(resources->second.local_bytes);
    info->const_bytes = 0;
  }
  info->ptx_version = TargetNumber(ptx.target);
  info->binary_version = static_cast<std::uint32_t>(profile().device.compute_major * 10 +
                                                    profile().device.compute_minor);
  return Status::kSuccess;
}

Status MachineImpl::DecodeKernel(Kernel& kernel) {
  if (kernel.code != nullptr) return Status::kSuccess;
  const LoadedModule& module = modules_.at(kernel.module);
  ParsedImage& image = *module.image;
  const auto found = image.resources.find(kernel.name);
  const ptx::KernelResources* resources = found == image.resources.end() ? nullptr : &found->second;
  const auto refuse = [&](const Error& error) {
    faults_.push_back({module.process, module.device, Status::kInvalidPtx, error.message});
    return Status::kInvalidPtx;
  };
  if (image.bodies_later) {
    std::unique_ptr<GrowingCode>& growing = image.growing[kernel.name];
    if (growing == nullptr) {
      auto made = GrowingCode::Make(&image.module, kernel.name, resources);
      if (!made) return refuse(made.error());
      growing = std::move(*made);
    }
    // Whoever has the code has the image, which it grows from.
    kernel.code = std::shared_ptr<const Code>(module.image, growing->code().get());
    return Status::kSuccess;
  }
  std::shared_ptr<const Code>& cached = image.code[kernel.name];
  if (cached == nullptr) {
    auto code = Decode(image.module, *image.module.FindFunction(kernel.name), resources);
    if (!code) return refuse(code.error());
    cached = std::move(*code);
  }
  kernel.code = cached;
  return Status::kSuccess;
}

Status MachineImpl::StaticShared(Kernel& kernel, std::uint32_t* bytes) {
  const ParsedImage& image = *modules_.at(kernel.module).image;
  const auto resources = image.resources.find(kernel.name);
  if (kernel.code == nullptr && image.bodies_later && resources != image.resources.end()) {
    *bytes = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(resources->second.shared_bytes, UINT32_MAX));
    return Status::kSuccess;
  }
  const Status status = DecodeKernel(kernel);
  if (status == Status::kSuccess) *bytes = kernel.code->counted_shared;
  return status;
}

Result<void> MachineImpl::GrowCode(struct Launch& launch, std::size_t function) {
  if (auto grown = launch.code->growing->Grow(function); !grown) return grown;
  for (Device& device : sim_.devices)
    for (struct Launch& other : device.launches)
      if (other.code == launch.code) ExtendConstants(other);
  return {};
}

// Gives a launch the constants that its code has got since the launch was made. Functions have no
// parameters of the launch.
void MachineImpl::ExtendConstants(struct Launch& launch) const {
  const Code& code = *launch.code;
  const std::size_t before = launch.constants.slots();
  if (code.constants.slots() <= before) return;
  launch.constants.Resize(code.constants.slots());
  for (std::size_t slot = before; slot < code.constants.slots(); ++slot)
    std::memcpy(launch.constants.at(slot), code.constants.data() + slot * kSlotBytes, kSlotBytes);
  const auto kernel = kernels_.find(launch.request.kernel);
  const auto module =
      kernel == kernels_.end() ? modules_.end() : modules_.find(kernel->second.module);
  for (const ConstantRef& ref : code.refs) {
    if (ref.slot < before) continue;
    if (ref.source == ConstantRef::Source::kSymbol && module != modules_.end()) {
      const auto global = module->second.globals.find(ref.symbol);
      if (global == module->second.globals.end()) continue;
      Broadcast(launch.constants.at(ref.slot),
                global->second.address + static_cast<std::uint64_t>(ref.addend), ref.bytes);
    }
  }
  FillLaunchConstants(launch, before);
}

Status MachineImpl::GetGlobal(ModuleId number, const std::string& name, GlobalInfo* info) {
  const auto it = modules_.find(number);
  if (it == modules_.end()) return Status::kInvalidHandle;
  const auto global = it->second.globals.find(name);
  if (global == it->second.globals.end()) return Status::kNotFound;
  *info = global->second;
  return Status::kSuccess;
}

Status MachineImpl::SetMaxDynamicShared(KernelId id, std::uint32_t bytes) {
  const auto it = kernels_.find(id);
  if (it == kernels_.end()) return Status::kInvalidHandle;
  std::uint32_t fixed = 0;
  const Status status = StaticShared(it->second, &fixed);
  if (status != Status::kSuccess) return status;
  if (std::uint64_t{bytes} + fixed >
      static_cast<std::uint64_t>(profile().sm.shared_per_cta_bytes)) {
    return Status::kInvalidValue;
  }
  it->second.dynamic_shared_limit = bytes + fixed;
  return Status::kSuccess;
}

Status MachineImpl::Occupancy(KernelId id, std::uint32_t threads, std::uint32_t dynamic_shared,
                              int* ctas_per_sm) {
  const auto it = kernels_.find(id);
  if (it == kernels_.end()) return Status::kInvalidHandle;
  const Status status = DecodeKernel(it->second);
  if (status != Status::kSuccess) return status;
  if (threads == 0) return Status::kInvalidValue;
  *ctas_per_sm = threads > it->second.code->max_threads
                     ? 0
                     : sim_.residency.CtasPerSm(*it->second.code, threads, dynamic_shared);
  return Status::kSuccess;
}

Status MachineImpl::ClusterOccupancy(KernelId id, std::uint32_t threads,
                                     std::uint32_t dynamic_shared, std::uint32_t cluster,
                                     int* clusters) {
  int ctas = 0;
  const Status status = Occupancy(id, threads, dynamic_shared, &ctas);
  if (status != Status::kSuccess) return status;
  if (cluster == 0 || cluster > 1024) return Status::kInvalidValue;
  *clusters = ctas == 0 ? 0
                        : sim_.residency.MaxActiveClusters(*kernels_.at(id).code, threads,
                                                           dynamic_shared, Dim3{cluster, 1, 1});
  return Status::kSuccess;
}

Status MachineImpl::ListKernels(ModuleId number, std::vector<std::string>* names) {
  const auto it = modules_.find(number);
  if (it == modules_.end()) return Status::kInvalidHandle;
  for (const ptx::Function& function : it->second.image->module.functions) {
    if (function.is_entry && function.has_body) names->emplace_back(function.name);
  }
  return Status::kSuccess;
}

Bank MachineImpl::BuildConstants(const Code& code, const LoadedModule& module,
                                 const std::vector<std::byte>& params) const {
  Bank bank = code.constants;
  for (const ConstantRef& ref : code.refs) {
    std::uint64_t value = 0;
    if (ref.source == ConstantRef::Source::kSpecial) continue;  // at the start (residency.cpp)
    if (ref.source == ConstantRef::Source::kParam) {
      const auto size = static_cast<std::size_t>(ptx::SizeOf(ref.type));
      if (ref.offset + size > params.size()) continue;
      std::memcpy(&value, params.data() + ref.offset, size);
      const bool is_signed =
          ref.type == ptx::Type::kS8 || ref.type == ptx::Type::kS16 || ref.type == ptx::Type::kS32;
      if (is_signed) {
        const int shift = 64 - static_cast<int>(size) * 8;
        value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << shift) >> shift);
      }
    } else if (const auto global = module.globals.find(ref.symbol);
               global != module.globals.end()) {
      value = global->second.address + static_cast<std::uint64_t>(ref.addend);
    }
    Broadcast(bank.at(ref.slot), value, ref.bytes);
  }
  return bank;
}

}  // namespace allranks::node
