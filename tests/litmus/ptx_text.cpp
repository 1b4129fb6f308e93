// Kernels of litmus tests; see ptx_text.h.
#include "ptx_text.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>

namespace allranks::litmus {
namespace {

const char* TypeOf(char bank) {
  switch (bank) {
    case 'd':
      return "b64";
    case 'h':
      return "b16";
    case 'q':
      return "b128";
    case 'f':
      return "f32";
    case 'p':
      return "pred";
    default:
      return "b32";
  }
}

std::string NameOf(const Test& test, const Argument& argument) {
  std::string name = "%at_" + test.memories[static_cast<std::size_t>(argument.memory)].name;
  if (argument.view >= 0) name += fmt::format("_gpu{}", argument.view);
  return name;
}

class Writer {
 public:
  Writer(const Test& test, const Section& section, const Thread& first)
      : test_(test), section_(section) {
    kernel_.name = first.kernel;
    kernel_.device = first.device;
  }

  Result<KernelText> Write() {
    std::string bodies, dispatch;
    for (std::size_t t = 0; t < test_.threads.size(); ++t) {
      const Thread& thread = test_.threads[t];
      if (thread.kernel != kernel_.name) continue;
      // A dropped thread keeps its place: what a barrier waits for does not change.
      kernel_.blocks = std::max(kernel_.blocks, thread.block + 1);
      kernel_.threads = std::max(kernel_.threads, thread.last() + 1);
      if (!section_.present[t]) continue;
      auto body = Body(t);
      if (!body) return Fail(body.error());
      dispatch += fmt::format(
          "setp.eq.u32 %pa, %block, {};\nsetp.ge.and.u32 %pa, %place, {}, %pa;\n"
          "setp.le.and.u32 %pa, %place, {}, %pa;\n@%pa bra $T{};\n",
          thread.block, thread.first(), thread.last(), t);
      bodies += fmt::format("$T{}:\n{}{}ret;\n", t, *body, Stores(t));
    }
    kernel_.blocks = (kernel_.blocks + test_.cluster - 1) / test_.cluster * test_.cluster;
    std::string parameters = ".param .u64 p_out", loads, shared, first;
    for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
      parameters += fmt::format(", .param .u64 p_{}", a);
      const std::string name = NameOf(test_, kernel_.arguments[a]);
      loads += fmt::format(".reg .b64 {};\nld.param.u64 {}, [p_{}];\n", name, name, a);
    }
    for (const Memory& memory : test_.memories) {
      if (!memory.shared() || !shared_.contains(memory.name)) continue;
      shared += fmt::format(".shared .align 128 .b8 sh_{}[{}];\n", memory.name, memory.bytes());
      loads += fmt::format(".reg .b32 %sat_{0};\nmov.u32 %sat_{0}, sh_{0};\n", memory.name);
      first += Initialise(memory);
    }
    kernel_.ptx = fmt::format(
        ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry {}({})\n{}{{\n{}"
        ".reg .pred %p<32>, %pa, %pw;\n.reg .b16 %h<32>;\n.reg .b32 %r<32>, %lane, %block, "
        "%place;\n"
        ".reg .b64 %d<32>, %out, %wide;\n.reg .b128 %q<32>;\n.reg .f32 %f<32>;\n"
        "ld.param.u64 %out, [p_out];\nmov.u32 %lane, %laneid;\nmov.u32 %block, %ctaid.x;\n"
        "mov.u32 %place, %tid.x;\n{}{}{}ret;\n{}}}\n",
        kernel_.name, parameters,
        test_.cluster > 1 ? fmt::format(".reqnctapercluster {}, 1, 1\n", test_.cluster) : "",
        shared, loads, Before(first), dispatch, bodies);
    return std::move(kernel_);
  }

 private:
  // Code of one thread, with everything replaced that is not PTX.
  Result<std::string> Body(std::size_t t) {
    std::string body = "{\n";
    std::set<std::string> registers;
    std::string code;
    for (const Line& line : section_.code[t]) {
      auto text = Expand(line);
      if (!text) return text;
      code += *text;
    }
    static const std::regex kRegister("%([rdhfqp])(\\d+)\\b");
    for (std::sregex_iterator it(code.begin(), code.end(), kRegister), end; it != end; ++it) {
      const char bank = (*it)[1].str()[0];
      if (std::stoul((*it)[2]) > 31) return Fail("{}: {} is too great", test_.path, it->str());
      if (bank == 'q' || !registers.insert(it->str()).second) continue;
      body += bank == 'p'   ? fmt::format("setp.ne.u32 {}, 0, 0;\n", it->str())
              : bank == 'f' ? fmt::format("mov.f32 {}, 0f00000000;\n", it->str())
                            : fmt::format("mov.{} {}, 0;\n", TypeOf(bank), it->str());
    }
    return body + code + "}\n";
  }

  Result<std::string> Expand(const Line& line) {
    static const std::regex kSleep("\\bsleep\\s+(\\d+)");
    const auto text = Condition(line);
    if (!text) return text;
    return Addresses(std::regex_replace(*text, kSleep, "nanosleep.u32 $1"), line);
  }

  // until and if, also one in the other.
  Result<std::string> Condition(const Line& line) {
    static const std::regex kCondition(
        "(until|if)\\s+(%\\w+)\\s*(==|!=|<=|>=|<|>)\\s*([%\\w]+)\\s*:\\s*(.*)");
    std::smatch match;
    std::string text = line.text;
    if (std::regex_match(text, match, kCondition)) {
      const std::string kind = match[1], left = match[2], compare = match[3], right = match[4];
      if (match[5].str().empty())
        return Fail("{}:{}: {} has nothing to do", test_.path, line.number, kind);
      // The branch is taken if the condition does not hold.
      const char* unless = compare == "=="   ? "ne"
                           : compare == "!=" ? "eq"
                           : compare == "<"  ? "hs"
                           : compare == "<=" ? "hi"
                           : compare == ">"  ? "ls"
                                             : "lo";
      const bool numbered = std::isdigit(static_cast<unsigned char>(left[2])) != 0;
      const char* type = !numbered        ? "u32"
                         : left[1] == 'd' ? "u64"
                         : left[1] == 'h' ? "u16"
                                          : "u32";
      const std::string test = fmt::format("setp.{}.{} %pw, {}, {};\n", unless, type, left, right);
      const int label = ++labels_;
      const auto inner = Condition({line.number, match[5]});
      if (!inner) return inner;
      text = kind == "until"
                 ? fmt::format("$L{0}:\n{1}\n{2}@%pw bra $L{0};\n", label, *inner, test)
                 : fmt::format("{2}@%pw bra $L{0};\n{1}\n$L{0}:\n", label, *inner, test);
    }
    return text;
  }

  // [x], [x+4], [m@gpu1], &x, &m@gpu1.
  Result<std::string> Addresses(const std::string& text, const Line& line) {
    static const std::regex kName("([\\[&])\\s*([A-Za-z]\\w*)(?:@(gpu\\d+))?");
    std::string out;
    auto from = text.begin();
    for (std::sregex_iterator it(text.begin(), text.end(), kName), end; it != end; ++it) {
      const std::smatch& match = *it;
      Argument argument;
      argument.memory = test_.MemoryNamed(match[2]);
      if (argument.memory < 0)
        return Fail("{}:{}: no memory is called '{}'", test_.path, line.number, match[2].str());
      const Memory& memory = test_.memories[static_cast<std::size_t>(argument.memory)];
      if (match[3].matched) argument.view = DeviceNamed(match[3]);
      if (argument.view >= 0 && memory.home != Memory::Home::kMulticast)
        return Fail("{}:{}: '{}' has no views", test_.path, line.number, memory.name);
      out.append(from, match[0].first);
      from = match[0].second;
      if (match[1] == "[") out += '[';
      if (memory.shared()) {
        shared_.insert(memory.name);
        out += (match[1] == "[" ? "sh_" : "%sat_") + memory.name;
        continue;
      }
      const auto known = std::find_if(
          kernel_.arguments.begin(), kernel_.arguments.end(), [&](const Argument& other) {
            return other.memory == argument.memory && other.view == argument.view;
          });
      if (known == kernel_.arguments.end()) kernel_.arguments.push_back(argument);
      out += NameOf(test_, argument);
    }
    out.append(from, text.end());
    return out + "\n";
  }

  // Written by the block's first thread.
  std::string Initialise(const Memory& memory) {
    if (!memory.initial) return "";
    if (memory.home == Memory::Home::kMbarrier) {
      std::string text;
      for (std::uint32_t i = 0; i < memory.count; ++i)
        text += fmt::format("@%pa mbarrier.init.shared.b64 [sh_{}+{}], {};\n", memory.name, i * 8,
                            *memory.initial);
      return text;
    }
    std::string text;
    for (std::uint32_t i = 0; i < memory.count; ++i)
      text += fmt::format("@%pa st.shared.u{} [sh_{}+{}], {};\n", memory.width * 8, memory.name,
                          i * memory.width, *memory.initial);
    return text;
  }

  std::string Before(const std::string& first) {
    if (first.empty()) return "";
    std::string text = "setp.eq.u32 %pa, %place, 0;\n" + first;
    if (std::any_of(test_.memories.begin(), test_.memories.end(), [&](const Memory& memory) {
          return memory.home == Memory::Home::kMbarrier && shared_.contains(memory.name);
        }))
      text += "fence.mbarrier_init.release.cluster;\nfence.proxy.async;\n";
    text += "bar.sync 0;\n";
    if (test_.cluster > 1)
      text += "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
    return text;
  }

  // What expectations name of thread `t`.
  std::string Stores(std::size_t t) {
    const Thread& thread = test_.threads[t];
    std::set<std::pair<char, std::uint32_t>> registers;
    for (const Expectation& expectation : section_.expectations)
      for (const Term& term : expectation.terms)
        if (term.place.thread == static_cast<int>(t))
          registers.insert({term.place.bank, term.place.number});
    std::string text;
    for (const auto& [bank, number] : registers) {
      const Slot slot{static_cast<int>(t), bank, number, kernel_.slot_count};
      kernel_.slot_count += thread.last_lane - thread.first_lane + 1;
      text += fmt::format("sub.u32 %place, %lane, {};\nmad.wide.u32 %wide, %place, 8, %out;\n",
                          thread.first_lane);
      if (bank == 'f') {
        text += fmt::format("st.global.f32 [%wide+{}], %f{};\n", slot.first * 8, number);
      } else {
        text += fmt::format("st.global.b{} [%wide+{}], %{}{};\n",
                            bank == 'd'   ? 64
                            : bank == 'h' ? 16
                                          : 32,
                            slot.first * 8, bank, number);
      }
      kernel_.slots.push_back(slot);
    }
    return text;
  }

  const Test& test_;
  const Section& section_;
  KernelText kernel_;
  std::set<std::string> shared_;
  int labels_ = 0;
};

}  // namespace

Result<std::vector<KernelText>> MakeKernels(const Test& test, const Section& section) {
  std::vector<KernelText> kernels;
  for (const Thread& thread : test.threads) {
    if (std::any_of(kernels.begin(), kernels.end(),
                    [&](const KernelText& kernel) { return kernel.name == thread.kernel; }))
      continue;
    auto kernel = Writer(test, section, thread).Write();
    if (!kernel) return Fail(kernel.error());
    kernels.push_back(std::move(*kernel));
  }
  return kernels;
}

}  // namespace allranks::litmus
