// What a provider sends and what a model says is hostile. The first byte of an input picks the
// reader:
//   'r' 'c' 'a' 'g'  a stream of events: OpenAI Responses, Chat Completions, Anthropic, Gemini
//   'R' 'C' 'A' 'G'  the same as one document
//   'E'              the body of an error
//   'K'              a reply that the output cap has cut, as an answer
//   anything else    a whole reply, from that byte on
// Beside not crashing: a stream means the same however it is cut into pieces, and a source that is
// taken out of a reply is a text of at most the size that the judge takes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "model/protocol.h"
#include "model/sse.h"
#include "problem/answer.h"

namespace {

using namespace allranks;

constexpr std::size_t kMaxInput = 65536;

const model::WireProtocol* ProtocolOf(char letter) {
  switch (letter) {
    case 'r':
    case 'R':
      return &model::OpenAiResponsesProtocol();
    case 'c':
    case 'C':
      return &model::OpenAiChatProtocol();
    case 'a':
    case 'A':
      return &model::AnthropicProtocol();
    case 'g':
    case 'G':
      return &model::GeminiProtocol();
    default:
      return nullptr;
  }
}

model::WireReply Stream(const model::WireProtocol& protocol, std::string_view bytes,
                        std::size_t piece) {
  const auto reader = protocol.NewReader();
  model::SseParser parser(
      [&](const model::SseParser::Event& event) { reader->Event(event.name, event.data); });
  for (std::size_t at = 0; at < bytes.size(); at += piece) parser.Feed(bytes.substr(at, piece));
  parser.Finish();
  return reader->reply();
}

void CheckStream(const model::WireProtocol& protocol, std::string_view bytes) {
  const model::WireReply whole = Stream(protocol, bytes, bytes.size() + 1);
  const model::WireReply cut = Stream(protocol, bytes, 1);
  CHECK(whole.text == cut.text);
  CHECK(whole.finish == cut.finish && whole.complete == cut.complete);
  CHECK(whole.usage == cut.usage && whole.usage_known == cut.usage_known);
  CHECK(whole.error.has_value() == cut.error.has_value());
}

void CheckAnswer(std::string_view reply, bool cut) {
  static const problem::Region kRegion = {
      "#include \"problem.h\"\n// >>> edit\n",
      "extern \"C\" void launch(const Args& args, cudaStream_t stream) {\n}\n", "// <<< edit\n", 3};
  const problem::Answer answer = problem::ReadAnswer(reply, cut, kRegion);
  CHECK((answer.kind == problem::Answer::Kind::kSource) == !answer.source.empty());
  CHECK(answer.kind == problem::Answer::Kind::kSource || !answer.text.empty());
  CHECK(answer.source.size() <= problem::kLargestSource);
  CHECK(answer.source.find('\0') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), std::min(size, kMaxInput));
  if (input.empty()) return 0;
  const char letter = input.front();
  const std::string_view rest = input.substr(1);
  if (const model::WireProtocol* protocol = ProtocolOf(letter); protocol == nullptr) {
    if (letter == 'E') {
      (void)model::ParseErrorBody(429, rest);
    } else {
      CheckAnswer(letter == 'K' ? rest : input, letter == 'K');
    }
  } else if (letter >= 'a') {
    CheckStream(*protocol, rest);
  } else {
    const auto reader = protocol->NewReader();
    reader->Document(rest);
  }
  return 0;
}
