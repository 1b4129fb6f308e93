// The page: one HTML file with style, script and data in it (share/report, compiled in).
//
// What models wrote is hostile. It reaches the page only as JSON inside a data block, where < is
// escaped; the script puts it into the document as text nodes; and the page's own policy runs no
// script but the one whose hash it names, and loads nothing from anywhere.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/files.h"
#include "base/words.h"
#include "report/page_data.h"
#include "report/report.h"

namespace allranks::report {
namespace {

// kHtml, kStyle, kScript, and kScriptHash: SHA-256 of kScript in hexadecimal digits.
#include <page.inc>

constexpr std::size_t kLargestDrawing = 200'000;  // a bigger one stays a file of its own

// A SHA-256 in hexadecimal digits as a content security policy writes it.
std::string Base64OfHex(std::string_view hex) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::uint32_t bits = 0;
  int count = 0;
  std::string out;
  const auto emit = [&](int width) {
    while (count >= width) {
      count -= 6;
      out += kDigits[(bits >> static_cast<unsigned>(count)) & 63];
    }
  };
  for (const char c : hex) {
    bits = (bits << 4) | static_cast<std::uint32_t>(value(c));
    count += 4;
    emit(6);
  }
  if (count > 0) {
    bits <<= static_cast<unsigned>(6 - count);
    count = 6;
    emit(6);
  }
  while (out.size() % 4 != 0) out += '=';
  return out;
}

// One pass: what is filled in is not looked at again.
std::string Fill(std::string_view form,
                 const std::vector<std::pair<std::string_view, std::string_view>>& values) {
  std::string out;
  while (!form.empty()) {
    const std::size_t open = form.find("{{");
    out += form.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = form.find("}}", open);
    CHECK(close != std::string_view::npos, "page.html: {{ without }}");
    const std::string_view name = form.substr(open + 2, close - open - 2);
    bool found = false;
    for (const auto& [key, value] : values)
      if (key == name) {
        out += value;
        found = true;
      }
    CHECK(found, "page.html: {}", name);
    form.remove_prefix(close + 2);
  }
  return out;
}

}  // namespace

Result<std::string> RenderPage(const Summary& summary, const std::vector<campaign::Run>& runs,
                               const std::filesystem::path& out,
                               const std::vector<std::string>& plots,
                               const std::vector<Attachment>& files) {
  std::vector<Drawing> drawings;
  for (const std::string& plot : plots) {
    if (plot.find('/') != std::string::npos) continue;  // one problem's: the page draws it itself
    Result<std::string> svg = ReadWhole(out / "plots" / (plot + ".svg"), kLargestDrawing);
    if (svg) drawings.push_back({plot, std::move(*svg)});
  }
  const std::string title = EscapedMarkup(summary.options.title);
  const std::string hash = Base64OfHex(kScriptHash);
  const std::string data = PageData(summary, runs, drawings, files);
  return Fill(
      kHtml,
      {{"title", title}, {"hash", hash}, {"style", kStyle}, {"script", kScript}, {"data", data}});
}

}  // namespace allranks::report
