// Reading and checking problem.toml. Every key is read by exactly one line below, so that what is
// left over can be refused; all faults of a file are told at once.
#include "problem/problem.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include <charconv>
#include <limits>
#include "base/check.h"
#include "node/faults.h"
#include "problem/cases.h"
#include "problem/reader.h"
#include "problem/source.h"

namespace allranks::problem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLargestTensor = std::int64_t{1} << 30;

const std::vector<std::string> kLevels = {"easy", "medium", "hard"};
const std::vector<std::string> kSplits = {"public", "sealed", "private"};
const std::vector<std::string> kWindows = {"graph", "stream", "host", "query"};
const std::vector<std::string> kLinks = {"nvlink", "pcie", "c2c", "coherent", "socket", "network"};
const std::vector<std::string> kAllow = {"kernel", "memcpy", "values", "multicast"};
const std::vector<std::string> kDraws = {"mixed", "uniform", "integers", "bits",
                                         "below", "counts",  "topk"};
const std::vector<std::string> kDirs = {"in", "out", "symmetric"};
// Names that Args or C++ has already.
const std::set<std::string> kTaken = {
    "rank", "world",  "int",    "float", "double", "char", "short", "long",  "auto",
    "this", "new",    "delete", "class", "struct", "if",   "else",  "for",   "while",
    "do",   "switch", "case",   "const", "void",   "bool", "true",  "false", "return"};
const std::set<std::string> kEntryNames = {"main", "setup", "host", "answer"};

template <class E>
E Pick(const std::string& name, const std::vector<std::string>& names) {
  return static_cast<E>(std::find(names.begin(), names.end(), name) - names.begin());
}

void ReadHead(Section& root, Problem* p) {
  int schema = 0;
  root.Int("schema", &schema, Problem::kSchema, Problem::kSchema, Section::kRequired);
  root.Text("title", &p->title);
  root.OneOf("category", &p->category, Categories());
  root.OneOf("level", &p->level, kLevels);
  root.Text("library", &p->library);
  root.Texts("parallelism", &p->parallelism);
  root.Text("family", &p->family);
  root.Text("origin", &p->origin, Section::kOptional);
  root.Texts("covers", &p->covers);
  std::string split = "public";
  root.OneOf("split", &split, kSplits, Section::kOptional);
  p->split = Pick<Split>(split, kSplits);
  const std::string folder = p->folder.parent_path().filename().string();
  if (!p->category.empty() && folder != p->category) {
    root.faults().Add(nullptr, "category is '{}', but the folder is in '{}'", p->category, folder);
  }
  const std::string own = p->folder.filename().string();
  if (!IsName(own)) {
    root.faults().Add(nullptr,
                      "the folder name '{}' cannot name a problem: expected [a-z][a-z0-9_]*", own);
  }
}

void ReadRun(const toml::table* table, Faults* faults, Problem* p) {
  Section run(table, "run", faults);
  std::string window = "graph", layout = "process";
  run.OneOf("window", &window, kWindows);
  p->window = Pick<Window>(window, kWindows);
  run.OneOf("layout", &layout, {"process"}, Section::kOptional);
  p->links = {"nvlink"};
  run.SomeOf("links", &p->links, kLinks);
  p->allow = {"kernel"};
  run.SomeOf("allow", &p->allow, kAllow);
  run.Int("max_ctas", &p->max_ctas, 1, 1 << 20);
  run.Flag("arch_specific", &p->arch_specific);
  run.Texts("faults", &p->faults);
  for (const std::string& text : p->faults) {
    const auto fault = node::ParseFault(text);
    if (!fault) {
      faults->Add(table->get("faults"), "[run] faults: {}", fault.error().message);
    } else if (fault->rank >= 0) {
      faults->Add(table->get("faults"), "[run] faults: '{}': ranks of a problem live", text);
    }
  }
  run.Int("max_ranks", &p->max_ranks, 1, 64);
  if (!run.Int("burst", &p->burst, 1, 64)) p->burst = p->window == Window::kQuery ? 1 : 6;
  run.Flag("setup", &p->setup);
  run.Int("host_threads", &p->host_threads, 1, 16);
  run.Texts("given", &p->given);
  p->calls = {"launch"};
  run.Texts("calls", &p->calls);
  run.RejectOthers();
  if (table == nullptr) return;
  if (p->calls.empty()) faults->Add(table, "[run] calls is empty: expected at least one name");
  for (std::size_t i = 0; i < p->calls.size(); ++i) {
    const std::string& call = p->calls[i];
    if (!IsName(call) || kTaken.contains(call) || kEntryNames.contains(call) ||
        std::count(p->calls.begin(), p->calls.end(), call) > 1) {
      faults->Add(table->get("calls"), "[run] calls: '{}' cannot be the name of an entry point",
                  call);
    }
  }
  if ((p->host_threads > 0) != (p->window == Window::kHost)) {
    faults->Add(table, "[run] host_threads and window = \"host\" require each other: {}",
                p->host_threads > 0 ? "the window differs" : "host_threads is missing");
  }
  if (UsesNccl(*p) && (!p->setup || p->window != Window::kGraph)) {
    faults->Add(table, "[run] library = \"{}\" needs setup = true and window = \"graph\"",
                p->library);
  }
}

// Reads an expression; integers are taken as they are.
bool ReadExpression(Section& section, const char* key, const toml::node* node, const Values& names,
                    Expression* out) {
  std::string text;
  if (node->is_integer()) {
    text = std::to_string(node->as_integer()->get());
  } else if (node->is_string()) {
    text = node->as_string()->get();
  } else {
    section.Wrong(node, key, "an integer or an expression in quotes");
    return false;
  }
  auto expression = Expression::Parse(text, names);
  if (!expression) {
    section.faults().Add(node, "{}: {}", section.Path(key), expression.error().message);
    return false;
  }
  *out = std::move(*expression);
  return true;
}

void ReadDraw(Section& section, const Values& names, Tensor* tensor) {
  tensor->draw.kind = IsFloat(tensor->type) ? Draw::Kind::kMixed : Draw::Kind::kBits;
  const toml::node* node = section.Find("draw", Section::kOptional, "");
  if (node == nullptr) return;
  std::string kind;
  const toml::node* limit = nullptr;
  if (node->is_string()) {
    section.OneOf("draw", &kind, kDraws);
  } else if (node->is_table()) {
    Section draw(node->as_table(), "tensors." + tensor->name + ".draw", &section.faults());
    draw.OneOf("kind", &kind, kDraws);
    limit = draw.Find("limit", Section::kOptional, "");
    if (limit != nullptr) ReadExpression(draw, "limit", limit, names, &tensor->draw.limit);
    draw.RejectOthers();
  } else {
    section.Wrong(node, "draw", "a kind, or { kind = ..., limit = ... }");
  }
  if (kind.empty()) return;
  tensor->draw.kind = Pick<Draw::Kind>(kind, kDraws);
  const bool floats = kind == "mixed" || kind == "uniform";
  const bool any = kind == "integers";
  if (!any && floats != IsFloat(tensor->type)) {
    section.faults().Add(node, "{} is \"{}\", which is not valid for the type {}",
                         section.Path("draw"), kind, NameOf(tensor->type));
  }
  const bool limited = !floats && kind != "bits";
  if (limited && limit == nullptr) {
    section.faults().Add(node, "{}: \"{}\" needs a limit: {{ kind = \"{}\", limit = \"...\" }}",
                         section.Path("draw"), kind, kind);
  } else if (!limited && limit != nullptr) {
    section.faults().Add(node, "{}: \"{}\" has no limit", section.Path("draw"), kind);
  }
}

void ReadTensor(const std::string& name, const toml::node* node, const Values& names,
                Faults* faults, Problem* p) {
  Tensor tensor;
  tensor.name = name;
  if (!IsName(name) || kTaken.contains(name) || name.ends_with("_peers") ||
      name.ends_with("_multicast") ||
      std::find(p->params.begin(), p->params.end(), name) != p->params.end()) {
    faults->Add(node, "[tensors] '{}' cannot be the name of a tensor", name);
  }
  if (!node->is_table())
    return faults->Add(node, "[tensors] {} is not a table such as {{ dir = \"in\", ... }}", name);
  Section section(node->as_table(), "tensors." + name, faults);
  std::string dir;
  if (!section.OneOf("dir", &dir, kDirs)) return;
  tensor.dir = Pick<Tensor::Dir>(dir, kDirs);
  section.Flag("multicast", &tensor.multicast);
  std::string place = "device";
  section.OneOf("place", &place, {"device", "host"}, Section::kOptional);
  tensor.host = place == "host";
  if (tensor.dir == Tensor::Dir::kSymmetric) {
    tensor.type = Type::kU8;
    tensor.type_name = CudaNameOf(Type::kU8);
    tensor.peers = !tensor.host;  // a host's memory is for its own rank
    const toml::node* bytes = section.Find("bytes", Section::kRequired, "an expression");
    if (bytes != nullptr) ReadExpression(section, "bytes", bytes, names, &tensor.bytes);
  } else {
    std::string type;
    section.Text("type", &type);
    if (const auto vary = p->vary.find(type); vary != p->vary.end()) {
      tensor.type = vary->second;
      tensor.type_name = type;
    } else if (const auto known = TypeNamed(type)) {
      tensor.type = *known;
      tensor.type_name = CudaNameOf(*known);
    } else if (!type.empty()) {
      faults->Add(node,
                  "{} is '{}': expected f32, f16, bf16, f64, i8, u8, i32, u32, i64, u64 or a "
                  "name of [vary]",
                  section.Path("type"), type);
    }
    const toml::node* shape = section.Find("shape", Section::kRequired, "a list of expressions");
    if (shape != nullptr && shape->is_array() && !shape->as_array()->empty()) {
      for (const toml::node& extent : *shape->as_array()) {
        ReadExpression(section, "shape", &extent, names, &tensor.shape.emplace_back());
      }
    } else if (shape != nullptr) {
      section.Wrong(shape, "shape", "a list of expressions such as [\"n\"]");
    }
    section.Flag("peers", &tensor.peers);
    if (tensor.dir == Tensor::Dir::kIn) {
      section.Flag("changes", &tensor.changes);
      section.Flag("same", &tensor.same);
      ReadDraw(section, names, &tensor);
    }
  }
  section.RejectOthers();
  if (tensor.multicast && !Allows(*p, "multicast"))
    faults->Add(node, "{}: [run] allow lacks \"multicast\"", section.Path("multicast"));
  if (tensor.multicast && tensor.host)
    faults->Add(node, "{}: host memory has no multicast address", section.Path("multicast"));
  p->tensors.push_back(std::move(tensor));
}

// What one name of [vary] may stand for: types or numbers.
struct Axis {
  std::string name;
  std::vector<std::string> words;  // "bf16", "width128": how variants are named
  std::vector<Type> types;
  std::vector<std::int64_t> numbers;  // if it has no types
};

std::optional<Axis> ReadAxis(const std::string& name, const toml::node* node, Faults* faults) {
  const auto refused = [&] {
    faults->Add(node,
                "[vary] {}: expected T = [\"f32\", ...] or Width = [64, ...], a name that starts "
                "with a capital",
                name);
    return std::nullopt;
  };
  const toml::array* list = node->as_array();
  if (list == nullptr || list->empty() || name[0] < 'A' || name[0] > 'Z') return refused();
  Axis axis;
  axis.name = name;
  for (const toml::node& value : *list) {
    if (const auto number = value.value_exact<std::int64_t>()) {
      axis.numbers.push_back(*number);
      std::string word = name;
      std::transform(word.begin(), word.end(), word.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      axis.words.push_back(fmt::format("{}{}", word, *number));
      continue;
    }
    const auto text = value.value_exact<std::string>();
    if (!text) return refused();
    const auto type = TypeNamed(*text);
    if (!type) {
      faults->Add(node, "[vary] {}: no type '{}'", name, *text);
      return std::nullopt;
    }
    axis.types.push_back(*type);
    axis.words.push_back(*text);
  }
  if (!axis.types.empty() && !axis.numbers.empty()) return refused();
  std::set<std::string> distinct(axis.words.begin(), axis.words.end());
  if (distinct.size() != axis.words.size()) {
    faults->Add(node, "[vary] {}: a value stands there twice", name);
    return std::nullopt;
  }
  return axis;
}

// Variants are all combinations of the values. A variant is named by those that are not the first
// of their list, so the first variant has no name, and one more list renames none.
void ReadVary(const toml::table* table, const std::string& wanted, Faults* faults, Problem* p) {
  Section vary(table, "vary", faults);
  std::vector<Axis> axes;
  for (const auto& [name, node] : vary.InOrder()) {
    vary.Find(name.c_str(), Section::kOptional, "a list");
    if (auto axis = ReadAxis(name, node, faults)) axes.push_back(std::move(*axis));
  }
  std::size_t count = 1;
  for (const Axis& axis : axes) count *= axis.words.size();
  bool found = false;
  for (std::size_t i = 0; i < count; ++i) {
    std::string variant;
    std::size_t rest = i;
    Problem bound;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      const std::size_t at = rest % axis->words.size();
      rest /= axis->words.size();
      if (at != 0) variant = axis->words[at] + (variant.empty() ? "" : ".") + variant;
      if (axis->types.empty()) {
        bound.constants[axis->name] = axis->numbers[at];
      } else {
        bound.vary[axis->name] = axis->types[at];
      }
    }
    p->variants.push_back(variant);
    if (variant != wanted) continue;
    found = true;
    p->vary = std::move(bound.vary);
    p->constants = std::move(bound.constants);
  }
  if (found) return;
  std::string known;
  for (const std::string& one : p->variants)
    if (!one.empty()) known += (known.empty() ? "" : ", ") + one;
  faults->Add(table, "there is no variant '{}'{}", wanted,
              known.empty() ? "" : "; there are " + known);
}

// A fault holds in every case: the device that it names has to be there in the smallest world.
void CheckFaultedDevices(Faults* faults, const Problem& p) {
  int smallest = p.drawn.count > 0 ? p.drawn.world_low : std::numeric_limits<int>::max();
  for (const Case& one : p.cases) smallest = std::min(smallest, one.world);
  for (const std::string& text : p.faults) {
    for (std::size_t at = text.find("gpu"); at != std::string::npos; at = text.find("gpu", at)) {
      at += 3;
      int number = -1;
      std::from_chars(text.data() + at, text.data() + text.size(), number);
      if (number >= smallest)
        faults->Add(nullptr, "[run] faults: '{}': the smallest world has gpu0 to gpu{}, no gpu{}",
                    text, smallest - 1, number);
    }
  }
}

void ReadFloor(const toml::table* table, const Values& names, Faults* faults, Problem* p) {
  Section floor(table, "floor", faults);
  const auto read = [&](const char* key, Expression* out) {
    const toml::node* node = floor.Find(key, Section::kOptional, "");
    if (node != nullptr) ReadExpression(floor, key, node, names, out);
  };
  read("ingress", &p->floor.ingress);
  read("egress", &p->floor.egress);
  read("busiest", &p->floor.busiest);
  read("hbm", &p->floor.hbm);
  read("flops", &p->floor.flops);
  read("hops", &p->floor.hops);
  floor.RejectOthers();
}

std::vector<std::string> SplitAt(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0;;) {
    const std::size_t next = text.find(separator, at);
    parts.emplace_back(text.substr(at, next - at));
    if (next == std::string_view::npos) return parts;
    at = next + 1;
  }
}

// `words` are VERDICT or VERDICT:needs_checker, what is left of a mutant's text.
bool ReadVerdict(const toml::node* node, const std::string& key, const std::string& text,
                 std::vector<std::string> words, Faults* faults, Mutant* mutant) {
  const auto& known = Verdicts();
  if (words.size() == 2 && words[1] == "needs_checker") {
    mutant->needs_checker = true;
    words.pop_back();
  }
  if (words.size() != 1 || words[0] == "pass" || words[0] == "internal_error" ||
      std::find(known.begin(), known.end(), words[0]) == known.end()) {
    faults->Add(node, "[mutants] {} = \"{}\": expected a verdict{}, optionally with :needs_checker",
                key, text, words.empty() ? std::string() : DidYouMean(words[0], known));
    return false;
  }
  mutant->verdict = words[0];
  return true;
}

// The bugs of one solution; those of an alternate stand in a table of its own.
class MutantReader {
 public:
  MutantReader(Faults* faults, std::vector<Mutant>* to) : faults_(faults), to_(to) {}

  void Read(const toml::table* table, const std::string& section, const std::string& of) {
    of_ = of;
    Section mutants(table, section, faults_);
    for (const auto& [key, node] : mutants.InOrder()) {
      if (key.ends_with(".cu") && node->is_table() && of == "reference.cu") {
        MutantReader(faults_, to_).Read(node->as_table(), section + "." + key, key);
      } else if (key.ends_with(".patch")) {
        ReadPatch(mutants, key, node);
      } else if (!IsName(key)) {
        faults_->Add(node,
                     "[{}] {}: expected the name of a tag, of a replacement, of a .patch or of an "
                     "alternate",
                     section, key);
      } else if (node->is_table()) {
        ReadReplacement(section, key, node);
      } else {
        ReadOperators(mutants, key, node);
      }
    }
  }

 private:
  Mutant Named(const std::string& name) const {
    const std::string stem = std::filesystem::path(of_).stem();
    Mutant mutant;
    mutant.name = of_ == "reference.cu" ? name : stem + "." + name;
    mutant.of = of_;
    return mutant;
  }
  void ReadPatch(Section& mutants, const std::string& key, const toml::node* node) {
    if (!node->is_string() || key.find('/') != std::string::npos)
      return mutants.Wrong(node, key, "\"VERDICT\"; the key is the file in mutants/");
    Mutant mutant = Named(key.substr(0, key.size() - 6));
    mutant.patch = key;
    const std::string& text = node->as_string()->get();
    if (ReadVerdict(node, key, text, SplitAt(text, ':'), faults_, &mutant))
      to_->push_back(std::move(mutant));
  }
  void ReadReplacement(const std::string& section, const std::string& key, const toml::node* node) {
    Section change(node->as_table(), section + "." + key, faults_);
    Mutant mutant = Named(key);
    std::string gets;
    change.Text("replace", &mutant.replace);
    const toml::node* with = change.Find("with", Section::kRequired, "a string");
    if (with != nullptr && with->is_string()) mutant.with = with->as_string()->get();
    change.Text("gets", &gets);
    change.RejectOthers();
    if (mutant.replace.empty() || mutant.replace == mutant.with)
      change.Wrong(node, "replace", "a text of the solution, other than `with`");
    if (!gets.empty() && ReadVerdict(node, key, gets, SplitAt(gets, ':'), faults_, &mutant))
      to_->push_back(std::move(mutant));
  }
  void ReadOperators(Section& mutants, const std::string& key, const toml::node* node) {
    std::vector<std::string> texts;
    if (!mutants.Texts(key.c_str(), &texts)) return;
    for (const std::string& text : texts) {
      std::vector<std::string> words = SplitAt(text, ':');
      Mutant mutant = Named(key + "." + words[0]);
      mutant.tag = key;
      mutant.op = words[0];
      words.erase(words.begin());
      const auto& operators = Operators();
      if (std::find(operators.begin(), operators.end(), mutant.op) == operators.end()) {
        faults_->Add(node, "[mutants] {}: no operator '{}'{}", key, mutant.op,
                     DidYouMean(mutant.op, operators));
        continue;
      }
      if (ReadVerdict(node, key, text, words, faults_, &mutant)) to_->push_back(mutant);
    }
  }

  Faults* faults_;
  std::vector<Mutant>* to_;
  std::string of_;
};

void ReadMutants(const toml::table* table, Faults* faults, Problem* p) {
  MutantReader(faults, &p->mutants).Read(table, "mutants", "reference.cu");
  std::set<std::string> seen;
  for (const Mutant& mutant : p->mutants) {
    if (!seen.insert(mutant.name).second) faults->Add(table, "[mutants] has {} twice", mutant.name);
  }
}

// Every size must be one that memory can have, and every floor a count.
void CheckSizes(const Case& one, const std::string& name, Faults* faults, const Problem& p) {
  const Values values = ValuesOf(p, one);
  for (const Tensor& tensor : p.tensors) {
    std::int64_t bytes = static_cast<std::int64_t>(SizeOf(tensor.type));
    std::vector<Expression> factors = tensor.shape;
    if (tensor.dir == Tensor::Dir::kSymmetric) factors = {tensor.bytes};
    for (const Expression& factor : factors) {
      const auto value = factor.Evaluate(values);
      if (!value)
        return faults->Add(nullptr, "[tensors] {} in case {}: {}", tensor.name, name,
                           value.error().message);
      if (*value < 0 || __builtin_mul_overflow(bytes, *value, &bytes) || bytes > kLargestTensor)
        return faults->Add(nullptr,
                           "[tensors] {} in case {}: \"{}\" is {}: sizes are from 0 to 2^30 bytes",
                           tensor.name, name, factor.text(), *value);
    }
    const auto limit = tensor.draw.limit.Evaluate(values);
    if (!limit || (!tensor.draw.limit.empty() && *limit < 1))
      return faults->Add(nullptr, "[tensors] {} in case {}: the limit of draw is {}", tensor.name,
                         name, limit ? std::to_string(*limit) : limit.error().message);
  }
  const auto check_floor = [&](const char* key, const Expression& floor) {
    const auto value = floor.Evaluate(values);
    if (!value || *value < 0)
      faults->Add(nullptr, "[floor] {} in case {}: {}", key, name,
                  value ? fmt::format("{} is negative", *value) : value.error().message);
  };
  check_floor("ingress", p.floor.ingress);
  check_floor("egress", p.floor.egress);
  check_floor("busiest", p.floor.busiest);
  check_floor("hbm", p.floor.hbm);
  check_floor("flops", p.floor.flops);
  check_floor("hops", p.floor.hops);
}

void CheckAllSizes(Faults* faults, const Problem& p) {
  for (const Case& one : p.cases) {
    CheckSizes(one, one.name, faults, p);
    if (faults->Any()) return;
  }
  if (p.drawn.count == 0) return;
  // The smallest and the largest that can be drawn stand for all in between.
  const auto smallest = [](std::uint64_t) { return std::uint64_t{0}; };
  const auto largest = [](std::uint64_t count) { return count - 1; };
  CheckSizes(DrawCase(p, 0, p.drawn.world_low, smallest), "drawn, smallest", faults, p);
  CheckSizes(DrawCase(p, 0, p.drawn.world_high, largest), "drawn, largest", faults, p);
}

std::int64_t Product(const Tensor& tensor, const Values& values) {
  std::int64_t count = 1;
  if (tensor.dir == Tensor::Dir::kSymmetric) return tensor.bytes.Evaluate(values).value_or(0);
  for (const Expression& factor : tensor.shape) {
    const auto value = factor.Evaluate(values);
    if (!value || *value < 0 || __builtin_mul_overflow(count, *value, &count)) return 0;
  }
  return count;
}

}  // namespace

const char* NameOf(Window window) { return kWindows[static_cast<std::size_t>(window)].c_str(); }
bool UsesNccl(const Problem& problem) { return problem.library.starts_with("nccl"); }

Problem WithNccl(const Problem& problem) {
  Problem with = problem;
  with.library = "nccl";
  with.setup = true;
  with.max_ctas = 0;
  // Its kernels read words of the host.
  if (!with.links.empty()) with.links.emplace_back("pcie");
  with.allow = {"kernel", "memcpy", "multicast"};
  return with;
}

bool Allows(const Problem& problem, std::string_view what) {
  return std::find(problem.allow.begin(), problem.allow.end(), what) != problem.allow.end();
}

const char* NameOf(Split split) { return kSplits[static_cast<std::size_t>(split)].c_str(); }

const std::vector<std::string>& Verdicts() {
  static const std::vector<std::string> kNames = {
      "pass",          "wrong_result",     "race",
      "deadlock",      "memory_error",     "crash",
      "timeout",       "compile_error",    "edit_violation",
      "forbidden_api", "no_communication", "impossible",
      "tampering",     "unsupported",      "internal_error"};
  return kNames;
}

const std::vector<std::string>& Categories() {
  static const std::vector<std::string> kNames = {"p2p", "collective", "ep", "fusion", "utilities"};
  return kNames;
}

Result<Problem> Parse(std::string_view text, const fs::path& folder, const std::string& variant) {
  Problem problem;
  problem.folder = fs::absolute(folder).lexically_normal();
  if (!problem.folder.has_filename()) problem.folder = problem.folder.parent_path();
  problem.variant = variant;
  problem.slug = problem.folder.filename().string() + (variant.empty() ? "" : "." + variant);
  const std::string file = (folder / "problem.toml").string();
  toml::table table;
  try {
    table = toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    return Fail("{}:{}: {}", file, error.source().begin.line, error.description());
  }
  Faults faults(file);
  Section root(&table, "", &faults);
  ReadHead(root, &problem);
  ReadRun(root.Table("run", Section::kRequired), &faults, &problem);
  ReadVary(root.Table("vary", Section::kOptional), variant, &faults, &problem);
  if (!variant.empty()) problem.title += fmt::format(" ({})", variant);
  const toml::table* cases = root.Table("cases", Section::kRequired);
  if (cases != nullptr) ReadParams(cases, &faults, &problem);
  Values names = {{"world", 0}};
  for (const std::string& param : problem.params) names[param] = 0;
  for (const auto& [name, type] : problem.vary) names["sizeof(" + name + ")"] = 0;
  for (const auto& [name, value] : problem.constants) names[name] = 0;
  Section tensors(root.Table("tensors", Section::kRequired), "tensors", &faults);
  for (const auto& [name, node] : tensors.InOrder())
    ReadTensor(name, node, names, &faults, &problem);
  if (cases != nullptr) ReadCases(cases, &faults, &problem);
  CheckFaultedDevices(&faults, problem);
  ReadFloor(root.Table("floor", Section::kOptional), names, &faults, &problem);
  ReadMutants(root.Table("mutants", Section::kOptional), &faults, &problem);
  root.RejectOthers();
  if (!faults.Any()) CheckAllSizes(&faults, problem);
  if (faults.Any()) return Fail("{}", faults.Text());
  return problem;
}

Result<Problem> Load(const fs::path& folder, const std::string& variant) {
  auto text = ReadFile(folder / "problem.toml");
  if (!text) return Fail(text.error());
  return Parse(*text, folder, variant);
}

Result<std::vector<Problem>> LoadAll(const fs::path& folder) {
  auto first = Load(folder);
  if (!first) return Fail(first.error());
  std::vector<Problem> all = {std::move(*first)};
  for (const std::string& variant : std::vector(all[0].variants)) {
    if (variant.empty()) continue;
    auto other = Load(folder, variant);
    if (!other) return Fail(other.error());
    all.push_back(std::move(*other));
  }
  return all;
}

std::vector<fs::path> Find(const fs::path& root) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& category : fs::directory_iterator(root, error)) {
    if (!category.is_directory(error)) continue;
    for (const auto& folder : fs::directory_iterator(category.path(), error)) {
      if (fs::is_regular_file(folder.path() / "problem.toml", error))
        found.push_back(folder.path());
    }
  }
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
    return std::pair(a.filename(), a) < std::pair(b.filename(), b);
  });
  return found;
}

Values ValuesOf(const Problem& problem, const Case& one) {
  CHECK_EQ(one.params.size(), problem.params.size());
  Values values = {{"world", one.world}};
  for (std::size_t i = 0; i < problem.params.size(); ++i) values[problem.params[i]] = one.params[i];
  for (const auto& [name, type] : problem.vary)
    values["sizeof(" + name + ")"] = static_cast<std::int64_t>(SizeOf(type));
  values.insert(problem.constants.begin(), problem.constants.end());
  return values;
}

std::uint64_t CountOf(const Problem& problem, const Tensor& tensor, const Case& one) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, Product(tensor, ValuesOf(problem, one))));
}

std::uint64_t BytesOf(const Problem& problem, const Tensor& tensor, const Case& one) {
  return CountOf(problem, tensor, one) * SizeOf(tensor.type);
}

}  // namespace allranks::problem
