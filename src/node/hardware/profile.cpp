// Reading profiles/*.toml into a Profile. Every key is read by exactly one line of ParseProfile
// below; Section notes which keys were asked for, so that what is left over can be rejected, and
// gathers all faults of a file, so that its author sees them at once.
#include "node/hardware/profile.h"

#include <toml++/toml.h>
#include <cmath>
#include <concepts>
#include <limits>
#include <numeric>
#include <set>
#include <sstream>

#include "base/words.h"
#include "node/hardware/profile_file.h"

namespace allranks::node {
namespace {

class Faults {
 public:
  explicit Faults(std::string origin) : origin_(std::move(origin)) {}

  template <class... Args>
  void Add(const toml::node* where, fmt::format_string<Args...> format, Args&&... args) {
    if (!text_.empty()) text_ += '\n';
    text_ += origin_;
    if (where != nullptr) text_ += fmt::format(":{}", where->source().begin.line);
    text_ += ": " + fmt::format(format, std::forward<Args>(args)...);
  }

  bool Any() const { return !text_.empty(); }
  const std::string& Text() const { return text_; }

 private:
  std::string origin_;
  std::string text_;
};

constexpr double kNoLimit = 9e15;

std::string Expectation(const char* kind, double low, double high) {
  if (high >= kNoLimit) return fmt::format("{} of at least {}", kind, low);
  return fmt::format("{} from {} to {}", kind, low, high);
}

class Section {
 public:
  // Without a table (it is missing, which has been noted) nothing is read and nothing more is
  // noted.
  Section(const toml::table* table, std::string name, Faults* faults)
      : table_(table), name_(std::move(name)), faults_(faults) {}

  template <std::integral T>
  void Int(const char* key, T* out, double low = 1, double high = kNoLimit) {
    high = std::min(high, static_cast<double>(std::numeric_limits<T>::max()));
    const std::string expected = Expectation("an integer", low, high);
    const toml::node* node = Find(key, expected);
    if (node == nullptr) return;
    const auto* value = node->as_integer();
    if (value == nullptr || !Within(static_cast<double>(value->get()), low, high)) {
      return Wrong(node, key, expected);
    }
    *out = static_cast<T>(value->get());
  }

  void Number(const char* key, double* out, double high = kNoLimit) {
    const std::string expected =
        high >= kNoLimit ? "a number above 0" : fmt::format("a number above 0, up to {}", high);
    const toml::node* node = Find(key, expected);
    if (node == nullptr) return;
    const std::optional<double> value = node->value<double>();
    if (!value || !node->is_number() || !(*value > 0) || !(*value <= high)) {
      return Wrong(node, key, expected);
    }
    *out = *value;
  }

  // Nanoseconds, with a fraction if need be, become Time.
  void Nanoseconds(const char* key, Time* out) {
    const std::string expected = "nanoseconds, from 0 to 1e9";
    const toml::node* node = Find(key, expected);
    if (node == nullptr) return;
    const std::optional<double> value = node->value<double>();
    if (!value || !node->is_number() || !Within(*value, 0, 1e9)) return Wrong(node, key, expected);
    *out = std::llround(*value * 1000);
  }

  void NanosecondList(const char* key, std::vector<Time>* out, std::int64_t count) {
    const std::string expected =
        fmt::format("a list of {} numbers (one per device of a host) from -1e9 to 1e9", count);
    const toml::node* node = Find(key, expected);
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list == nullptr || static_cast<std::int64_t>(list->size()) != count) {
      return Wrong(node, key, expected);
    }
    for (const toml::node& element : *list) {
      const std::optional<double> value = element.value<double>();
      if (!value || !element.is_number() || !Within(*value, -1e9, 1e9)) {
        return Wrong(&element, key, expected);
      }
      out->push_back(std::llround(*value * 1000));
    }
  }

  void Counts(const char* key, std::vector<std::int32_t>* out, std::int64_t count) {
    const std::string expected = fmt::format("a list of {} integers from 1 to 4096", count);
    const toml::node* node = Find(key, expected);
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list == nullptr || static_cast<std::int64_t>(list->size()) != count) {
      return Wrong(node, key, expected);
    }
    for (const toml::node& element : *list) {
      const auto* value = element.as_integer();
      if (value == nullptr || value->get() < 1 || value->get() > 4096) {
        return Wrong(&element, key, expected);
      }
      out->push_back(static_cast<std::int32_t>(value->get()));
    }
  }

  void Text(const char* key, std::string* out) {
    const std::string expected = "a string that is not empty";
    const toml::node* node = Find(key, expected);
    if (node == nullptr) return;
    const auto* value = node->as_string();
    if (value == nullptr || value->get().empty()) return Wrong(node, key, expected);
    *out = value->get();
  }

  void Flag(const char* key, bool* out) {
    const std::string expected = "true or false";
    const toml::node* node = Find(key, expected);
    if (node == nullptr) return;
    const auto* value = node->as_boolean();
    if (value == nullptr) return Wrong(node, key, expected);
    *out = value->get();
  }

  void ComputeCapability(const char* key, std::int32_t* major, std::int32_t* minor) {
    const std::string expected = "a string of the form \"9.0\"";
    const toml::node* node = Find(key, expected);
    if (node == nullptr) return;
    const auto* value = node->as_string();
    const std::string text = value == nullptr ? "" : value->get();
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    const std::size_t dot = text.find('.');
    if (dot == std::string::npos || dot < 1 || dot > 2 || text.size() != dot + 2 ||
        !digit(text[0]) || !digit(text[dot - 1]) || !digit(text[dot + 1])) {
      return Wrong(node, key, expected);
    }
    *major = std::stoi(text.substr(0, dot));
    *minor = text[dot + 1] - '0';
  }

  void Texts(const char* key, std::vector<std::string>* out) {
    const std::string expected = "a list of strings";
    const toml::node* node = Find(key, expected);
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list == nullptr || !ReadTexts(*list, out)) Wrong(node, key, expected);
  }

  // Lists of `count` texts each.
  template <class F>
  void TextLists(const char* key, std::size_t count, F add) {
    const std::string expected = fmt::format("a list of lists of {} strings", count);
    const toml::node* node = Find(key, expected);
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list == nullptr) return Wrong(node, key, expected);
    for (const toml::node& element : *list) {
      std::vector<std::string> texts;
      if (!element.is_array() || !ReadTexts(*element.as_array(), &texts) || texts.size() != count) {
        return Wrong(&element, key, expected);
      }
      add(texts);
    }
  }

  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    if (table_ == nullptr) return keys;
    for (const auto& [key, node] : *table_) keys.emplace_back(key.str());
    return keys;
  }

  // A table below this one, or null.
  const toml::table* Table(const char* key) {
    const toml::node* node = Find(key, "a section");
    if (node == nullptr) return nullptr;
    if (!node->is_table()) Wrong(node, key, "a section");
    return node->as_table();
  }

  // Call after every key has been asked for.
  void RejectOthers() {
    if (table_ == nullptr) return;
    for (const auto& [key, node] : *table_) {
      if (asked_.contains(std::string(key.str()))) continue;
      const std::vector<std::string> known(asked_.begin(), asked_.end());
      const std::string hint = DidYouMean(key.str(), known);
      faults_->Add(&node, "{} is not a key of this section{}", Path(key.str()),
                   hint.empty() ? "; it has " + allranks::Join(known) : hint);
    }
  }

 private:
  static bool ReadTexts(const toml::array& list, std::vector<std::string>* out) {
    for (const toml::node& element : list) {
      if (!element.is_string()) return false;
      out->push_back(element.as_string()->get());
    }
    return true;
  }

  static bool Within(double value, double low, double high) {
    return value >= low && value <= high;
  }

  std::string Path(std::string_view key) const {
    return name_.empty() ? std::string(key) : fmt::format("[{}] {}", name_, key);
  }

  const toml::node* Find(const char* key, const std::string& expected) {
    if (table_ == nullptr) return nullptr;
    asked_.insert(key);
    const toml::node* node = table_->get(key);
    if (node == nullptr) faults_->Add(nullptr, "{} is missing: expected {}", Path(key), expected);
    return node;
  }

  void Wrong(const toml::node* node, std::string_view key, const std::string& expected) {
    std::ostringstream value;
    node->visit([&](const auto& concrete) {
      if constexpr (toml::is_table<decltype(concrete)>) {
        value << "a section";
      } else {
        value << concrete;
      }
    });
    faults_->Add(node, "{} is {}: expected {}", Path(key), value.str(), expected);
  }

  const toml::table* table_;
  std::string name_;
  Faults* faults_;
  std::set<std::string> asked_;
};

void ReadMachineAndDevice(Section& root, Faults* faults, Profile* p) {
  Section machine(root.Table("machine"), "machine", faults);
  machine.Int("hosts", &p->machine.hosts, 1, 128);
  machine.Int("devices_per_host", &p->machine.devices_per_host, 1, 128);
  machine.RejectOthers();

  Section device(root.Table("device"), "device", faults);
  device.Text("name", &p->device.name);
  device.ComputeCapability("compute_capability", &p->device.compute_major,
                           &p->device.compute_minor);
  device.Int("clock_mhz", &p->device.clock_mhz, 1, 100'000);
  device.Int("memory_clock_mhz", &p->device.memory_clock_mhz, 1, 100'000);
  device.Int("memory_bus_bits", &p->device.memory_bus_bits, 1, 1 << 20);
  device.Int("sms", &p->device.sms, 1, 4096);
  device.Int("gpcs", &p->device.gpcs, 1, 4096);
  device.Counts("gpc_sms", &p->device.gpc_sms, p->device.gpcs);
  device.Int("memory_bytes", &p->device.memory_bytes, 1 << 20, double(1LL << 44));
  device.Int("l2_bytes", &p->device.l2_bytes, 1 << 10, double(1LL << 40));
  device.Int("total_const_mem", &p->device.total_const_mem);
  device.Int("max_threads_per_cta", &p->device.max_threads_per_cta, 32, 1024);
  device.Int("max_grid_x", &p->device.max_grid_x, 1, 2147483647);
  device.Int("max_grid_yz", &p->device.max_grid_yz, 1, 65535);
  device.Int("max_cta_xy", &p->device.max_cta_xy, 1, 1024);
  device.Int("max_cta_z", &p->device.max_cta_z, 1, 1024);
  device.Int("max_cluster_size", &p->device.max_cluster_size, 1, 16);
  device.Int("max_cluster_size_opt_in", &p->device.max_cluster_size_opt_in, 1, 16);
  device.Flag("vector16_atomic", &p->device.vector16_atomic);
  device.RejectOthers();
}

void ReadSm(Section& root, Faults* faults, Profile* p) {
  Section sm(root.Table("sm"), "sm", faults);
  sm.Int("max_threads", &p->sm.max_threads, 32, 1 << 16);
  sm.Int("max_warps", &p->sm.max_warps, 1, 1 << 11);
  sm.Int("max_ctas", &p->sm.max_ctas, 1, 1 << 11);
  sm.Int("registers", &p->sm.registers);
  sm.Int("register_granularity", &p->sm.register_granularity, 1, 1 << 16);
  sm.Int("max_registers_per_thread", &p->sm.max_registers_per_thread, 1, 1 << 16);
  sm.Int("shared_bytes", &p->sm.shared_bytes);
  sm.Int("shared_per_cta_bytes", &p->sm.shared_per_cta_bytes);
  sm.Int("shared_default_bytes", &p->sm.shared_default_bytes);
  sm.Int("shared_reserved_per_cta", &p->sm.shared_reserved_per_cta, 0);
  sm.Int("shared_granularity", &p->sm.shared_granularity, 1, 1 << 16);
  sm.Int("schedulers", &p->sm.schedulers, 1, 64);
  sm.Int("issue_per_cycle", &p->sm.issue_per_cycle, 1, 64);
  sm.RejectOthers();

  Section latency(root.Table("latency"), "latency", faults);
  constexpr double kMost = 1e6;
  latency.Int("alu", &p->latency.alu, 1, kMost);
  latency.Int("fp64", &p->latency.fp64, 1, kMost);
  latency.Int("sfu", &p->latency.sfu, 1, kMost);
  latency.Int("shared", &p->latency.shared, 1, kMost);
  latency.Int("constant", &p->latency.constant, 1, kMost);
  latency.Int("l1", &p->latency.l1, 1, kMost);
  latency.Int("l2", &p->latency.l2, 1, kMost);
  latency.Int("hbm", &p->latency.hbm, 1, kMost);
  latency.Int("atomic", &p->latency.atomic, 1, kMost);
  latency.Int("barrier", &p->latency.barrier, 1, kMost);
  latency.Int("fence_cta", &p->latency.fence_cta, 1, kMost);
  latency.Int("fence_gpu", &p->latency.fence_gpu, 1, kMost);
  latency.Int("fence_sys", &p->latency.fence_sys, 1, kMost);
  latency.Int("cluster", &p->latency.cluster, 1, kMost);
  latency.RejectOthers();
}

void ReadTopology(Section& root, Faults* faults, Profile* p) {
  Section links(root.Table("links"), "links", faults);
  for (const std::string& name : links.Keys()) {
    LinkKind kind;
    kind.name = name;
    Section link(links.Table(name.c_str()), "links." + name, faults);
    link.Number("gbs", &kind.gbs);
    link.Number("efficiency", &kind.efficiency, 1);
    link.Nanoseconds("latency_ns", &kind.latency);
    link.Int("packet_bytes", &kind.packet_bytes, 32, 1 << 16);
    link.Int("store_packet_bytes", &kind.store_packet_bytes, 32, 1 << 16);
    link.Int("engine_packet_bytes", &kind.engine_packet_bytes, 32, 1 << 16);
    link.Int("write_bytes", &kind.write_bytes, 0, 1 << 16);
    link.Int("answer_bytes", &kind.answer_bytes, 0, 1 << 16);
    link.Int("request_bytes", &kind.request_bytes, 0, 1 << 16);
    link.RejectOthers();
    p->topology.kinds.push_back(std::move(kind));
  }

  Section multicast(root.Table("multicast"), "multicast", faults);
  multicast.Flag("supported", &p->multicast.supported);
  multicast.Number("efficiency", &p->multicast.efficiency, 1);
  multicast.Nanoseconds("reduce_ns", &p->multicast.reduce);
  multicast.RejectOthers();

  TopologyText text;
  Section topology(root.Table("topology"), "topology", faults);
  static constexpr const char* kKeys[] = {"",     "cpus",    "nvswitches", "pcie_switches",
                                          "nics", "networks"};
  for (std::size_t kind = 1; kind < 6; ++kind) topology.Texts(kKeys[kind], &text.names[kind]);
  topology.Texts("machine_wide", &text.machine_wide);
  topology.TextLists("wires", 3, [&](const std::vector<std::string>& wire) {
    text.wires.push_back({wire[0], wire[1], wire[2]});
  });
  topology.TextLists("meshes", 2, [&](const std::vector<std::string>& mesh) {
    text.meshes.push_back({mesh[0], "", mesh[1]});
  });
  topology.RejectOthers();
  if (faults->Any()) return;
  const auto built = BuildTopology(text, static_cast<int>(p->machine.hosts),
                                   static_cast<int>(p->machine.devices_per_host), &p->topology);
  if (!built) faults->Add(root.Table("topology"), "[topology] {}", built.error().message);
}

void ReadLinks(Section& root, Faults* faults, Profile* p) {
  Section bandwidth(root.Table("bandwidth"), "bandwidth", faults);
  bandwidth.Number("hbm_gbs", &p->bandwidth.hbm_gbs);
  bandwidth.Number("hbm_efficiency", &p->bandwidth.hbm_efficiency, 1);
  bandwidth.Number("l2_gbs", &p->bandwidth.l2_gbs);
  bandwidth.Int("l1_bytes_per_cycle", &p->bandwidth.l1_bytes_per_cycle, 1, 1 << 16);
  bandwidth.Int("shared_bytes_per_cycle", &p->bandwidth.shared_bytes_per_cycle, 1, 1 << 16);
  bandwidth.Int("l2_sector_bytes", &p->bandwidth.l2_sector_bytes, 1, 1 << 12);
  bandwidth.Int("line_bytes", &p->bandwidth.line_bytes, 1, 1 << 12);
  bandwidth.Number("sm_l2_gbs", &p->bandwidth.sm_l2_gbs);
  bandwidth.RejectOthers();

  Section copy(root.Table("copy_engine"), "copy_engine", faults);
  copy.Int("count", &p->copy_engine.count, 1, 64);
  copy.Nanoseconds("startup_ns", &p->copy_engine.startup);
  copy.Number("gbs", &p->copy_engine.gbs);
  copy.RejectOthers();
}

void ReadCosts(Section& root, Faults* faults, Profile* p) {
  Section launch(root.Table("launch"), "launch", faults);
  launch.Nanoseconds("kernel_ns", &p->launch.kernel);
  launch.Nanoseconds("between_ns", &p->launch.between);
  launch.Nanoseconds("host_call_ns", &p->launch.host_call);
  launch.Nanoseconds("api_call_ns", &p->launch.api_call);
  launch.Nanoseconds("sync_ns", &p->launch.sync);
  launch.Nanoseconds("event_ns", &p->launch.event);
  launch.Nanoseconds("cta_ns", &p->launch.cta);
  launch.Nanoseconds("host_function_ns", &p->launch.host_function);
  launch.Nanoseconds("graph_ns", &p->launch.graph);
  launch.Nanoseconds("graph_call_ns", &p->launch.graph_call);
  launch.RejectOthers();

  Section host(root.Table("host"), "host", faults);
  host.Nanoseconds("poll_ns", &p->host.poll);
  host.RejectOthers();

  Section time(root.Table("time"), "time", faults);
  time.Int("quantum_cycles", &p->time.quantum_cycles, 1, 1e6);
  time.Int("bucket_cycles", &p->time.bucket_cycles, 1, 1e6);
  time.Nanoseconds("globaltimer_resolution_ns", &p->time.globaltimer_resolution);
  time.NanosecondList("globaltimer_skew_ns", &p->time.globaltimer_skew,
                      p->machine.devices_per_host);
  time.RejectOthers();
}

// What no single key can violate. Only asked when every key is right by itself.
void CheckTogether(Faults* faults, const Profile& p) {
  if (p.DeviceCount() > 128) {
    faults->Add(nullptr, "[machine] has {} devices: expected at most 128", p.DeviceCount());
  }
  if (p.validated != "fitted" && p.validated != "rough" && p.validated != "untested") {
    faults->Add(nullptr, "validated is \"{}\": expected fitted, rough or untested", p.validated);
  }
  const std::int64_t sms =
      std::accumulate(p.device.gpc_sms.begin(), p.device.gpc_sms.end(), std::int64_t{0});
  if (sms != p.device.sms) {
    faults->Add(nullptr, "[device] gpc_sms has {} SMs together: expected sms = {}", sms,
                p.device.sms);
  }
  if (p.sm.max_warps * 32 < p.sm.max_threads) {
    faults->Add(nullptr, "[sm] max_warps is {}: expected at least max_threads / 32 = {}",
                p.sm.max_warps, p.sm.max_threads / 32);
  }
  if (p.sm.shared_per_cta_bytes > p.sm.shared_bytes - p.sm.shared_reserved_per_cta) {
    faults->Add(nullptr,
                "[sm] shared_per_cta_bytes is {}: expected at most shared_bytes - "
                "shared_reserved_per_cta = {}",
                p.sm.shared_per_cta_bytes, p.sm.shared_bytes - p.sm.shared_reserved_per_cta);
  }
  if (p.sm.shared_default_bytes > p.sm.shared_per_cta_bytes) {
    faults->Add(nullptr,
                "[sm] shared_default_bytes is {}: expected at most shared_per_cta_bytes = {}",
                p.sm.shared_default_bytes, p.sm.shared_per_cta_bytes);
  }
  if (p.bandwidth.line_bytes % p.bandwidth.l2_sector_bytes != 0) {
    faults->Add(nullptr,
                "[bandwidth] line_bytes is {}: expected a multiple of l2_sector_bytes = {}",
                p.bandwidth.line_bytes, p.bandwidth.l2_sector_bytes);
  }
  if (p.time.globaltimer_resolution <= 0) {
    faults->Add(nullptr, "[time] globaltimer_resolution_ns is 0: expected more than 0");
  }
  if (p.host.poll <= 0) faults->Add(nullptr, "[host] poll_ns is 0: expected more than 0");
}

Result<Profile> ReadProfile(const toml::table& file, const std::string& origin) {
  Faults faults(origin);
  Profile profile;
  Section root(&file, "", &faults);
  root.Int("version", &profile.version);
  if (!faults.Any() && profile.version != Profile::kVersion) {
    return Fail("{}: version is {}: this program reads version {}", origin, profile.version,
                Profile::kVersion);
  }
  root.Text("name", &profile.name);
  root.Text("what", &profile.what);
  root.Text("validated", &profile.validated);
  ReadMachineAndDevice(root, &faults, &profile);
  ReadSm(root, &faults, &profile);
  ReadLinks(root, &faults, &profile);
  ReadTopology(root, &faults, &profile);
  ReadCosts(root, &faults, &profile);
  root.RejectOthers();
  if (!faults.Any()) CheckTogether(&faults, profile);
  if (faults.Any()) return Fail(Error{faults.Text()});
  return profile;
}

}  // namespace

Result<Profile> ParseProfile(std::string_view text, const std::string& origin) {
  auto file = ParseToml(text, origin);
  if (!file) return Fail(file.error());
  return ReadProfile(*file, origin);
}

Result<Profile> LoadProfile(const std::string& path) {
  auto file = ReadProfileFile(path);
  if (!file) return Fail(file.error());
  return ReadProfile(*file, path);
}

}  // namespace allranks::node
