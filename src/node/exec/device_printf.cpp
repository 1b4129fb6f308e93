// See device_printf.h.
#include "node/exec/device_printf.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <vector>

namespace allranks::node {
namespace {

constexpr int kMaxField = 4096;  // width or precision

// One conversion as parsed: %[flags][width][.precision][length]letter
struct Conversion {
  std::string flags;
  int width = -1, precision = -1;
  std::string length;
  char letter = 0;
};

class Formatter {
 public:
  Formatter(std::string_view format, const PrintfSource& source)
      : format_(format), source_(source) {}

  PrintfResult Run() {
    while (at_ < format_.size() && result_.ok && result_.text.size() < kMaxPrintf) {
      const char c = format_[at_++];
      if (c != '%') {
        result_.text += c;
      } else if (at_ < format_.size() && format_[at_] == '%') {
        result_.text += '%';
        ++at_;
      } else {
        One();
      }
    }
    if (result_.text.size() > kMaxPrintf) result_.text.resize(kMaxPrintf);
    return std::move(result_);
  }

 private:
  std::uint64_t Take(int size) {
    const auto width = static_cast<std::uint64_t>(size);
    offset_ = (offset_ + width - 1) / width * width;
    const auto value = source_.argument(offset_, size);
    offset_ += width;
    ++result_.arguments;
    if (!value) result_.ok = false;
    return value.value_or(0);
  }

  // A number in the format, or `*`: an argument. -1 if there is neither.
  int Field() {
    if (at_ < format_.size() && format_[at_] == '*') {
      ++at_;
      return static_cast<std::int32_t>(Take(4));
    }
    int value = -1;
    while (at_ < format_.size() && format_[at_] >= '0' && format_[at_] <= '9') {
      value = std::min(kMaxField, std::max(0, value) * 10 + (format_[at_++] - '0'));
    }
    return value;
  }

  void One() {
    const std::size_t begin = at_ - 1;
    Conversion c;
    while (at_ < format_.size() &&
           std::string_view("-+ #0").find(format_[at_]) != std::string_view::npos) {
      if (c.flags.find(format_[at_]) == std::string::npos) c.flags += format_[at_];
      ++at_;
    }
    const bool star = at_ < format_.size() && format_[at_] == '*';
    c.width = Field();
    if (star && c.width < 0) {  // a negative width from an argument is the flag '-'
      c.flags += '-';
      c.width = -std::max(c.width, -kMaxField);
    }
    if (at_ < format_.size() && format_[at_] == '.') {
      ++at_;
      const bool given = at_ < format_.size() && format_[at_] == '*';
      c.precision = Field();
      if (!given && c.precision < 0) c.precision = 0;  // "." alone
    }
    while (at_ < format_.size() &&
           std::string_view("hlLqjzt").find(format_[at_]) != std::string_view::npos) {
      c.length += format_[at_++];
    }
    if (at_ >= format_.size()) {
      result_.text += format_.substr(begin);
      return;
    }
    c.letter = format_[at_++];
    c.width = std::min(c.width, kMaxField);
    c.precision = std::min(c.precision, kMaxField);
    if (!Emit(c)) result_.text += format_.substr(begin, at_ - begin);
  }

  template <class... Args>
  void Print(const Conversion& c, const char* length, Args... args) {
    std::string spec = "%" + c.flags;
    if (c.width >= 0) spec += std::to_string(c.width);
    if (c.precision >= 0) spec += "." + std::to_string(c.precision);
    spec += length;
    spec += c.letter;
    // The conversion was taken apart and put together from known parts: `args` fits it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const int needed = std::snprintf(nullptr, 0, spec.c_str(), args...);
    if (needed < 0) return;
    std::vector<char> text(static_cast<std::size_t>(needed) + 1);
    std::snprintf(text.data(), text.size(), spec.c_str(), args...);
#pragma GCC diagnostic pop
    result_.text.append(text.data(), static_cast<std::size_t>(needed));
  }

  // False: no conversion that there is.
  bool Emit(const Conversion& c) {
    const bool wide = c.length.find_first_of("lqjzt") != std::string::npos;
    switch (c.letter) {
      case 'd':
      case 'i': {
        auto value = static_cast<std::int64_t>(Take(wide ? 8 : 4));
        if (!wide) value = static_cast<std::int32_t>(value);
        if (c.length == "h") value = static_cast<std::int16_t>(value);
        // NOLINTNEXTLINE(bugprone-signed-char-misuse): its sign is meant
        if (c.length == "hh") value = static_cast<std::int8_t>(value);
        Print(c, "ll", static_cast<long long>(value));
        return true;
      }
      case 'u':
      case 'o':
      case 'x':
      case 'X': {
        std::uint64_t value = Take(wide ? 8 : 4);
        if (!wide) value &= 0xffffffffu;
        if (c.length == "h") value &= 0xffff;
        if (c.length == "hh") value &= 0xff;
        Print(c, "ll", static_cast<unsigned long long>(value));
        return true;
      }
      case 'c':
        Print(c, "", static_cast<int>(Take(4) & 0xff));
        return true;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        Print(c, "", std::bit_cast<double>(Take(8)));
        return true;
      case 'p': {
        const std::uint64_t value = Take(8);
        Conversion hex = c;
        hex.letter = 'x';
        hex.flags += '#';
        if (value == 0) {
          hex.letter = 's';
          hex.flags = c.flags.find('-') != std::string::npos ? "-" : "";
          Print(hex, "", "(nil)");
        } else {
          Print(hex, "ll", static_cast<unsigned long long>(value));
        }
        return true;
      }
      case 's': {
        const std::uint64_t address = Take(8);
        const auto text =
            address == 0 ? std::optional<std::string>("(null)") : source_.string(address);
        if (!text) {
          result_.ok = false;
        } else {
          Print(c, "", text->c_str());
        }
        return true;
      }
      case 'n':
        Take(8);
        return true;
      default:
        return false;
    }
  }

  std::string_view format_;
  const PrintfSource& source_;
  std::size_t at_ = 0;
  std::uint64_t offset_ = 0;
  PrintfResult result_;
};

}  // namespace

PrintfResult FormatPrintf(std::string_view format, const PrintfSource& source) {
  return Formatter(format, source).Run();
}

}  // namespace allranks::node
