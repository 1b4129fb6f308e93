// models.toml: what it says and what is refused, words of --models, identities, dollars, keys.
#include "model/entry.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <limits>
#include <set>

#include "temporary_folder.h"

namespace allranks::model {
namespace {

Result<std::vector<Entry>> Load(const std::string& text) {
  const TemporaryFolder folder;
  return LoadModels(folder.Write("models.toml", "schema = 1\n" + text));
}

std::string Refusal(const std::string& text) {
  const auto entries = Load(text);
  return entries ? "" : entries.error().message;
}

constexpr char kFull[] = R"(
[providers.acme]
protocol = "openai-chat"
endpoint = "https://api.acme.example/v1/"
key = "ACME_API_KEY"
concurrency = 5
parameters = { max_tokens_field = "max_completion_tokens" }
retry = { attempts = 3, base = 0.5, cap = 20, longest_retry_after = 100, connect = 4, stall = 60, total = 900 }

[models.big]
provider = "acme"
model = "acme/big-1"
open_weights = true
price = { input = 1.25, cached_input = 0.125, output = 10 }

[models.big.parameters]
temperature = 0.5
top_p = 1
effort = "high"
max_output_tokens = 9000
stream = false
extra = { chat_template_kwargs = { thinking = true }, stop = ["x", "y"], o = 1, p = 0.25 }

[models."small:8b"]
provider = "acme"
model = "small"
concurrency = 2
retry = { attempts = 9 }
price = { input = 2, output = 4 }

[models.agent]
protocol = "command"
command = "my-agent --fast"
seconds = 60
check = false

[models.plays]
protocol = "replay"
folder = "recordings"

[models.known]
protocol = "material"
material = "mixture"
)";

TEST(EntryTest, AFileIsReadWhole) {
  const auto entries = Load(kFull);
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->size(), 5u);
  const Entry& big = (*entries)[0];
  EXPECT_EQ(big.name, "big");
  EXPECT_EQ(big.provider, "acme");
  EXPECT_EQ(big.protocol, Protocol::kOpenAiChat);
  EXPECT_EQ(big.model, "acme/big-1");
  EXPECT_EQ(big.endpoint, "https://api.acme.example/v1");
  EXPECT_EQ(big.key_variable, "ACME_API_KEY");
  EXPECT_TRUE(big.open_weights);
  EXPECT_TRUE(big.price.known);
  EXPECT_EQ(big.price.input, 1.25);
  EXPECT_EQ(big.price.cached_input, 0.125);
  EXPECT_EQ(big.price.output, 10);
  EXPECT_EQ(big.concurrency, 5);
  EXPECT_EQ(big.parameters.temperature, 0.5);
  EXPECT_EQ(big.parameters.top_p, 1.0);
  EXPECT_EQ(big.parameters.effort, "high");
  EXPECT_EQ(big.parameters.max_output_tokens, 9000);
  EXPECT_EQ(big.parameters.max_tokens_field, "max_completion_tokens");
  EXPECT_FALSE(big.parameters.stream);
  EXPECT_EQ(big.parameters.extra,
            R"({"chat_template_kwargs":{"thinking":true},"o":1,"p":0.25,"stop":["x","y"]})");
  EXPECT_EQ(big.retry.attempts, 3);
  EXPECT_EQ(big.retry.base.count(), 500);
  EXPECT_EQ(big.retry.cap.count(), 20'000);
  EXPECT_EQ(big.retry.longest_retry_after.count(), 100'000);
  EXPECT_EQ(big.retry.connect.count(), 4'000);
  EXPECT_EQ(big.retry.stall.count(), 60'000);
  EXPECT_EQ(big.retry.total.count(), 900'000);

  const Entry& small = (*entries)[1];
  EXPECT_EQ(small.name, "small:8b");
  EXPECT_EQ(small.concurrency, 2);
  EXPECT_EQ(small.retry.attempts, 9);
  EXPECT_EQ(small.retry.base.count(), 500) << "the provider's, where the model says nothing";
  EXPECT_EQ(small.price.cached_input, 2) << "as dear as other input, unless told";
  EXPECT_FALSE(small.parameters.temperature);
  EXPECT_TRUE(small.parameters.stream);
  EXPECT_FALSE(small.open_weights);

  const Entry& agent = (*entries)[2];
  EXPECT_EQ(agent.protocol, Protocol::kCommand);
  EXPECT_EQ(agent.source, "my-agent --fast");
  EXPECT_EQ(agent.seconds.count(), 60);
  EXPECT_FALSE(agent.check_tool);
  EXPECT_FALSE(agent.price.known);
  EXPECT_TRUE((*entries)[3].source.ends_with("/recordings")) << (*entries)[3].source;
  EXPECT_TRUE((*entries)[3].source.starts_with("/")) << "beside the file, wherever one stands";
  EXPECT_EQ((*entries)[4].source, "mixture");
}

TEST(EntryTest, LaterFilesReplaceTablesOfTheSameName) {
  const TemporaryFolder folder;
  const auto first = folder.Write("first.toml", R"(schema = 1
[providers.p]
endpoint = "https://old/v1"
key = "OLD_KEY"
[providers.q]
endpoint = "https://q/v1"
[models.a]
provider = "p"
model = "a1"
price = { input = 1, output = 1 }
[models.b]
provider = "p"
model = "b1"
)");
  const auto second = folder.Write("second.toml", R"(schema = 1
[providers.p]
endpoint = "https://new/v1"
[models.c]
provider = "q"
model = "c2"
[models.a]
provider = "q"
model = "a2"
)");
  const auto entries = LoadModels({first, second});
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->size(), 3u);
  const Entry &a = (*entries)[0], &b = (*entries)[1], &c = (*entries)[2];
  EXPECT_EQ(a.name + a.model + a.endpoint, "aa2https://q/v1") << "in its old place";
  EXPECT_FALSE(a.price.known) << "replaced as a whole";
  EXPECT_EQ(a.file, second.string());
  EXPECT_EQ(b.name + b.endpoint + b.key_variable, "bhttps://new/v1") << "by the new provider";
  EXPECT_EQ(b.file, first.string());
  EXPECT_EQ(c.name + c.endpoint + c.file, "chttps://q/v1" + second.string());
  EXPECT_EQ(LoadModels({second, first}).value()[1].model, "a1");
  // Faults of all files, each with its name.
  const auto bad = folder.Write("bad.toml", "schema = 1\n[models.d]\nprovider = \"p\"\n");
  const auto worse = folder.Write("worse.toml", "schema = 1\n[models.e]\nprovider = \"r\"\n");
  const auto faults = LoadModels({first, bad, worse});
  ASSERT_FALSE(faults);
  EXPECT_NE(faults.error().message.find("bad.toml:2"), std::string::npos) << faults.error().message;
  EXPECT_NE(faults.error().message.find("worse.toml:3"), std::string::npos);
}

TEST(EntryTest, TemperaturesThatAProviderDoesNotTake) {
  Entry entry;
  EXPECT_EQ(TemperatureFault(entry), "");
  entry.parameters.temperature = 1.5;
  EXPECT_EQ(TemperatureFault(entry), "");
  entry.protocol = Protocol::kAnthropic;  // 0 to 1
  EXPECT_NE(TemperatureFault(entry).find("0 to 1"), std::string::npos);
  entry.parameters.temperature = 1;
  EXPECT_EQ(TemperatureFault(entry), "");
  entry.accepts_temperature = false;
  EXPECT_NE(TemperatureFault(entry).find("accepts_temperature"), std::string::npos);
  entry.accepts_temperature = true;
  entry.parameters.extra = R"({"temperature":0.5})";
  EXPECT_NE(TemperatureFault(entry).find("extra"), std::string::npos);
  const std::string model =
      "[models.x]\nendpoint = \"https://x/v1\"\nmodel = \"m\"\n"
      "accepts_temperature = false\n";
  EXPECT_EQ(Refusal(model), "");
  EXPECT_NE(Refusal(model + "parameters = { temperature = 1 }\n").find(":6:"), std::string::npos);
}

TEST(EntryTest, FaultsNameLineKeyAndRemedy) {
  const auto expect = [](const std::string& text, const std::vector<std::string>& parts) {
    const std::string refusal = Refusal(text);
    for (const std::string& part : parts)
      EXPECT_NE(refusal.find(part), std::string::npos) << text << "\nsays: " << refusal;
  };
  const std::string model =
      "[models.m]\nprotocol = \"openai-chat\"\nendpoint = \"http://localhost\"\nmodel = \"m\"\n";
  EXPECT_EQ(Refusal(model), "");
  expect(model + "temperatur = 1\n", {"models.toml:6:", "temperatur"});
  expect(model + "parameters = { temperatur = 1 }\n", {":6:", "did you mean 'temperature'"});
  expect(model + "parameters = { temperature = 3 }\n", {":6:", "from 0 to 2"});
  expect(model + "parameters = { max_output_tokens = 0 }\n", {":6:", "max_output_tokens"});
  expect(model + "parameters = { extra = \"x\" }\n", {":6:", "a table"});
  expect(model + "parameters = { extra = { at = 2026-01-01 } }\n", {":6:", "no dates"});
  expect(model + "parameters = { extra = { x = inf } }\n", {":6:", "no infinity"});
  expect(model + "parameters = { extra = { n = 2 } }\n", {":6:", "n is set by the protocol"});
  expect(model + "parameters = { extra = { max_completion_tokens = 9 } }\n",
         {":6:", "max_completion_tokens is set by"});
  const auto with = [&](const std::string& protocol, const std::string& parameters) {
    return "[models.m]\nprotocol = \"" + protocol + "\"\nendpoint = \"http://localhost\"\n" +
           "model = \"m\"\nparameters = " + parameters + "\n";
  };
  expect(with("gemini", "{ extra = { generationConfig = { candidateCount = 4 } } }"),
         {":6:", "generationConfig/candidateCount is set by"});
  expect(with("gemini", "{ extra = { generationConfig = 1 } }"), {":6:", "generationConfig is"});
  EXPECT_EQ(Refusal(with("gemini", "{ extra = { generationConfig = { seed = 4 } } }")), "");
  expect(with("anthropic", "{ extra = { max_tokens = 4 } }"), {":6:", "max_tokens is set by"});
  expect(with("anthropic", "{ effort = \"high\", temperature = 0.5 }"),
         {":6:", "effort and temperature"});
  EXPECT_EQ(Refusal(with("anthropic", "{ temperature = 0.5 }")), "");
  EXPECT_EQ(Refusal(with("openai-chat", "{ effort = \"high\", temperature = 0.5 }")), "");
  expect(model + "price = { input = 1 }\n", {":6:", "output is missing"});
  expect(model + "price = { input = -1, output = 1 }\n", {":6:", "from 0"});
  expect(model + "price = { input = nan, output = 1 }\n", {":6:", "from 0"});
  expect(model + "retry = { attempts = 0 }\n", {":6:", "from 1 to 100"});
  expect(model + "retry = { base = 0 }\n", {":6:", "base"});
  expect(model + "concurrency = \"four\"\n", {":6:", "an integer"});
  expect(model + "provider = \"acme\"\n", {":6:", "[providers]"});
  expect(model + "command = \"x\"\n", {":6:", "protocol = \"command\""});
  expect("[providers.acme]\nprotocol = \"openai-chat\"\n[models.m]\nprovider = \"acne\"\n",
         {":5:", "did you mean 'acme'"});
  expect("[models.m]\nprotocol = \"openai-chta\"\n", {":3:", "did you mean 'openai-chat'"});
  expect("[models.m]\nprotocol = \"openai-chat\"\nendpoint = \"http://localhost\"\n",
         {":2:", "model is missing"});
  expect("[models.m]\nprotocol = \"openai-chat\"\nmodel = \"m\"\n", {":2:", "endpoint is missing"});
  expect("[models.m]\nprotocol = \"command\"\n", {":2:", "command is missing"});
  expect("[models.m]\nprotocol = \"material\"\nmaterial = \"mixtures\"\n",
         {"did you mean 'mixture'"});
  expect("[models.\"a b\"]\nprotocol = \"material\"\nmaterial = \"nop\"\n",
         {":2:", "cannot name a model"});
  expect("[model.m]\n", {"did you mean 'models'"});
  expect("[models.m\n", {"models.toml:2:"});
  for (const char* endpoint :
       {"ftp://host", "localhost:8000", "https://", "https:///v1", "https://a b", "https://h/?q=1",
        "https://user@host/v1", "file:///etc/passwd"}) {
    expect("[models.m]\nprotocol = \"openai-chat\"\nmodel = \"m\"\nendpoint = \"" +
               std::string(endpoint) + "\"\n",
           {":5:", "endpoint", "URL"});
  }
  // All faults at once.
  expect(model + "temperatur = 1\nopen_weights = 1\n", {":6:", ":7:"});
}

TEST(EntryTest, AKeyThatStandsInTheFileIsNotRepeated) {
  for (const char* key : {"sk-abcdefghijklmnop", "SECRET-PART", "lowercase"}) {
    const std::string refusal = Refusal(
        "[models.m]\nprotocol = \"openai-chat\"\nendpoint = \"http://localhost\"\nmodel = \"m\"\n"
        "key = \"" +
        std::string(key) + "\"\n");
    EXPECT_NE(refusal.find("name of an environment variable"), std::string::npos) << refusal;
    EXPECT_EQ(refusal.find(key), std::string::npos) << refusal;
  }
  const std::string refusal = Refusal(
      "[models.m]\nprotocol = \"openai-chat\"\nmodel = \"m\"\n"
      "endpoint = \"https://user:sk-secret@host\"\n");
  EXPECT_EQ(refusal.find("sk-secret"), std::string::npos) << refusal;
}

TEST(EntryTest, TheShippedListIsWhole) {
  const auto entries = LoadModels(std::filesystem::path(ALLRANKS_SOURCE_DIR) / "share/models.toml");
  ASSERT_TRUE(entries) << entries.error().message;
  std::set<std::string> providers;
  for (const Entry& entry : *entries) {
    providers.insert(entry.provider);
    const bool local = entry.endpoint.starts_with("http://localhost:");
    EXPECT_TRUE(local || entry.endpoint.starts_with("https://")) << entry.name;
    EXPECT_EQ(entry.key_variable.empty(), local) << entry.name;
    EXPECT_FALSE(entry.model.empty()) << entry.name;
    if (!entry.price.known) continue;
    EXPECT_LE(entry.price.cached_input, entry.price.input) << entry.name;
    EXPECT_LE(entry.price.input, entry.price.output) << entry.name;
    EXPECT_LE(entry.price.output, 200) << entry.name << ": per million?";
    EXPECT_EQ(entry.price.output == 0, local) << entry.name;
  }
  EXPECT_EQ(providers, (std::set<std::string>{"openai", "anthropic", "google", "xai", "deepseek",
                                              "zai", "dashscope", "moonshot", "together", "vllm",
                                              "sglang", "ollama", "llamacpp"}));
}

TEST(EntryTest, AnotherSchemaIsRefused) {
  const TemporaryFolder folder;
  EXPECT_FALSE(LoadModels(folder.Write("none.toml", "[models]\n")));
  EXPECT_FALSE(LoadModels(folder.Write("two.toml", "schema = 2\n")));
  EXPECT_TRUE(LoadModels(folder.Write("one.toml", "schema = 1\n")));
  EXPECT_FALSE(LoadModels(folder.path() / "missing.toml"));
}

TEST(EntryTest, IdentityIsWhatDecidesTheAnswer) {
  auto entries = Load(kFull);
  ASSERT_TRUE(entries);
  const Entry base = (*entries)[0];
  // Written down: a change here makes every finished run ask its paid requests again.
  EXPECT_EQ(IdentityOf(base),
            R"({"effort":"high","endpoint":"https://api.acme.example/v1","extra":)"
            R"({"chat_template_kwargs":{"thinking":true},"o":1,"p":0.25,"stop":["x","y"]},)"
            R"("max_output_tokens":9000,"model":"acme/big-1","protocol":"openai-chat",)"
            R"("temperature":0.5,"top_p":1.0})");
  std::set<std::string> seen = {IdentityOf(base)};
  const auto differs = [&](auto change) {
    Entry entry = base;
    change(entry);
    EXPECT_TRUE(seen.insert(IdentityOf(entry)).second) << IdentityOf(entry);
  };
  differs([](Entry& e) { e.model = "other"; });
  differs([](Entry& e) { e.endpoint = "https://other.example"; });
  differs([](Entry& e) { e.protocol = Protocol::kOpenAiResponses; });
  differs([](Entry& e) { e.parameters.temperature = 0.25; });
  differs([](Entry& e) { e.parameters.temperature.reset(); });
  differs([](Entry& e) { e.parameters.top_p.reset(); });
  differs([](Entry& e) { e.parameters.effort = "low"; });
  differs([](Entry& e) { e.parameters.max_output_tokens = 1; });
  differs([](Entry& e) { e.parameters.extra.clear(); });
  differs([](Entry& e) { e.protocol = Protocol::kCommand, e.source = "a"; });
  differs([](Entry& e) { e.protocol = Protocol::kCommand, e.source = "b"; });
  differs([](Entry& e) { e.protocol = Protocol::kCommand, e.source = "b", e.check_tool = true; });
  differs([](Entry& e) { e.protocol = Protocol::kReplay, e.source = "b"; });
  differs([](Entry& e) { e.protocol = Protocol::kMaterial, e.source = "b"; });
  const auto same = [&](auto change) {
    Entry entry = base;
    change(entry);
    EXPECT_EQ(IdentityOf(entry), IdentityOf(base));
  };
  same([](Entry& e) { e.name = "renamed"; });
  same([](Entry& e) { e.key_variable = "OTHER"; });
  same([](Entry& e) { e.price = {}; });
  same([](Entry& e) { e.concurrency = 1; });
  same([](Entry& e) { e.retry.attempts = 1; });
  same([](Entry& e) { e.parameters.stream = true; });
}

TEST(EntryTest, WordsFindModels) {
  const auto known = Load(kFull);
  ASSERT_TRUE(known);
  const auto find = [&](const std::string& word) {
    auto entry = FindModel(word, *known);
    EXPECT_TRUE(entry) << word << ": " << entry.error().message;
    return entry.value_or(Entry{});
  };
  EXPECT_EQ(find("big").model, "acme/big-1");
  EXPECT_EQ(find("small:8b").model, "small");
  EXPECT_EQ(find("mine=big").name, "mine");
  EXPECT_EQ(find("mine=big").model, "acme/big-1");
  EXPECT_EQ(find("mine=big").table, "big") << "messages name the table of the file";
  EXPECT_EQ(find("oracle").protocol, Protocol::kMaterial);
  EXPECT_EQ(find("oracle").name, "oracle");
  EXPECT_EQ(find("nop").source, "nop");
  EXPECT_EQ(find("material:references").source, "references");
  EXPECT_EQ(find("material:references").name, "material:references");
  EXPECT_EQ(find("a=material:mixture").name, "a");
  const Entry command = find("command:FOO=bar agent 'x y' | tee z");
  EXPECT_EQ(command.protocol, Protocol::kCommand);
  EXPECT_EQ(command.source, "FOO=bar agent 'x y' | tee z");
  EXPECT_TRUE(command.check_tool);
  EXPECT_EQ(find("me=command:FOO=bar agent").source, "FOO=bar agent");
  EXPECT_EQ(find("me=command:FOO=bar agent").name, "me");
  const TemporaryFolder folder;
  EXPECT_EQ(find("r=replay:" + folder.path().string()).source, folder.path().string());
  EXPECT_EQ(find("r=replay:" + std::filesystem::relative(folder.path()).string()).source,
            folder.path().string());

  const auto refusal = [&](const std::string& word) {
    const auto entry = FindModel(word, *known);
    return entry ? "" : entry.error().message;
  };
  EXPECT_NE(refusal("bgi").find("did you mean 'big'"), std::string::npos) << refusal("bgi");
  EXPECT_NE(refusal("nothing-like-it").find("small:8b"), std::string::npos) << "lists all";
  EXPECT_NE(refusal("material:refs").find("references"), std::string::npos);
  EXPECT_NE(refusal("command:").find("shell line"), std::string::npos);
  EXPECT_NE(refusal("replay:").find("a folder"), std::string::npos);
  EXPECT_NE(refusal("replay:/nowhere/at/all").find("no such folder"), std::string::npos);
  EXPECT_NE(refusal("a b=oracle").find("cannot name"), std::string::npos);
  EXPECT_NE(refusal("command:" + std::string(200, 'x')).find("too long"), std::string::npos);
  EXPECT_NE(refusal(""), "");
  EXPECT_EQ(refusal("x=command:" + std::string(200, 'x')), "");
}

TEST(EntryTest, DollarsFollowThePrices) {
  const Price price{true, 3, 0.3, 15};
  EXPECT_DOUBLE_EQ(DollarsOf(price, {.input = 1'000'000}), 3);
  EXPECT_DOUBLE_EQ(DollarsOf(price, {.output = 2'000'000}), 30);
  EXPECT_DOUBLE_EQ(DollarsOf(price, {.input = 1'000'000, .cached_input = 400'000}), 1.92);
  EXPECT_DOUBLE_EQ(DollarsOf(price, {.output = 100, .reasoning = 60}), 0.0015)
      << "reasoning is part of the output, not added to it";
  EXPECT_DOUBLE_EQ(DollarsOf(price, {.input = 10, .cached_input = 20}), 10 * 0.3 / 1e6)
      << "no negative amount where a provider counts strangely";
  EXPECT_DOUBLE_EQ(DollarsOf(Price{}, {.input = 1'000'000, .output = 1'000'000}), 0);
}

TEST(EntryTest, AMissingKeyIsNamedAndNoKeyIsShown) {
  Entry entry;
  entry.name = "m";
  entry.endpoint = "https://api.acme.example/v1";
  entry.key_variable = "ALLRANKS_TEST_KEY";
  const auto refusal = [&] {
    const auto model = MakeModel(entry, Budget(std::numeric_limits<double>::infinity()), nullptr);
    return model ? std::string() : model.error().message;
  };
  unsetenv("ALLRANKS_TEST_KEY");
  EXPECT_NE(refusal().find("export ALLRANKS_TEST_KEY="), std::string::npos) << refusal();
  setenv("ALLRANKS_TEST_KEY", "  \n", 1);
  EXPECT_NE(refusal().find("export ALLRANKS_TEST_KEY="), std::string::npos) << refusal();
  setenv("ALLRANKS_TEST_KEY", "abc\r\nX-Evil: 1", 1);
  EXPECT_NE(refusal().find("ALLRANKS_TEST_KEY"), std::string::npos) << refusal();
  EXPECT_EQ(refusal().find("abc"), std::string::npos) << refusal();
  setenv("ALLRANKS_TEST_KEY", " abc\n", 1);
  EXPECT_EQ(refusal(), "");
  entry.endpoint = "gopher://host";
  EXPECT_NE(refusal().find("https://"), std::string::npos) << refusal();
  unsetenv("ALLRANKS_TEST_KEY");
}

}  // namespace
}  // namespace allranks::model
