// Requests byte for byte and replies as the providers document them. Pages:
//   https://platform.openai.com/docs/api-reference/responses/create, .../responses-streaming
//   https://platform.openai.com/docs/api-reference/chat/create, .../chat-streaming
//   https://platform.claude.com/docs/en/api/messages/create, .../build-with-claude/streaming
//   https://ai.google.dev/api/generate-content, https://ai.google.dev/gemini-api/docs/thinking
//   https://api-docs.deepseek.com/api/create-chat-completion
#include "model/protocol.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace allranks::model {
namespace {

const std::vector<Message> kMessages = {{Message::Role::kSystem, "Be brief."},
                                        {Message::Role::kUser, "Hi \"you\"\n"},
                                        {Message::Role::kAssistant, "Yes?"},
                                        {Message::Role::kAssistant, ""},
                                        {Message::Role::kUser, "Go."}};

Entry AnEntry(Protocol protocol) {
  Entry entry;
  entry.protocol = protocol;
  entry.model = "m-1";
  entry.endpoint = "https://example.org/v1/";
  entry.parameters.max_output_tokens = 100;
  return entry;
}

std::string Body(const Entry& entry) {
  return WireProtocolOf(entry.protocol).Body(entry, kMessages);
}
std::string Url(const Entry& entry) { return WireProtocolOf(entry.protocol).Url(entry); }
using Headers = std::vector<std::string>;

TEST(Request, Responses) {
  Entry entry = AnEntry(Protocol::kOpenAiResponses);
  EXPECT_EQ(Url(entry), "https://example.org/v1/responses");
  EXPECT_EQ(OpenAiResponsesProtocol().Headers("k"), Headers{"Authorization: Bearer k"});
  EXPECT_EQ(OpenAiResponsesProtocol().Headers(""), Headers{});
  EXPECT_EQ(
      Body(entry),
      R"({"input":[{"content":"Hi \"you\"\n","role":"user"},{"content":"Yes?","role":"assistant"},)"
      R"({"content":"Go.","role":"user"}],"instructions":"Be brief.","max_output_tokens":100,)"
      R"("model":"m-1","store":false,"stream":true})");
  entry.parameters.stream = false;
  entry.parameters.temperature = 0.5;
  entry.parameters.top_p = 0.25;
  entry.parameters.effort = "high";
  entry.parameters.extra = R"({"reasoning":{"summary":"auto"},"max_output_tokens":null})";
  EXPECT_EQ(
      Body(entry),
      R"({"input":[{"content":"Hi \"you\"\n","role":"user"},{"content":"Yes?","role":"assistant"},)"
      R"({"content":"Go.","role":"user"}],"instructions":"Be brief.","model":"m-1",)"
      R"("reasoning":{"effort":"high","summary":"auto"},"store":false,"temperature":0.5,)"
      R"("top_p":0.25})");
}

TEST(Request, Chat) {
  Entry entry = AnEntry(Protocol::kOpenAiChat);
  EXPECT_EQ(Url(entry), "https://example.org/v1/chat/completions");
  EXPECT_EQ(OpenAiChatProtocol().Headers("k"), Headers{"Authorization: Bearer k"});
  const std::string messages =
      R"("messages":[{"content":"Be brief.","role":"system"},)"
      R"({"content":"Hi \"you\"\n","role":"user"},{"content":"Yes?","role":"assistant"},)"
      R"({"content":"Go.","role":"user"}],"model":"m-1")";
  EXPECT_EQ(Body(entry), R"({"max_tokens":100,)" + messages +
                             R"(,"stream":true,"stream_options":{"include_usage":true}})");
  entry.parameters.stream = false;
  entry.parameters.max_tokens_field = "max_completion_tokens";
  entry.parameters.effort = "low";
  entry.parameters.temperature = 0;
  EXPECT_EQ(Body(entry), R"({"max_completion_tokens":100,)" + messages +
                             R"(,"reasoning_effort":"low","temperature":0.0})");
}

TEST(Request, Anthropic) {
  Entry entry = AnEntry(Protocol::kAnthropic);
  EXPECT_EQ(Url(entry), "https://example.org/v1/messages");
  EXPECT_EQ(AnthropicProtocol().Headers("k"),
            (Headers{"anthropic-version: 2023-06-01", "x-api-key: k"}));
  const std::string messages =
      R"("messages":[{"content":"Hi \"you\"\n","role":"user"},)"
      R"({"content":"Yes?","role":"assistant"},{"content":"Go.","role":"user"}],"model":"m-1",)";
  EXPECT_EQ(Body(entry),
            R"({"max_tokens":100,)" + messages + R"("stream":true,"system":"Be brief."})");
  entry.parameters.effort = "max";
  entry.parameters.stream = false;
  entry.parameters.top_p = 1;
  EXPECT_EQ(Body(entry), R"({"max_tokens":100,)" + messages +
                             R"("output_config":{"effort":"max"},"system":"Be brief.",)"
                             R"("thinking":{"type":"adaptive"},"top_p":1.0})");
}

TEST(Request, Gemini) {
  Entry entry = AnEntry(Protocol::kGemini);
  EXPECT_EQ(Url(entry), "https://example.org/v1/models/m-1:streamGenerateContent?alt=sse");
  EXPECT_EQ(GeminiProtocol().Headers("k"), Headers{"x-goog-api-key: k"});
  const std::string contents =
      R"({"contents":[{"parts":[{"text":"Hi \"you\"\n"}],"role":"user"},)"
      R"({"parts":[{"text":"Yes?"}],"role":"model"},{"parts":[{"text":"Go."}],"role":"user"}],)";
  const std::string system = R"("systemInstruction":{"parts":[{"text":"Be brief."}]}})";
  EXPECT_EQ(Body(entry), contents + R"("generationConfig":{"maxOutputTokens":100},)" + system);
  entry.parameters.stream = false;
  entry.parameters.effort = "high";
  entry.parameters.top_p = 0.5;
  EXPECT_EQ(Url(entry), "https://example.org/v1/models/m-1:generateContent");
  EXPECT_EQ(Body(entry), contents +
                             R"("generationConfig":{"maxOutputTokens":100,)"
                             R"("thinkingConfig":{"thinkingLevel":"high"},"topP":0.5},)" +
                             system);
  entry.parameters.effort = "-1";
  EXPECT_NE(Body(entry).find(R"("thinkingConfig":{"thinkingBudget":-1})"), std::string::npos);
  entry.model = "models/../x?y";
  EXPECT_EQ(Url(entry), "https://example.org/v1/models/..%2Fx%3Fy:generateContent");
}

// Where each protocol has it; without one nothing is said of it.
TEST(Request, Temperature) {
  for (const Protocol protocol : {Protocol::kOpenAiResponses, Protocol::kOpenAiChat,
                                  Protocol::kAnthropic, Protocol::kGemini}) {
    Entry entry = AnEntry(protocol);
    EXPECT_EQ(Body(entry).find("temperature"), std::string::npos) << NameOf(protocol);
    entry.parameters.temperature = 0.25;
    const auto body = nlohmann::json::parse(Body(entry));
    const auto& where = protocol == Protocol::kGemini ? body.at("generationConfig") : body;
    EXPECT_EQ(where.at("temperature"), 0.25) << NameOf(protocol);
  }
}

TEST(Request, TextThatIsNotUtf8) {
  Entry entry = AnEntry(Protocol::kOpenAiChat);
  const std::string body = OpenAiChatProtocol().Body(entry, {{Message::Role::kUser,
                                                              "a\xFF"
                                                              "b"}});
  EXPECT_NE(body.find("a\xEF\xBF\xBD"
                      "b"),
            std::string::npos);
}

struct Read {
  Protocol protocol;
  std::vector<std::string> events;  // of a stream; one that starts with '=' is a document
};

WireReply Reply(const Read& read) {
  const auto reader = WireProtocolOf(read.protocol).NewReader();
  for (const std::string& event : read.events) {
    if (event[0] == '=')
      reader->Document(event.substr(1));
    else
      reader->Event("", event);
  }
  return reader->reply();
}

WireReply Chat(std::vector<std::string> events) {
  return Reply({Protocol::kOpenAiChat, std::move(events)});
}
WireReply Responses(std::vector<std::string> events) {
  return Reply({Protocol::kOpenAiResponses, std::move(events)});
}
WireReply Anthropic(std::vector<std::string> events) {
  return Reply({Protocol::kAnthropic, std::move(events)});
}
WireReply Gemini(std::vector<std::string> events) {
  return Reply({Protocol::kGemini, std::move(events)});
}

std::string Choice(const std::string& delta, const std::string& finish = "null") {
  return R"({"model":"m-2","choices":[{"index":0,"delta":)" + delta + R"(,"finish_reason":)" +
         finish + "}]}";
}

TEST(Reply, ChatInPieces) {
  const WireReply reply = Chat({Choice(R"({"role":"assistant","content":""})"),
                                Choice(R"({"reasoning_content":"hm","content":null})"),
                                Choice(R"({"reasoning":"hmm"})"), Choice(R"({"content":"a"})"),
                                Choice(R"({"content":"b"})"), Choice("{}", R"("stop")"),
                                R"({"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":7,
                                   "total_tokens":17,"prompt_tokens_details":{"cached_tokens":4},
                                   "completion_tokens_details":{"reasoning_tokens":3}}})",
                                "[DONE]"});
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(reply.text, "ab");
  EXPECT_EQ(reply.unseen_bytes, 5u);
  EXPECT_EQ(reply.finish, Finish::kStop);
  EXPECT_EQ(reply.served_by, "m-2");
  EXPECT_TRUE(reply.usage_known);
  EXPECT_EQ(reply.usage, (Usage{10, 4, 7, 3}));
}

TEST(Reply, ChatDialects) {
  const auto usage = [](const std::string& figures) {
    return Chat({Choice("{}", R"("stop")"), R"({"choices":[],"usage":)" + figures + "}"}).usage;
  };
  // DeepSeek
  EXPECT_EQ(usage(R"({"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,
                     "prompt_cache_hit_tokens":6,"prompt_cache_miss_tokens":4})"),
            (Usage{10, 6, 7, 0}));
  // Kimi
  EXPECT_EQ(usage(R"({"prompt_tokens":10,"completion_tokens":7,"cached_tokens":5})"),
            (Usage{10, 5, 7, 0}));
  // xAI: reasoning stands beside completion_tokens
  EXPECT_EQ(usage(R"({"prompt_tokens":10,"completion_tokens":7,"total_tokens":37,
                     "completion_tokens_details":{"reasoning_tokens":20}})"),
            (Usage{10, 0, 27, 20}));
  // Mistral: content in parts
  EXPECT_EQ(Chat({Choice(R"({"content":[{"type":"thinking","thinking":[]},
                             {"type":"text","text":"x"}]})",
                         R"("stop")")})
                .text,
            "x");
}

TEST(Reply, ChatFinish) {
  const auto finish = [](const std::string& word) {
    return Chat({Choice("{}", '"' + word + '"')});
  };
  EXPECT_EQ(finish("length").finish, Finish::kLength);
  EXPECT_EQ(finish("content_filter").finish, Finish::kRefused);
  EXPECT_EQ(finish("tool_calls").finish, Finish::kOther);
  EXPECT_FALSE(finish("insufficient_system_resource").complete);
  EXPECT_EQ(finish("insufficient_system_resource").error->status, 503);
  EXPECT_EQ(Chat({Choice(R"({"refusal":"no"})", R"("stop")")}).finish, Finish::kRefused);
}

TEST(Reply, ChatThatEndsTooSoon) {
  EXPECT_FALSE(Chat({Choice(R"({"content":"a"})")}).settled());
  EXPECT_FALSE(Chat({Choice(R"({"content":"a"})"), "[DONE]"}).broken.empty());
  EXPECT_FALSE(Chat({R"({"choices":[)"}).broken.empty());
  // Nothing that comes after the end undoes it.
  const WireReply reply =
      Chat({Choice(R"({"content":"a"})", R"("stop")"), "{", R"({"error":{"message":"x"}})"});
  EXPECT_TRUE(reply.complete);
  EXPECT_TRUE(reply.broken.empty());
  EXPECT_FALSE(reply.error.has_value());
}

TEST(Reply, ChatDocumentAndErrors) {
  const WireReply reply =
      Chat({R"(={"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"x",
          "reasoning_content":"y"},"finish_reason":"length"}],
          "usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}})"});
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(reply.text, "x");
  EXPECT_EQ(reply.finish, Finish::kLength);
  EXPECT_EQ(reply.usage, (Usage{1, 0, 2, 0}));
  EXPECT_EQ(Chat({R"({"error":{"message":"m","code":429}})"}).error->status, 429);
  EXPECT_EQ(Chat({R"({"object":"error","message":"m","code":400})"}).error->status, 400);
  EXPECT_EQ(Chat({R"({"error":{"message":"m","code":"rate_limit_exceeded"}})"}).error->status, 429);
  for (const char* document : {"=", "=[]", "={}", "=null", "=<html>", R"(={"choices":7})",
                               R"(={"choices":[{"message":null}]})"})
    EXPECT_FALSE(Chat({document}).broken.empty()) << document;
}

TEST(Reply, Responses) {
  const std::string final =
      R"({"model":"m-2","status":"completed","output":[{"type":"reasoning"},
          {"type":"message","content":[{"type":"output_text","text":"abc"}]}],
          "usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":2},"output_tokens":8,
                   "output_tokens_details":{"reasoning_tokens":5}}})";
  const WireReply reply =
      Responses({R"({"type":"response.created","response":{"status":"in_progress","model":"m"}})",
                 R"({"type":"response.reasoning_summary_text.delta","delta":"zz"})",
                 R"({"type":"response.output_text.delta","delta":"ab"})",
                 R"({"type":"response.output_text.delta","delta":"c"})",
                 R"({"type":"response.new_kind_of_event","delta":"?"})",
                 R"({"type":"response.completed","response":)" + final + "}"});
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(reply.text, "abc");
  EXPECT_EQ(reply.unseen_bytes, 2u);
  EXPECT_EQ(reply.usage, (Usage{10, 2, 8, 5}));
  EXPECT_EQ(reply.served_by, "m-2");
  EXPECT_EQ(reply.finish, Finish::kStop);
  EXPECT_EQ(Responses({"=" + final}).text, "abc");
  EXPECT_TRUE(Responses({"=" + final}).complete);
}

TEST(Reply, ResponsesThatAreIncompleteOrFail) {
  const auto incomplete = [](const std::string& reason) {
    return Responses(
        {R"({"type":"response.output_text.delta","delta":"ab"})",
         R"({"type":"response.incomplete","response":{"status":"incomplete","output":[],
                         "incomplete_details":{"reason":")" +
             reason + R"("},"usage":{"input_tokens":1,"output_tokens":2}}})"});
  };
  EXPECT_TRUE(incomplete("max_output_tokens").complete);
  EXPECT_EQ(incomplete("max_output_tokens").finish, Finish::kLength);
  EXPECT_EQ(incomplete("max_output_tokens").text, "ab");
  EXPECT_EQ(incomplete("content_filter").finish, Finish::kRefused);
  const WireReply failed = Responses({R"({"type":"response.failed","response":{"status":"failed",
          "error":{"code":"server_error","message":"sorry"},"usage":null}})"});
  EXPECT_FALSE(failed.complete);
  EXPECT_EQ(failed.error->status, 500);
  EXPECT_EQ(failed.error->message, "sorry");
  const WireReply limited =
      Responses({R"({"type":"error","code":"rate_limit_exceeded","message":"m","param":null})"});
  EXPECT_EQ(limited.error->status, 429);
  EXPECT_EQ(Responses({R"({"type":"error","error":{"type":"invalid_request_error",
                           "code":"context_length_exceeded","message":"m"}})"})
                .error->status,
            400);
  EXPECT_EQ(Responses({R"(={"status":"completed","output":[{"type":"message",
                           "content":[{"type":"refusal","refusal":"no"}]}]})"})
                .finish,
            Finish::kRefused);
  EXPECT_FALSE(Responses({R"(={"status":"queued"})"}).broken.empty());
  EXPECT_FALSE(Responses({R"({"type":"response.output_text.delta","delta":"ab"})"}).settled());
}

TEST(Reply, Anthropic) {
  const std::vector<std::string> start = {
      R"({"type":"message_start","message":{"model":"m-2","content":[],"stop_reason":null,
          "usage":{"input_tokens":10,"cache_creation_input_tokens":20,
                   "cache_read_input_tokens":30,"output_tokens":1}}})",
      R"({"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}})",
      R"({"type":"ping"})",
      R"({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}})",
      R"({"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}})",
      R"({"type":"content_block_start","index":1,"content_block":{"type":"text","text":"a"}})",
      R"({"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"b"}})"};
  const WireReply half = Anthropic(start);
  EXPECT_FALSE(half.settled());
  EXPECT_EQ(half.usage, (Usage{60, 30, 1, 0}));
  std::vector<std::string> whole = start;
  whole.push_back(R"({"type":"message_delta","delta":{"stop_reason":"end_turn"},
                      "usage":{"output_tokens":15,"output_tokens_details":{"thinking_tokens":9}}})");
  whole.push_back(R"({"type":"message_stop"})");
  const WireReply reply = Anthropic(whole);
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(reply.text, "ab");
  EXPECT_EQ(reply.unseen_bytes, 2u);
  EXPECT_EQ(reply.usage, (Usage{60, 30, 15, 9}));
  EXPECT_EQ(reply.served_by, "m-2");
  std::vector<std::string> error = start;
  error.push_back(R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})");
  EXPECT_EQ(Anthropic(error).error->status, 529);
  EXPECT_FALSE(Anthropic({R"({"type":"message_stop"})"}).complete);
}

TEST(Reply, AnthropicDocumentAndReasons) {
  const auto finish = [](const std::string& reason) {
    return Anthropic({R"(={"type":"message","model":"m","content":[{"type":"thinking"},
                         {"type":"text","text":"x"}],"stop_reason":")" +
                      reason + R"(","usage":{"input_tokens":1,"output_tokens":2}})"});
  };
  EXPECT_EQ(finish("end_turn").text, "x");
  EXPECT_EQ(finish("end_turn").finish, Finish::kStop);
  EXPECT_EQ(finish("stop_sequence").finish, Finish::kStop);
  EXPECT_EQ(finish("max_tokens").finish, Finish::kLength);
  EXPECT_EQ(finish("model_context_window_exceeded").finish, Finish::kLength);
  EXPECT_EQ(finish("refusal").finish, Finish::kRefused);
  EXPECT_EQ(finish("pause_turn").finish, Finish::kOther);
}

TEST(Reply, Gemini) {
  const WireReply reply =
      Gemini({R"({"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]},"index":0}],
          "usageMetadata":{"promptTokenCount":10,"thoughtsTokenCount":4},"modelVersion":"m-2"})",
              R"({"candidates":[{"content":{"parts":[{"text":"a"},{"text":"b"}]}}]})",
              R"({"candidates":[{"content":{"parts":[{"text":"c"}]},"finishReason":"STOP"}],
          "usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":3,
                           "candidatesTokenCount":5,"thoughtsTokenCount":6,"totalTokenCount":21}})"});
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(reply.text, "abc");
  EXPECT_EQ(reply.unseen_bytes, 2u);
  EXPECT_EQ(reply.usage, (Usage{10, 3, 11, 6}));
  EXPECT_EQ(reply.served_by, "m-2");
  const auto finish = [](const std::string& reason) {
    return Gemini({R"(={"candidates":[{"finishReason":")" + reason + R"("}]})"}).finish;
  };
  EXPECT_EQ(finish("MAX_TOKENS"), Finish::kLength);
  for (const char* reason : {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"})
    EXPECT_EQ(finish(reason), Finish::kRefused) << reason;
  EXPECT_EQ(finish("OTHER"), Finish::kOther);
  const WireReply blocked = Gemini({R"({"promptFeedback":{"blockReason":"SAFETY"}})"});
  EXPECT_TRUE(blocked.complete);
  EXPECT_EQ(blocked.finish, Finish::kRefused);
  EXPECT_FALSE(Gemini({R"({"candidates":[{"content":{"parts":[{"text":"a"}]}}]})"}).settled());
  EXPECT_EQ(
      Gemini({R"({"error":{"code":503,"status":"UNAVAILABLE","message":"m"}})"}).error->status,
      503);
  EXPECT_FALSE(Gemini({"={}"}).broken.empty());
}

// Whatever comes: no crash, and never complete without the protocol's word for it.
TEST(Reply, NonsenseOfEveryType) {
  const char* kNonsense[] = {
      "null",
      "7",
      "\"x\"",
      "[]",
      "{}",
      "[[{}]]",
      "true",
      R"({"choices":"x","usage":[]})",
      R"({"choices":[7,null,{"delta":7,"finish_reason":{}}]})",
      R"({"type":7,"delta":7})",
      R"({"type":"message_start","message":7})",
      R"({"type":"content_block_delta","delta":{"type":"text_delta","text":7}})",
      R"({"type":"message_delta","delta":{"stop_reason":7},"usage":7})",
      R"({"candidates":{"x":{"content":{"parts":7}}},"usageMetadata":-1})",
      R"({"usage":{"prompt_tokens":-5,"completion_tokens":1e300}})",
      R"({"type":"response.output_text.delta","delta":{}})"};
  for (const Protocol protocol : {Protocol::kOpenAiChat, Protocol::kOpenAiResponses,
                                  Protocol::kAnthropic, Protocol::kGemini}) {
    for (const char* nonsense : kNonsense) {
      const WireReply reply = Reply({protocol, {nonsense}});
      EXPECT_FALSE(reply.complete) << nonsense;
      EXPECT_EQ(reply.text, "") << nonsense;
      EXPECT_EQ(reply.usage.input + reply.usage.output, 0u) << nonsense;
      EXPECT_FALSE(Reply({protocol, {std::string("=") + nonsense}}).complete) << nonsense;
    }
    const std::string large = R"({"choices":[)" + std::string(5 << 20, ' ') + "]}";
    EXPECT_FALSE(Reply({protocol, {large}}).broken.empty());
    EXPECT_FALSE(Reply({protocol, {"=" + large}}).broken.empty());
    const std::string deep(200'000, '[');
    EXPECT_FALSE(Reply({protocol, {deep}}).complete);
    EXPECT_FALSE(Reply({protocol, {deep + std::string(200'000, ']')}}).complete);
  }
}

}  // namespace
}  // namespace allranks::model
